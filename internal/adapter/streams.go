package adapter

import (
	"context"
	"errors"
	"net/netip"

	"github.com/softrnic/softrnic/verbs"
)

// A StreamDevice is a device whose queue pairs may have a TCP connection each (iWARP).
type StreamDevice interface {
	// Streams returns the set-up of connections, or nil if the device has datagrams.
	Streams() Streams
}

// StreamsOf returns the set-up of the TCP connections of dev, or nil if it has datagrams.
func StreamsOf(dev any) Streams {
	if d, ok := dev.(StreamDevice); ok {
		return d.Streams()
	}
	return nil
}

// Streams set up TCP connections for queue pairs.
type Streams interface {
	// AddManager records that the device has a connection manager, and returns verbs.ErrBusy if it has
	// one already. RemoveManager undoes it.
	AddManager() error
	RemoveManager()

	// Closed reports whether the device is closed.
	Closed() bool

	// Listen listens on a TCP port of the device's address, 0 for a free one, and calls serve with
	// each request, in a goroutine of its own, until the listener or the device is closed. Then it
	// calls ended.
	Listen(port uint16, serve func(StreamRequest), ended func()) (StreamListener, error)

	// Dial sets up a connection from a TCP port, 0 for a free one, to another one. The error of a peer that rejects it is a
	// *StreamRejection.
	Dial(ctx context.Context, from uint16, to netip.AddrPort, reads Reads, private []byte) (StreamConn, error)
}

// Reads are the numbers of READs and atomics that an end serves and issues at a time.
type Reads struct{ Served, Issued uint8 }

// A StreamListener accepts connections.
type StreamListener interface {
	Addr() netip.AddrPort
	Close() error
}

// A StreamRequest is a peer's request for a connection. It must be accepted or rejected.
type StreamRequest interface {
	Private() []byte                                        // private data of the peer's application
	Remote() netip.AddrPort                                 // of the peer's end of the connection
	Reads() Reads                                           // of the peer; 0 and 0 if it has not sent them
	Accept(reads Reads, private []byte) (StreamConn, error) // ErrStreamEnded if the peer has given up
	Reject(private []byte) error
}

// ErrStreamEnded is the error of Accept if the peer has closed the connection.
var ErrStreamEnded = errors.New("connection request: the peer closed the TCP connection")

// A StreamConn is a connection after its set-up, which no queue pair has yet.
type StreamConn interface {
	Private() []byte // of the reply, if this end has dialed
	Local() netip.AddrPort
	Remote() netip.AddrPort
	Reads() Reads // as agreed

	// Claim makes the transitions of qp, which is in StateReset or StateInit, not set up a connection
	// themselves.
	Claim(qp verbs.QP) error

	// Attach gives the connection to qp, in StateRTR or StateRTS, and calls ended in a goroutine of its
	// own when it has ended.
	Attach(qp verbs.QP, ended func()) error

	// Close closes a connection that was not attached.
	Close()
}

// A StreamRejection is the error of a connection that the peer has rejected.
type StreamRejection struct{ Private []byte }

// Error implements error.
func (*StreamRejection) Error() string { return "the peer rejected the connection" }

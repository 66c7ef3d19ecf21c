package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// A Core is the SDP state machine of one side of a connection. It is not safe for concurrent use.
type Core struct {
	cfg     Config
	peer    Peer
	started bool

	credits  flow.Credits
	sender   flow.Sender
	receiver flow.Receiver
	slots    slots

	out        []verbs.SendWR // to be posted, in this order
	sges       []verbs.SGE    // storage of the lists in out
	in         []verbs.RecvWR // to be posted
	controls   controls
	advertised advertisedReceives

	received uint32 // sequence number of the last received message
	carrying uint32 // data messages received and kept (NonDiscards)
	carried  uint32 // data messages sent
	position uint64 // bytes returned by Read

	closing               bool   // CloseWrite was called
	closingWithoutDisConn bool   // CloseWithoutDisConn was called
	flushed               bool   // then the peer's adapter has acknowledged all data
	disConnSeq            uint64 // control number of the local DisConn once posted
	disConnDelivered      bool   // the peer's adapter has acknowledged the DisConn
	abortSeq              uint64 // control number of the local AbortConn until it is acknowledged; 0 for none
	peerClosed            bool   // the peer's DisConn has arrived
	err                   error
	holdData              bool

	peerSource   peerSource // the peer's memory, readable by the local side
	sourceRead   transfer   // RDMA READ of peerSource
	offer        offer      // local memory, readable by the peer
	sink         sink       // local memory, writable by the peer
	peerSink     peerSink   // the peer's memory, writable by the local side
	sinkWrite    transfer   // RDMA WRITE to this or the previous peerSink
	mode         modes
	oob          urgentData
	bufSize      bufferResize
	ring         ringChange
	probing      bool // a keepalive is outstanding
	receiveQuery receiveQuery
	stats        Stats
}

// Causes of an abnormal end of a connection.
var (
	ErrReset    = errors.New("sdp: connection reset")
	ErrAborted  = errors.New("sdp: connection aborted by peer")
	ErrProtocol = errors.New("sdp: protocol violation by peer")
)

// Faults of the caller.
var (
	errUnposted     = errors.New("sdp: completion of work that was not posted")
	errBeyondAdvert = errors.New("sdp: access beyond the advertised memory")
)

// Err returns the cause of the connection's failure, or nil.
func (c *Core) Err() error { return c.err }

// Fail fails the connection with err. Only the first call has an effect.
func (c *Core) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// violation fails the connection because of a protocol violation by the peer.
func (c *Core) violation(format string, args ...any) {
	c.Fail(fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...)))
}

// PeerDisconnected reports that the peer has disconnected below SDP, which is an error unless
// both halves of the stream are closed.
func (c *Core) PeerDisconnected(cause error) {
	if !c.BothClosed() {
		c.Fail(fmt.Errorf("%w: %w", ErrReset, cause))
	}
}

// BothClosed reports whether both halves of the stream are closed.
func (c *Core) BothClosed() bool { return c.disConnDelivered && c.peerClosed }

// Receives returns the receive requests to post. Post them before Sends, whose messages may
// advertise them.
func (c *Core) Receives() []verbs.RecvWR { return c.in }

// Sends returns the send requests to post, in order. The slice is valid until the next call of a
// method; the memory that the requests refer to belongs to the Core until they complete.
func (c *Core) Sends() []verbs.SendWR { return c.out }

// ClearPosted empties Sends and Receives after the caller has posted both.
func (c *Core) ClearPosted() { c.out, c.sges, c.in = c.out[:0], c.sges[:0], c.in[:0] }

// stageSGE stores e until the request that refers to it is posted.
func (c *Core) stageSGE(e verbs.SGE) []verbs.SGE {
	c.sges = append(c.sges, e)
	return c.sges[len(c.sges)-1 : len(c.sges) : len(c.sges)]
}

// Buffered returns the number of unread bytes.
func (c *Core) Buffered() int { return c.receiver.Buffered() }

// Finished reports whether the peer has closed its half and all data has been read.
func (c *Core) Finished() bool { return c.peerClosed && c.receiver.Buffered() == 0 }

// Stats are the counters of a connection.
type Stats struct {
	BytesWritten, BytesRead uint64 // by the application
	MessagesSent, Controls  uint64 // sent, with and without data
	MessagesReceived        uint64 // received, with data
	BytesReceived           uint64
	CreditUpdates           uint64 // messages that advertised local receives
	ZeroCopySent            uint64 // bytes that the peer has read from, or the local side has written from, application memory
	ZeroCopyReceived        uint64
	Offers, OffersRefused   uint64 // SrcAvail sent; of these, refused or cancelled
	Sinks, SinksCrossed     uint64 // SinkAvail sent; of these, crossed with data
}

func (s *Stats) addWritten(n int) { s.BytesWritten += uint64(n) }

func (s *Stats) addRead(n int) { s.BytesRead += uint64(n) }

func (s *Stats) addZeroCopyWritten(n int) { s.addWritten(n); s.ZeroCopySent += uint64(n) }

func (s *Stats) addZeroCopyRead(n int) { s.addRead(n); s.ZeroCopyReceived += uint64(n) }

func (s *Stats) addReceived(n int) { s.MessagesReceived++; s.BytesReceived += uint64(n) }

// Stats returns a snapshot of the counters.
func (c *Core) Stats() Stats { return c.stats }

// Levels are the current fill levels of a connection's buffers, in bytes, and its receives.
type Levels struct {
	Send     int // send buffer: written and not known to be acknowledged
	Held     int // of Send: not posted yet
	PeerUsed int // peer's receive buffer: sent and not known to be read; 0 with NIC, where only its adapter knows
	Receive  int // receive buffer: arrived and unread
	Size     int // of either buffer, N x S
	Credits  int // data messages for which the peer has receives, as last advertised; 0 with NIC, where only its adapter knows
	Receives int // posted
}

// Levels returns the current fill levels. Arrived data counts from the handling of its
// completion.
func (c *Core) Levels() Levels {
	l := Levels{Size: c.cfg.ringCapacity(), Receives: c.slots.posted}
	if !c.started {
		return l
	}
	l.Send, l.Held, l.Receive = c.sender.Unsent(), c.sender.Unposted(), c.receiver.Buffered()
	if s, ok := c.sender.(interface{ PeerUsed() int }); ok {
		l.PeerUsed = s.PeerUsed()
	}
	if c.peer.FlowControl != flow.NIC {
		l.Credits = max(0, c.credits.Available()-flow.ReservedCredits)
	}
	return l
}

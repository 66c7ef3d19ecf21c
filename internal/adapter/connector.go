package adapter

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// A ConnectorDevice is a device whose connections the system's connection manager sets up.
type ConnectorDevice interface {
	// OpenConnector opens the system's connection manager for the device.
	OpenConnector() (Connector, error)
}

// OpenConnector opens the system's connection manager for dev, or returns nil if dev has connections
// of its own.
func OpenConnector(dev any) (Connector, error) {
	if d, ok := dev.(ConnectorDevice); ok {
		return d.OpenConnector()
	}
	return nil, nil
}

// A Connector sets up connections of the queue pairs of a device.
type Connector interface {
	// Listen listens on a port of a port space, 0 for a free one, and calls serve with each request
	// until the listener is closed. serve must not block.
	Listen(space, port uint16, backlog int, serve func(ConnectorConn)) (StreamListener, error)

	// Resolve finds the route to a port of a port space, from a local port or 0.
	Resolve(ctx context.Context, space uint16, to netip.AddrPort, localPort uint16, kind verbs.QPType) (ConnectorConn, error)

	// Close closes the connector with all listeners and connections.
	Close() error
}

// A ConnectorParam has the parameters that an end of a connection sends.
type ConnectorParam struct {
	QPN                 uint32
	Reads               Reads
	FlowControl, SRQ    bool
	Retries, RNRRetries uint8
	AckTimeout          time.Duration // of both ends; 0 for the system's choice
	Private             []byte
}

// A ConnectorConn is a connection, or a request for one.
type ConnectorConn interface {
	Local() netip.AddrPort
	Remote() netip.AddrPort
	Peer() ConnectorParam // of a request, or of the reply after Connect

	// Connect sends the request and waits for the reply. The error of a peer that rejects it is a
	// *ConnectorRejection.
	Connect(ctx context.Context, p ConnectorParam) error

	// Establish confirms the reply. The queue pair is in StateRTS.
	Establish() error

	// Accept sends the reply to a request and waits for the confirmation. The queue pair is in
	// StateRTS.
	Accept(ctx context.Context, p ConnectorParam) error

	// Reject rejects a request.
	Reject(private []byte) error

	// Attr returns the attributes of the queue pair for the transition to a state.
	Attr(to verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error)

	// OnEnd makes ended be called, in a goroutine of its own, when the connection has ended: by the
	// peer, or by the reply to Disconnect, with an error if there was none.
	OnEnd(ended func(err error))

	// Disconnect ends an established connection, or confirms that the peer has ended it.
	Disconnect() error

	// Close frees the connection.
	Close()
}

// A ConnectorRejection is the error of a connection that the peer has rejected.
type ConnectorRejection struct {
	Reason  uint16 // of the REJ message
	Private []byte
}

// Error implements error.
func (r *ConnectorRejection) Error() string { return fmt.Sprintf("rejected with reason %d", r.Reason) }

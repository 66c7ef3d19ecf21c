package rdm

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of peers, calls and operations. Errors of a peer are wrapped in a
// *PeerError, errors of an operation in an *OpError.
var (
	ErrUnreachable  = errors.New("rdm: peer unreachable")
	ErrRefused      = errors.New("rdm: connection refused")
	ErrTimeout      = errors.New("rdm: peer timed out")
	ErrRestarted    = errors.New("rdm: peer restarted; dial it again")
	ErrProtocol     = errors.New("rdm: protocol violation by the peer")
	ErrDisconnected = errors.New("rdm: peer disconnected locally")
	ErrTooMany      = errors.New("rdm: too many peers; see Options.Peers")

	ErrClosed     = errors.New("rdm: endpoint closed")
	ErrTooLong    = errors.New("rdm: message exceeds Endpoint.MaxMessage")
	ErrWouldBlock = errors.New("rdm: send window full; see Peer.WaitWritable")
	ErrBusy       = errors.New("rdm: too many outstanding operations; see Options.Ops")
	ErrInUse      = errors.New("rdm: in use by an outstanding operation")
	ErrLocal      = errors.New("rdm: local memory not accessible")

	ErrKey    = errors.New("rdm: invalid or stale remote key")
	ErrBounds = errors.New("rdm: range exceeds the remote region")
	ErrAccess = errors.New("rdm: operation not permitted by the remote region")
	ErrDenied = errors.New("rdm: operation denied by the peer")
	ErrAlign  = errors.New("rdm: address of an atomic is not a multiple of 8")
	ErrFault  = errors.New("rdm: page fault at the peer: memory unmapped or protected after registration, or its file truncated")
	ErrRemote = errors.New("rdm: access rejected by the peer's adapter: invalid or stale key, range or permission")
)

// A PeerError is the error of a failed peer, in text as "rdm: peer 192.0.2.1:4791: peer timed
// out".
type PeerError struct {
	Peer Addr  // object of the error
	Err  error // one of the errors above, possibly wrapped
}

// Error implements error.
func (e *PeerError) Error() string { return fmt.Sprintf("rdm: peer %v: %s", e.Peer.At, cause(e.Err)) }

// Unwrap returns Err.
func (e *PeerError) Unwrap() error { return e.Err }

// cause returns the text of err without the prefix of the package, which the errors around it
// have.
func cause(err error) string { return strings.TrimPrefix(fmt.Sprint(err), "rdm: ") }

// An OpError is the error of a failed operation, in text as "rdm: peer 192.0.2.1:4791: read of 8
// bytes at 0x1000 with key 0x2a00: invalid or stale remote key".
type OpError struct {
	Op     string // "read", "write", "compare-swap", "fetch-add"
	Peer   Addr   // object of the operation
	Remote Remote
	N      int // bytes
	Err    error
}

// Error implements error.
func (e *OpError) Error() string {
	return fmt.Sprintf("rdm: peer %v: %s of %d bytes at 0x%x with key 0x%x: %s", e.Peer.At, e.Op, e.N, e.Remote.Addr, e.Remote.RKey, cause(e.Err))
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

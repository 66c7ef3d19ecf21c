package rdm

import (
	"errors"
	"fmt"
)

// Errors of peers, calls and operations. Errors of a peer are wrapped in a
// *PeerError, errors of an operation in an *OpError.
var (
	ErrUnreachable  = errors.New("nobody answers there")
	ErrRefused      = errors.New("it does not want to talk to us")
	ErrTimeout      = errors.New("it answers nothing any more")
	ErrRestarted    = errors.New("it has been started anew; dial it again")
	ErrProtocol     = errors.New("what it sends breaks the protocol")
	ErrDisconnected = errors.New("it was hung up here")
	ErrTooMany      = errors.New("there are as many peers as Options.Peers")

	ErrClosed  = errors.New("the endpoint is closed")
	ErrTooLong = errors.New("longer than Endpoint.MaxMessage; cut it")
	ErrBusy    = errors.New("as many operations are under way as Options.Ops; wait for some")
	ErrInUse   = errors.New("an operation that is not complete uses it")
	ErrLocal   = errors.New("the local memory cannot be used")

	ErrKey    = errors.New("the peer has no region with this key, or has none any more")
	ErrBounds = errors.New("the range is not inside the peer's region")
	ErrAccess = errors.New("the peer's region does not permit it")
	ErrDenied = errors.New("the peer does not permit it to us")
	ErrAlign  = errors.New("the address of an atomic must be a multiple of 8")
	ErrFault  = errors.New("the peer cannot access its memory: unmapped or protected after it was registered, or its file was truncated")
	ErrRemote = errors.New("the peer's adapter refused the access: wrong or stale key, range, or permission")
)

// A PeerError is the error of a failed peer.
type PeerError struct {
	Peer Addr
	Err  error // one of the errors above, possibly wrapped
}

func (e *PeerError) Error() string { return fmt.Sprintf("peer %v: %v", e.Peer.At, e.Err) }

// Unwrap returns Err.
func (e *PeerError) Unwrap() error { return e.Err }

// An OpError is the error of a failed operation.
type OpError struct {
	Op     string // "read", "write", "compare-swap", "fetch-add"
	Peer   Addr
	Remote Remote
	N      int // bytes
	Err    error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("%s of %d bytes at 0x%x with key 0x%x of peer %v: %v", e.Op, e.N, e.Remote.Addr, e.Remote.RKey, e.Peer.At, e.Err)
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

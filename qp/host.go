package qp

import (
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// Memory is the registered memory of a queue pair's protection domain. The
// slices it returns are the user's memory itself and are used only until the
// next call into the Core returns, or until a packet that [Out.NextWith] was told
// to take them from has left.
type Memory interface {
	// Local returns n bytes at addr of the region with this lkey. write asks
	// for AccessLocalWrite.
	Local(lkey uint32, addr uint64, n uint32, write bool) ([]byte, Fault)

	// Remote returns n bytes at addr of the region or window with this rkey,
	// for a peer that comes through queue pair qpn and needs the permission.
	Remote(rkey uint32, addr uint64, n uint32, need verbs.AccessFlags, qpn uint32) ([]byte, Fault)

	// Bind binds a memory window to queue pair qpn.
	Bind(b *verbs.BindMW, qpn uint32) Fault

	// Invalidate ends the binding of the memory window with this rkey, which
	// must belong to queue pair qpn.
	Invalidate(rkey uint32, qpn uint32) Fault
}

// Fault says why memory may not be used.
type Fault uint8

const (
	NoFault       Fault = iota
	FaultKey            // no region or window has this key
	FaultDomain         // it belongs to another protection domain
	FaultQP             // the window is bound to another queue pair
	FaultBounds         // the range is not inside the region
	FaultAccess         // the permission was not granted
	FaultUnbound        // the window is not bound, or already bound
	FaultMisalign       // an atomic's memory is not 8-byte aligned
	FaultMemory         // the system refuses the access: the memory was unmapped, protected, or lost its file
)

func (f Fault) String() string {
	return [...]string{"no fault", "no such key", "other protection domain", "window bound to another queue pair",
		"range outside the region", "permission not granted", "window not in the state needed", "memory not 8-byte aligned",
		"the system refuses access to the memory"}[f]
}

// Host is the adapter that a queue pair lives in.
type Host interface {
	// Complete delivers a completion to the receive or send queue's CQ.
	// solicited counts for ReqNotify(true).
	Complete(wc verbs.WC, solicited bool)

	// Event raises an asynchronous event of this queue pair.
	Event(t verbs.EventType, why *verbs.Failure)
}

// SharedQueue is the shared receive queue of a queue pair.
type SharedQueue interface {
	// Pop moves the oldest receive into wqe, reusing the memory of its
	// SGList, and reports whether there was one.
	Pop(wqe *RecvWQE) bool

	// PushFront makes a receive that was taken, and not used, the oldest again.
	PushFront(wqe *RecvWQE)
}

// RecvWQE is a posted receive.
type RecvWQE struct {
	ID     uint64
	SGList []verbs.SGE
}

// Route is what an address handle that this adapter made offers beside
// verbs.AH.
type Route interface {
	// Path is where the handle leads. It does not change.
	Path() *wire.Path
}

// Out takes packets that are ready to leave.
type Out interface {
	// Next returns room for one packet of n bytes (BTH to ICRC) to the given
	// path, where the caller writes all but the last four bytes, or nil when
	// nothing more can be taken for now.
	Next(to *wire.Path, n int) []byte

	// NextZeroCopy is Next for a packet of head bytes, which it returns, a payload
	// and the ICRC. The payload is the user's memory and may be read until the
	// packet has left, which has to be before the Core is told of another packet
	// or of the time: those may end the request that lends it.
	NextZeroCopy(to *wire.Path, head int, payload []byte) []byte
}

// Canceler is an [Out] that can take back the last packet. One that cannot gets
// a packet of zeros instead, which no peer takes.
type Canceler interface {
	// Cancel takes back the packet that Next returned last. It has to be the
	// last call of Next.
	Cancel()
}

// cancelPacket takes back the packet b, the last that out made room for.
func cancelPacket(out Out, b []byte) {
	if c, ok := out.(Canceler); ok {
		c.Cancel()
		return
	}
	clear(b)
}

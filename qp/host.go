package qp

import (
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// Memory is the registered memory of a protection domain. The slices it returns
// are the application's memory. A Core uses them only until the current call
// returns, or until a packet from [Out.NextZeroCopy] that refers to them was sent.
type Memory interface {
	// Local returns n bytes at addr of the region with this lkey. write
	// requires AccessLocalWrite.
	Local(lkey uint32, addr uint64, n uint32, write bool) ([]byte, Fault)

	// Remote returns n bytes at addr of the region or window with this rkey,
	// for access by the peer of queue pair qpn, which requires the permission
	// need.
	Remote(rkey uint32, addr uint64, n uint32, need verbs.AccessFlags, qpn uint32) ([]byte, Fault)

	// CheckKey checks access by the peer of queue pair qpn to the whole region or
	// window with this rkey.
	CheckKey(rkey uint32, need verbs.AccessFlags, qpn uint32) Fault

	// Bind binds a memory window to queue pair qpn.
	Bind(b *verbs.BindMW, qpn uint32) Fault

	// Invalidate ends the binding of the memory window with this rkey, which
	// must belong to queue pair qpn.
	Invalidate(rkey uint32, qpn uint32) Fault
}

// A Fault is the reason why memory cannot be accessed.
type Fault uint8

const (
	NoFault       Fault = iota
	FaultKey            // no region or window has the key
	FaultDomain         // the region belongs to another protection domain
	FaultQP             // the window is bound to another queue pair
	FaultBounds         // the range exceeds the region
	FaultAccess         // the permission was not granted
	FaultUnbound        // the window is not bound, or already bound
	FaultMisalign       // an atomic's memory is not 8-byte aligned
	FaultMemory         // page fault: the memory was unmapped or protected, or its file was truncated
)

// String implements fmt.Stringer.
func (f Fault) String() string {
	return [...]string{"no fault", "no such key", "other protection domain", "window bound to another queue pair",
		"range outside the region", "permission not granted", "window not in the state needed", "memory not 8-byte aligned",
		"the process cannot access the memory"}[f]
}

// A Host is the adapter of a queue pair.
type Host interface {
	// Complete delivers a completion to the CQ of the send or receive queue.
	// solicited applies to ReqNotify(true).
	Complete(wc verbs.WC, solicited bool)

	// Event raises an asynchronous event of this queue pair.
	Event(t verbs.EventType, failure *verbs.Failure)

	// Path returns the path of an address handle of this adapter, which must
	// not change afterwards, or nil for any other handle. Only UD and GSI queue
	// pairs call it.
	Path(ah verbs.AH) *wire.Path

	// RDMAPeer returns the peer that an address handle stands for, or nil if it
	// stands for none. Only queue pairs with [Config].MaxRDMA call it.
	RDMAPeer(ah verbs.AH) *Peer
}

// A SharedQueue is a shared receive queue.
type SharedQueue interface {
	// Pop moves the oldest receive into wqe, reusing the memory of its SGList,
	// and reports whether there was one.
	Pop(wqe *RecvWQE) bool

	// PushFront returns an unused receive to the front of the queue.
	PushFront(wqe *RecvWQE)
}

// A RecvWQE is a posted receive.
type RecvWQE struct {
	ID     uint64
	SGList []verbs.SGE
}

// An Out is a batch of packets to send.
type Out interface {
	// Next returns memory for one packet of n bytes (BTH to ICRC) to the given
	// path, or nil if the batch is full. The caller fills in all bytes but the
	// last four.
	Next(to *wire.Path, n int) []byte

	// NextZeroCopy is like Next for a packet that consists of head bytes, which it
	// returns, a payload and the ICRC. The payload is the application's memory.
	// It may be read until the packet is sent, which must happen before the
	// next packet or time is passed to the Core, because these may complete the
	// request that owns it.
	NextZeroCopy(to *wire.Path, head int, payload []byte) []byte

	// Cancel takes back the packet that Next or NextZeroCopy returned last.
	Cancel()
}

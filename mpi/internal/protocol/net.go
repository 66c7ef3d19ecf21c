package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// A Net carries out the decisions of a Core. Its methods do not block. It reports
// results by Core.HandlePacket, Core.TransferDone, Core.Resume and Core.FailPeer; the
// last three may be called from within its methods.
//
// Packets to a rank may take several routes and arrive out of order, within MaxEarly
// and MaxEarlyBytes, but none overtakes an RDMAWrite. Until the rank fails, packets are
// neither lost nor duplicated.
//
// Before a Net calls Core.FailPeer, it disconnects the rank: no packet of it arrives
// any more, and it cannot access registered memory.
type Net interface {
	// Limits returns the packet size and the rendezvous protocol for a rank.
	Limits(rank int) Limits

	// Send sends a packet. The payload is copied, or sent, before Send returns. It
	// returns false if there is no room now; Core.Resume follows when there is.
	Send(rank int, h *envelope.Header, payload []byte) bool

	// RegisterMemory lets a rank read b, or write to it, until DeregisterMemory. After
	// an error the Core falls back to RendezvousCopy.
	RegisterMemory(rank int, b []byte, write bool) (envelope.Key, Registration, error)

	// DeregisterMemory ends a registration.
	DeregisterMemory(Registration)

	// RDMARead reads the remote memory of key into b; RDMAWrite writes b to it. A
	// packet sent after an RDMAWrite arrives after the write is complete. If they
	// return nil, the net owns b until it calls Core.TransferDone with transferID, once,
	// also if the rank fails. They return ErrNoRoom if there is no room now;
	// Core.Resume follows when there is. Another error means that b cannot be
	// registered, for example because of a limit of registered memory; the Core falls
	// back to RendezvousCopy.
	RDMARead(rank int, b []byte, key envelope.Key, transferID uint64) error
	RDMAWrite(rank int, b []byte, key envelope.Key, transferID uint64) error
}

// ErrNoRoom is returned by RDMARead and RDMAWrite if the send queue is full.
var ErrNoRoom = errors.New("net: send queue full")

// A Registration identifies the memory of a RegisterMemory call. It is not nil.
type Registration any

// Limits are the properties of the route to a rank.
type Limits struct {
	Eager      int    // maximum payload of a packet in bytes, at least envelope.KeySize
	Rendezvous Scheme // protocol of longer messages
}

// A Scheme is a rendezvous protocol: the way to send a message that is too long for one
// packet.
type Scheme uint8

const (
	RendezvousRead  Scheme = iota // the receiver reads: RTS, RDMA READ, FIN
	RendezvousWrite               // the sender writes: RTS, CTS, RDMA WRITE, FIN
	RendezvousCopy                // in packets: RTS, CTS, DATA
)

// String implements fmt.Stringer.
func (s Scheme) String() string {
	names := [...]string{"read", "write", "copy"}
	if int(s) >= len(names) {
		return fmt.Sprintf("Scheme(%d)", uint8(s))
	}
	return names[s]
}

// An Atomics is a Net with atomic operations on remote memory.
type Atomics interface {
	// RDMAAtomic applies a to the 8 aligned bytes of key, and stores their previous
	// value in b, in the byte order of this machine. Otherwise it is as RDMARead.
	// Packets sent later arrive after it is applied.
	RDMAAtomic(rank int, b []byte, key envelope.Key, a Atomic, transferID uint64) error
}

// An Atomic is an atomic operation: fetch-and-add or compare-and-swap.
type Atomic struct {
	Swap    bool
	Operand uint64 // addend; with Swap, the value to compare with
	New     uint64 // with Swap, the new value
}

// Atomic starts an atomic operation on memory of rank r.Dest, without notification.
// r.Buf has 8 bytes and receives the previous value.
func (c *Core) Atomic(r *Request, key envelope.Key, a Atomic) {
	if _, ok := c.net.(Atomics); !ok || len(r.Buf) != 8 {
		c.enter()
		defer c.exit()
		c.complete(r, fmt.Errorf("rank %d: no atomic operations on %d bytes: %w", r.Dest, len(r.Buf), errors.ErrUnsupported))
		return
	}
	r.atomic = a
	c.startOneSided(r, key, opAtomic)
}

// NoticeLimit is the limit of notices, which are less. The immediate data of a net has the highest bit
// for itself.
const NoticeLimit = 1 << 31

// A Notifier is a Net with RDMA WRITE with immediate data.
type Notifier interface {
	// RDMAWriteImm is Net.RDMAWrite that also causes Core.HandleNotify at the target,
	// with notice, when the memory is written. Packets may overtake it.
	// Core.TransferDone only means that the net no longer owns b.
	RDMAWriteImm(rank int, b []byte, key envelope.Key, notice uint32, transferID uint64) error
}

// PutNotify is Put with a notification: the target's OnNotify is called when the memory
// is written. It is done when r.Buf, which must not be empty, may be reused.
func (c *Core) PutNotify(r *Request, key envelope.Key, notice uint32) {
	if _, ok := c.net.(Notifier); !ok || len(r.Buf) == 0 || notice >= NoticeLimit {
		c.enter()
		defer c.exit()
		c.complete(r, fmt.Errorf("rank %d: put with notification of %d bytes: %w", r.Dest, len(r.Buf), errors.ErrUnsupported))
		return
	}
	r.notice = notice
	c.startOneSided(r, key, opPutNotify)
}

// HandleNotify handles the notification of an RDMAWriteImm to local memory. A non-nil
// error is a protocol violation: the caller disconnects the rank and calls FailPeer.
func (c *Core) HandleNotify(from int, notice uint32) error {
	c.enter()
	defer c.exit()
	switch {
	case c.peerState(from).err != nil:
		c.Stats.Dropped++
		return nil
	case c.OnNotify == nil:
		return fmt.Errorf("%w: rank %d: unexpected notification %d", ErrProtocol, from, notice)
	}
	if err := c.OnNotify(from, notice); err != nil {
		return fmt.Errorf("%w: rank %d: %w", ErrProtocol, from, err)
	}
	return nil
}

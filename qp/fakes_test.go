package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// memory is the registered memory of a protection domain as a map.
type memory struct {
	regions map[uint32]*region
	next    uint32
}

// region is a memory region or a memory window.
type region struct {
	base    uint64
	bytes   []byte
	access  verbs.AccessFlags
	foreign bool   // belongs to another protection domain
	of      uint32 // windows: key of the region that they may be bound to
	bound   uint32 // windows: queue pair that they are bound to
}

func newMemory() *memory { return &memory{regions: map[uint32]*region{}, next: 0x100} }

// add registers bytes at address base and returns the key.
func (m *memory) add(base uint64, bytes []byte, access verbs.AccessFlags) uint32 {
	m.next += 0x100
	m.regions[m.next] = &region{base: base, bytes: bytes, access: access}
	return m.next
}

// window creates a window that can be bound to the region with key of.
func (m *memory) window(of uint32) uint32 {
	m.next += 0x100
	m.regions[m.next] = &region{of: of}
	return m.next
}

func (r *region) at(addr uint64, n uint32) ([]byte, Fault) {
	off := addr - r.base
	if off > uint64(len(r.bytes)) || uint64(n) > uint64(len(r.bytes))-off {
		return nil, FaultBounds
	}
	return r.bytes[off : off+uint64(n) : off+uint64(n)], NoFault
}

func (m *memory) Local(lkey uint32, addr uint64, n uint32, write bool) ([]byte, Fault) {
	r := m.regions[lkey]
	switch {
	case r == nil || r.of != 0:
		return nil, FaultKey
	case r.foreign:
		return nil, FaultDomain
	case write && r.access&verbs.AccessLocalWrite == 0:
		return nil, FaultAccess
	}
	return r.at(addr, n)
}

func (m *memory) Remote(rkey uint32, addr uint64, n uint32, need verbs.AccessFlags, qpn uint32) ([]byte, Fault) {
	r := m.regions[rkey]
	switch {
	case r == nil:
		return nil, FaultKey
	case r.foreign:
		return nil, FaultDomain
	case r.of != 0 && r.bound == 0:
		return nil, FaultUnbound
	case r.of != 0 && r.bound != qpn:
		return nil, FaultQP
	case need&^r.access != 0:
		return nil, FaultAccess
	}
	return r.at(addr, n)
}

func (m *memory) CheckKey(rkey uint32, need verbs.AccessFlags, qpn uint32) Fault {
	_, f := m.Remote(rkey, m.base(rkey), 0, need, qpn)
	return f
}

// base returns the first address of a region, or 0.
func (m *memory) base(key uint32) uint64 {
	if r := m.regions[key]; r != nil {
		return r.base
	}
	return 0
}

func (m *memory) Bind(b *verbs.BindMW, qpn uint32) Fault {
	w := m.regions[b.RKey]
	switch {
	case w == nil || w.of == 0:
		return FaultKey
	case w.bound != 0:
		return FaultUnbound
	}
	bytes, f := m.regions[w.of].at(b.Addr, uint32(b.Length))
	if f == NoFault {
		w.base, w.bytes, w.access, w.bound = b.Addr, bytes, b.Access, qpn
	}
	return f
}

func (m *memory) Invalidate(rkey, qpn uint32) Fault {
	w := m.regions[rkey]
	switch {
	case w == nil || w.of == 0:
		return FaultKey
	case w.bound == 0:
		return FaultUnbound
	case w.bound != qpn:
		return FaultQP
	}
	w.bound = 0
	return NoFault
}

// batch is an Out with space for some packets, whose memory initially has arbitrary content.
type batch struct {
	room    int
	packets []laidOut
}

type laidOut struct {
	to      *wire.Path
	raw     []byte
	payload []byte // separate until the packet is sent
}

// leave returns the packet as it is sent.
func (p *laidOut) leave() []byte {
	copy(p.raw[len(p.raw)-wire.ICRCLen-len(p.payload):], p.payload)
	return p.raw
}

const garbage = 0xa5

func (b *batch) Next(to *wire.Path, n int) []byte {
	if len(b.packets) >= b.room {
		return nil
	}
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = garbage
	}
	b.packets = append(b.packets, laidOut{to: to, raw: raw})
	return raw
}

func (b *batch) NextZeroCopy(to *wire.Path, head int, payload []byte) []byte {
	raw := b.Next(to, head+len(payload)+wire.ICRCLen)
	if raw == nil {
		return nil
	}
	b.packets[len(b.packets)-1].payload = payload
	return raw[:head:head]
}

func (b *batch) Cancel() { b.packets = b.packets[:len(b.packets)-1] }

// handle is an address handle.
type handle struct {
	verbs.AH
	path wire.Path
}

// handles resolves the address handles of the tests. Hosts embed it.
type handles struct{}

func (handles) Path(ah verbs.AH) *wire.Path {
	if h, ok := ah.(*handle); ok {
		return &h.path
	}
	return nil
}

func (handles) RDMAPeer(ah verbs.AH) *Peer {
	h, _ := ah.(peerHandle)
	return h.peer
}

// checkInvariants checks the invariants of a queue pair.
func checkInvariants(t testing.TB, c *Core) {
	t.Helper()
	ok := func(holds bool, what string, args ...any) {
		if !holds {
			t.Helper()
			require.Failf(t, "invariant broken", what, args...)
		}
	}
	ok(c.sq.tail-c.sq.head <= c.sq.limit, "send queue holds %d of %d", c.sq.len(), c.sq.limit)
	ok(c.rq.tail-c.rq.head <= c.rq.limit, "receive queue holds %d of %d", c.rq.len(), c.rq.limit)
	ok(c.cur-c.sq.head <= c.sq.tail-c.sq.head, "cur %d is not between %d and %d", c.cur, c.sq.head, c.sq.tail)
	ok(c.una.LessEq(c.next) && c.next.LessEq(c.top), "una %d, next %d, top %d", c.una, c.next, c.top)
	if c.typ != verbs.RC || c.state != sRTS && c.state != sSQD {
		return
	}
	ok(c.unackedBytes() >= 0, "%d bytes in flight", c.unackedBytes())
	ok(int(c.rdOut) <= c.readDepth(c.attr.MaxRdAtomic), "%d reads and atomics outstanding", c.rdOut)
	out, bytes := c.rdOut, c.rdBytes
	c.recountReads()
	ok(out == c.rdOut && bytes == c.rdBytes, "rdOut %d and rdBytes %d, should be %d and %d", out, bytes, c.rdOut, c.rdBytes)
	ok(c.una == c.top || c.retry.Deadline() != 0 || c.attr.Timeout == 0, "packets in flight without a deadline")
	for i := c.sq.head; i != c.sq.tail; i++ {
		w := c.sq.wqeAt(i)
		ok(w.started || int32(i-c.cur) >= 0, "request %d was passed but not started", i)
	}
}

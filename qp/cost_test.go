package qp

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// loop is two queue pairs connected without an environment that costs time or memory: packets are
// built in a fixed slab, parsed in place, and handled.
type loop struct {
	*pair
	slab    [64][wire.MaxMTU + 128]byte
	lengths [64]int
	used    int
	pkt     wire.Packet
}

// newLoop returns a connected pair whose hosts only count.
func newLoop(t testing.TB, opts ...option) *loop {
	l := &loop{pair: connect(t, append(opts, withConfig(func(c *Config) { c.Host = &countingHost{} }))...)}
	return l
}

// countingHost is a Host that only counts.
type countingHost struct {
	handles
	completions, events, failures int
}

func (h *countingHost) Complete(wc verbs.WC, _ bool) {
	h.completions++
	if wc.Status != verbs.WCSuccess {
		h.failures++
	}
}
func (h *countingHost) Event(verbs.EventType, *verbs.Failure) { h.events++ }

// Next implements Out.
func (l *loop) Next(_ *wire.Path, n int) []byte {
	if l.used == len(l.slab) {
		return nil
	}
	l.lengths[l.used] = n
	l.used++
	return l.slab[l.used-1][:n]
}

func (l *loop) NextZeroCopy(to *wire.Path, head int, payload []byte) []byte {
	b := l.Next(to, head+len(payload)+wire.ICRCLen)
	if b == nil {
		return nil
	}
	copy(b[head:], payload)
	return b[:head]
}

// Cancel implements Out.
func (l *loop) Cancel() { l.used-- }

// exchange transfers packets until neither side has any.
func (l *loop) exchange() {
	for idle := 0; idle < 2; {
		idle = 0
		for _, n := range [2]*node{l.a, l.b} {
			more := n.Drain(l.now, l)
			if !more {
				n.DrainAck(l.now, l)
			}
			if l.used == 0 {
				idle++
			}
			l.handOver(n)
		}
	}
}

func (l *loop) handOver(from *node) {
	to := l.peer(from)
	l.pkt.Src, l.pkt.Dst = from.addr, to.addr
	for i := range l.used {
		l.now++
		if l.pkt.Parse(l.slab[i][:l.lengths[i]]) != wire.DropNone || to.HandlePacket(l.now, &l.pkt) != wire.DropNone {
			l.t.Fatalf("%v was dropped", l.pkt.BTH.Opcode)
		}
	}
	l.used = 0
}

// cycle posts the requests, with receives for those that need one, and exchanges packets until they
// complete.
func (l *loop) cycle(wrs []verbs.SendWR, recvs []verbs.RecvWR) {
	if len(recvs) > 0 {
		if _, err := l.b.PostRecv(recvs); err != nil {
			l.t.Fatal(err)
		}
	}
	if _, err := l.a.PostSend(l.now, wrs); err != nil {
		l.t.Fatal(err)
	}
	l.exchange()
}

// works are the kinds of requests under test.
func (l *loop) works() map[string]verbs.SendWR {
	inline := l.write(1, 0, 0, 0)
	inline.Flags, inline.SGList, inline.InlineData = inline.Flags|verbs.SendInline, nil, make([]byte, 16)
	list := l.write(1, 0, 0, 0)
	list.SGList = []verbs.SGE{l.a.sge(0, 100), l.a.sge(200, 1000), l.a.sge(2000, 3)}
	return map[string]verbs.SendWR{
		"send": l.send(1, 0, 8), "write": l.write(1, 0, 0, 8), "long write": l.write(1, 0, 0, 20_000),
		"write with immediate": l.writeImm(1, 0, 0, 8, 1), "inline write": inline, "list": list,
		"read": l.read(1, 0, 0, 8), "long read": l.read(1, 0, 0, 20_000), "fetch and add": l.fetchAdd(1, 0, 0, 1),
		"compare and swap": l.cmpSwap(1, 0, 0, 0, 0),
	}
}

// TestNoAllocations checks that posting, draining, handling, acknowledging and completing do not
// allocate after the rings have grown; neither do timeouts, NAKs and their consequences.
func TestNoAllocations(t *testing.T) {
	for _, credits := range []bool{false, true} {
		l := newLoop(t, withMTU(verbs.MTU1024), func(o *options) { o.credits = credits })
		recv := []verbs.RecvWR{{WRID: 1, SGList: []verbs.SGE{l.b.sge(0, 64)}}}
		for what, wr := range l.works() {
			wrs := []verbs.SendWR{wr, wr, wr}
			var recvs []verbs.RecvWR
			if w := (sendWQE{op: wr.Opcode}); w.consumesRecv() {
				recvs = append(append(append(recvs, recv...), recv...), recv...)
			}
			cycle := func() { l.cycle(wrs, recvs) }
			for range 50 {
				cycle()
			}
			require.Zero(t, testing.AllocsPerRun(100, cycle), what)
		}
		wrs := []verbs.SendWR{l.write(1, 0, 0, 5000), l.read(2, 0, 0, 5000)}
		lossy := func() {
			_, _ = l.a.PostSend(l.now, wrs)
			l.a.Drain(l.now, l)
			l.used = 0 // lost
			l.now = l.a.Deadline()
			l.a.Advance(l.now)
			l.exchange()
		}
		lossy()
		require.Zero(t, testing.AllocsPerRun(100, lossy), "a timeout")
	}
}

// TestNoAllocationsUnreliable checks the same for datagrams and unreliable connections, and for
// refused packets.
func TestNoAllocationsUnreliable(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
		l := newLoop(t, ofType(typ), withMTU(verbs.MTU1024))
		wrs := []verbs.SendWR{l.toPeer(l.send(1, 0, 700))}
		recvs := []verbs.RecvWR{{WRID: 1, SGList: []verbs.SGE{l.b.sge(0, 50), l.b.sge(100, 1000)}}}
		cycle := func() { l.cycle(wrs, recvs) }
		cycle()
		for range 50 {
			cycle()
		}
		require.Zero(t, testing.AllocsPerRun(100, cycle), typ)
	}
	p := connect(t)
	stray := p.request(wire.RCSendOnly, 77, 8, nil)
	old := p.request(wire.RCSendOnly, -5, 8, nil)
	ghost := p.response(p.b, wire.RCAck, 5, 0x1f, nil)
	drop := func() {
		p.b.HandlePacket(p.now, stray)
		p.b.HandlePacket(p.now, old)
		p.a.HandlePacket(p.now, ghost)
	}
	for range 50 {
		drop()
	}
	require.Zero(t, testing.AllocsPerRun(100, drop), "dropped packets")
}

// idleBytes returns the memory of a connected queue pair.
func idleBytes(c *Core) uintptr {
	return unsafe.Sizeof(*c) +
		uintptr(cap(c.sq.wqes))*unsafe.Sizeof(sendWQE{}) + uintptr(cap(c.sq.sges))*unsafe.Sizeof(verbs.SGE{}) + uintptr(cap(c.sq.data)) +
		uintptr(cap(c.rq.ids))*8 + uintptr(cap(c.rq.nsge)) + uintptr(cap(c.rq.sges))*unsafe.Sizeof(verbs.SGE{}) +
		uintptr(cap(c.msg.wqe.SGList))*unsafe.Sizeof(verbs.SGE{}) +
		uintptr(cap(c.recorder.ring))*unsafe.Sizeof(record{})
}

// TestIdleMemory checks that an idle connected queue pair stays well below 4 KiB, the limit with
// its environment in an adapter, also after use.
func TestIdleMemory(t *testing.T) {
	p := connect(t)
	fresh := idleBytes(p.a.Core)
	p.a.post(p.now, p.write(1, 0, 0, 8))
	p.b.recv(1, 0, 8)
	p.a.post(p.now, p.send(2, 0, 8))
	p.exchange()
	used := idleBytes(p.a.Core)
	t.Logf("Core %d bytes, sendWQE %d; connected %d, after some messages %d", unsafe.Sizeof(Core{}), unsafe.Sizeof(sendWQE{}), fresh, used)
	require.Less(t, fresh, uintptr(1536))
	require.Less(t, used, uintptr(3072))
}

func benchmark(b *testing.B, list int, opts []option, request func(l *loop) verbs.SendWR, bytes int64) {
	l := newLoop(b, opts...)
	wrs := []verbs.SendWR{}
	for range list {
		wrs = append(wrs, unsignaled(request(l)))
	}
	wrs[list-1].Flags |= verbs.SendSignaled
	l.cycle(wrs, nil)
	b.SetBytes(bytes)
	b.ReportAllocs()
	for i := 0; i < b.N; i += list {
		l.cycle(wrs, nil)
	}
}

// BenchmarkWrite8 measures a message in both queue pairs together: post, build, parse, place,
// acknowledge, complete, without socket and ICRC.
func BenchmarkWrite8(b *testing.B) {
	benchmark(b, 32, nil, func(l *loop) verbs.SendWR { return l.write(1, 0, 0, 8) }, 8)
}

func BenchmarkWrite8Single(b *testing.B) {
	benchmark(b, 1, nil, func(l *loop) verbs.SendWR { return l.write(1, 0, 0, 8) }, 8)
}

func BenchmarkWrite4096(b *testing.B) {
	benchmark(b, 16, []option{withMTU(verbs.MTU4096)}, func(l *loop) verbs.SendWR { return l.write(1, 0, 0, 4096) }, 4096)
}

func BenchmarkWrite64K(b *testing.B) {
	benchmark(b, 1, []option{withMTU(verbs.MTU4096)}, func(l *loop) verbs.SendWR { return l.write(1, 0, 0, regionBytes) }, regionBytes)
}

func BenchmarkRead4096(b *testing.B) {
	benchmark(b, 4, []option{withMTU(verbs.MTU4096)}, func(l *loop) verbs.SendWR { return l.read(1, 0, 0, 4096) }, 4096)
}

func BenchmarkFetchAdd(b *testing.B) {
	benchmark(b, 4, nil, func(l *loop) verbs.SendWR { return l.fetchAdd(1, 0, 0, 1) }, 8)
}

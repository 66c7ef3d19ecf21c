package protocol

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

var (
	firstSeed = flag.Uint64("seed", 1, "first seed of the simulations")
	seeds     = flag.Uint64("seeds", 25, "number of seeds of each")
)

// everySeed runs a simulation for each seed.
func everySeed(t *testing.T, run func(t *testing.T, seed uint64)) {
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		if t.Failed() {
			return
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { run(t, seed) })
	}
}

// world is two ends and the queue pairs that connect them. The order of events is random, except
// within a queue.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	ends  [2]*end
	mem   map[uint32]*region // by key
	key   uint32
	steps int
}

// region is registered memory. It must not be accessed after it is returned.
type region struct {
	Memory
	what string
	back bool
}

// end is a core with its queue pair.
type end struct {
	w    *world
	name string
	core *Core
	cfg  Config
	peer *end

	sq       []*request // posted, not executed
	executed []*request // not completed
	cq       []verbs.WC // not polled
	rq       []verbs.RecvWR
	order    []*request // requests that use a slot of the send queue

	old    Memory // receives that are being replaced
	writer writer
	reader reader
}

// request is a send request in the adapter.
type request struct {
	verbs.SendWR
	data   []byte // the sent or written data when it was posted
	region *region
	off    int
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, rng: rand.New(rand.NewPCG(seed, 0)), mem: make(map[uint32]*region)}
}

// between returns a number from lo to hi.
func (w *world) between(lo, hi int) int { return lo + w.rng.IntN(hi-lo+1) }

// chance reports true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// register registers memory of n bytes.
func (w *world) register(what string, n int) Memory {
	w.key += 1 + w.rng.Uint32N(9)
	m := Memory{Bytes: make([]byte, n), Addr: uint64(w.key) << 32, LKey: w.key, RKey: w.key}
	w.mem[w.key] = &region{Memory: m, what: what}
	return m
}

// giveBack ends the use of memory, and overwrites it.
func (w *world) giveBack(m Memory) {
	r := w.mem[m.RKey]
	require.False(w.t, r.back)
	r.back = true
	for i := range r.Bytes {
		r.Bytes[i] = 0xEE
	}
}

// find resolves n bytes like an adapter.
func (w *world) find(key uint32, addr uint64, n int, who string) (r *region, off int) {
	r = w.mem[key]
	require.NotNil(w.t, r, "%s: key %d", who, key)
	require.False(w.t, r.back, "%s: %d bytes of %s, which has been given back", who, n, r.what)
	require.True(w.t, addr >= r.Addr && addr+uint64(n) <= r.Addr+uint64(len(r.Bytes)), "%s: %d bytes at 0x%x of %s at 0x%x", who, n, addr, r.what, r.Addr)
	return r, int(addr - r.Addr)
}

// drawConfig draws small and odd sizes.
func (w *world) drawConfig(d flow.Control) Config {
	c := Config{
		FlowControl: d, Buffers: w.between(1, 6), BufferBytes: w.between(64, 200),
		Queue: w.between(4, 24), Receives: w.between(8, 24), MaxAdverts: 1,
	}
	if w.chance(2) {
		c.InitialBytes = w.between(1, c.ringCapacity())
	}
	c.Window = w.between(1, c.ringCapacity()/2)
	if w.chance(2) {
		c.Window = min(c.ringCapacity()/2, w.between(16, 64))
	}
	if w.chance(2) {
		c.MaxBufferBytes = c.BufferBytes + w.between(-10, 100)
	}
	require.NoError(w.t, c.Validate())
	return c
}

// allocate allocates the memory of a configuration.
func (w *world) allocate(name string, c *Config) {
	c.Send = w.register(name+"'s send buffer", c.SendBytes())
	c.Slots = w.register(name+"'s receives", c.SlotBytes())
	if n := c.RingBytes(); n > 0 {
		c.Ring = w.register(name+"'s ring", n)
	}
}

// connect connects the two ends: a requests its flow control, b has it or, being a standard peer,
// does not know it.
func (w *world) connect(a, b Config, plain bool) {
	local, remote := netip.MustParseAddrPort("192.0.2.1:50000"), netip.MustParseAddr("192.0.2.2")
	w.allocate("a", &a)
	w.ends[0] = &end{w: w, name: "a", cfg: a, core: New(a)}
	hello, err := bsdh.ParseHello(a.Hello(local, remote).Append(nil))
	require.NoError(w.t, err)
	if plain {
		hello.Extension = bsdh.Extension{}
	}
	b, err = b.Negotiate(&hello)
	require.NoError(w.t, err)
	peerA, err := PeerFromHello(&hello)
	require.NoError(w.t, err)
	w.allocate("b", &b)
	w.ends[1] = &end{w: w, name: "b", cfg: b, core: New(b)}
	ack, err := bsdh.ParseHelloAck(b.HelloAck().Append(nil))
	require.NoError(w.t, err)
	peerB, err := a.PeerFromHelloAck(&ack)
	require.NoError(w.t, err)
	w.ends[0].peer, w.ends[1].peer = w.ends[1], w.ends[0]
	for _, e := range w.ends {
		if w.chance(2) {
			e.core.controls.depth = uint64(w.between(4, 8))
		}
		e.post()
	}
	w.ends[0].core.Start(peerB)
	w.ends[0].post()
	w.ends[1].core.Start(peerA)
	w.ends[1].post()
}

// post posts the requests of the core like a driver.
func (e *end) post() {
	w := e.w
	for _, wr := range e.core.Receives() {
		require.Len(w.t, wr.SGList, 1)
		wr.SGList = slices.Clone(wr.SGList)
		w.find(wr.SGList[0].LKey, wr.SGList[0].Addr, int(wr.SGList[0].Length), e.name+"'s receive")
		e.rq = append(e.rq, wr)
	}
	require.LessOrEqual(w.t, len(e.rq), e.cfg.ReceiveQueue())
	for _, wr := range e.core.Sends() {
		wr.SGList = slices.Clone(wr.SGList)
		r := &request{SendWR: wr}
		if wr.Flags&verbs.SendInline != 0 {
			require.LessOrEqual(w.t, len(wr.InlineData), MaxInline)
			r.data = bytes.Clone(wr.InlineData)
		} else if len(wr.SGList) > 0 {
			require.Len(w.t, wr.SGList, 1)
			s := wr.SGList[0]
			r.region, r.off = w.find(s.LKey, s.Addr, int(s.Length), e.name+"'s request")
			r.data = bytes.Clone(r.localMemory())
			if wr.Opcode == verbs.WRRDMARead {
				r.data = make([]byte, s.Length)
			}
		}
		e.sq = append(e.sq, r)
		e.order = append(e.order, r)
	}
	require.LessOrEqual(w.t, len(e.order), e.cfg.SendQueue(), "the send queue is full")
	e.core.ClearPosted()
}

// localMemory returns a request's local memory.
func (r *request) localMemory() []byte { return r.region.Bytes[r.off:][:r.SGList[0].Length] }

// requireUnchanged reports whether the memory of a request is unchanged.
func (r *request) requireUnchanged(t *testing.T, when string) {
	if r.region != nil && r.Opcode != verbs.WRRDMARead {
		require.False(t, r.region.back, "%s: memory that is being sent has been given back", when)
		require.True(t, bytes.Equal(r.data, r.localMemory()), "%s: memory that is being sent has been changed", when)
	}
}

// execute executes the next request, and reports whether it could.
func (e *end) execute() bool {
	if len(e.sq) == 0 {
		return false
	}
	w, r := e.w, e.sq[0]
	r.requireUnchanged(w.t, "execution")
	switch r.Opcode {
	case verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWriteWithImm:
		wc := verbs.WC{Opcode: verbs.WCRecv, ByteLen: uint32(len(r.data))}
		if r.Opcode == verbs.WRSendWithImm {
			wc.Flags, wc.Imm = verbs.WCWithImm, r.Imm
		}
		if r.Opcode == verbs.WRRDMAWriteWithImm { // the bytes are placed before the receive is looked up
			wc.Opcode, wc.Flags, wc.Imm = verbs.WCRecvRDMAWithImm, verbs.WCWithImm, r.Imm
			to, off := w.find(r.RKey, r.RemoteAddr, len(r.data), e.name+"'s write")
			copy(to.Bytes[off:], r.data)
		}
		p := e.peer
		if len(p.rq) == 0 {
			require.Equal(w.t, flow.NIC, e.core.peer.FlowControl, "%s sent a message, and there is no receive", e.name)
			return false
		}
		recv := p.rq[0]
		p.rq = p.rq[1:]
		if r.Opcode != verbs.WRRDMAWriteWithImm {
			to, off := w.find(recv.SGList[0].LKey, recv.SGList[0].Addr, int(recv.SGList[0].Length), p.name+"'s receive")
			require.LessOrEqual(w.t, len(r.data), int(recv.SGList[0].Length), "%s sent more than the receive takes", e.name)
			copy(to.Bytes[off:], r.data)
		}
		wc.WRID = recv.WRID
		p.cq = append(p.cq, wc)
	case verbs.WRRDMAWrite:
		if len(r.data) > 0 {
			to, off := w.find(r.RKey, r.RemoteAddr, len(r.data), e.name+"'s write")
			copy(to.Bytes[off:], r.data)
		}
	case verbs.WRRDMARead:
		from, off := w.find(r.RKey, r.RemoteAddr, len(r.data), e.name+"'s read")
		require.False(w.t, r.region.back)
		copy(r.localMemory(), from.Bytes[off:])
	default:
		require.Fail(w.t, "opcode")
	}
	e.sq = e.sq[1:]
	e.executed = append(e.executed, r)
	return true
}

// complete completes the oldest executed request.
func (e *end) complete() bool {
	if len(e.executed) == 0 {
		return false
	}
	r := e.executed[0]
	e.executed = e.executed[1:]
	r.requireUnchanged(e.w.t, "completion")
	if r.Flags&verbs.SendSignaled != 0 {
		wc := verbs.WC{WRID: r.WRID, Opcode: verbs.WCSend}
		switch r.Opcode {
		case verbs.WRRDMARead:
			wc.Opcode = verbs.WCRDMARead
		case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm:
			wc.Opcode = verbs.WCRDMAWrite
		}
		e.cq = append(e.cq, wc)
	}
	return true
}

// poll passes up to n completions to the core.
func (e *end) poll(n int) bool {
	n = min(n, len(e.cq))
	for range n {
		wc := e.cq[0]
		e.cq = e.cq[1:]
		if !wc.Opcode.IsRecv() {
			for done := false; !done; e.order = e.order[1:] {
				done = e.order[0].Flags&verbs.SendSignaled != 0
			}
		}
		e.core.HandleCompletion(&wc)
		require.NoError(e.w.t, e.core.Err(), "%s", e.name)
		if e.core.peer.FlowControl == flow.Credit {
			require.GreaterOrEqual(e.w.t, e.core.slots.posted, flow.ReservedCredits, "receives for messages without data")
		}
		e.pollUrgent()
		if e.w.chance(3) {
			e.post()
		}
	}
	e.post()
	return n > 0
}

package qp

import (
	"fmt"
	"math/bits"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

const (
	readPieces = 16 // of an MTU, that one request asks for at most
	turn       = 16 // packets that a peer gets until it is another's turn
)

// sendRDMA lays out requests, peer by peer, and reports whether the batch is full.
func (c *Core) sendRDMA(now Time, out Out) bool {
	if c.state != sRTS && c.state != sSQD {
		return false
	}
	for r := c.rdma; r.active.Len() > 0; {
		p := *r.active.Front()
		got := sent
		for i := 0; i < turn && got == sent; i++ {
			got = p.send(now, out)
		}
		if got == full {
			return true
		}
		p.active = got == sent
		r.active.Pop()
		if p.active {
			r.active.Push(p)
		}
	}
	return false
}

// send lays out the next request packet of a peer, if one may leave.
func (p *Peer) send(now Time, out Out) outcome {
	if p.lost > 0 {
		for psn := p.una; psn != p.next; psn = psn.Add(1) {
			if s := p.place(psn); s.op != nil && s.lost {
				if !p.readable(s) {
					p.settle(s)
					p.advance(now)
					return sent
				}
				got := p.transmit(now, out, psn, s)
				if got == blocked { // it cannot be read after all
					p.settle(s)
					p.advance(now)
					return sent
				}
				return got
			}
		}
	}
	if p.waiting.Len() == 0 || p.next.Sub(p.una) >= reliability.ReplayWindow || p.core.state == sSQD && !(*p.waiting.Front()).started {
		return blocked
	}
	o := *p.waiting.Front()
	if o.status != verbs.WCSuccess { // of what has left something failed
		p.waiting.Pop()
		if o.slots == 0 {
			p.finish(o)
			p.idle()
		}
		return sent
	}
	if o.flags&verbs.SendFence != 0 && !o.started && p.under > p.waiting.Len() {
		if p.asking > 0 || p.lost > 0 {
			return blocked
		}
		p.lose(p.oldest()) // it asks now
		return sent
	}
	if p.flight == nil {
		p.takeFlight()
	}
	r := p.core.rdma
	s := slot{op: o, off: o.issued}
	switch {
	case o.op == verbs.WRRDMAWrite:
		s.n = min(p.mtu, o.length-o.issued)
	case o.op == verbs.WRRDMARead:
		s.n = min(readPieces*p.mtu, o.length-o.issued)
		if !p.core.reads.Allows(r.reading, int(s.n)) {
			if !p.hungry {
				p.hungry = true
				r.hungry = append(r.hungry, p)
			}
			return blocked
		}
	default:
		s.n = 8
	}
	if !p.window.Allows(p.flying, p.cost(o, &s)) {
		return blocked
	}
	if !p.readable(&s) {
		return sent
	}
	psn := p.next
	at := p.place(psn)
	*at = s
	at.lost = true // until it leaves
	p.lost++
	switch p.transmit(now, out, psn, at) {
	case full:
		p.lost--
		*at = slot{}
		return full
	case blocked: // it cannot be read after all
		p.lost--
		*at = slot{}
		return sent
	}
	p.next = psn.Add(1)
	o.slots++
	o.started = true
	if o.issued += s.n; o.issued >= o.length {
		p.waiting.Pop()
	}
	if o.op == verbs.WRRDMARead {
		r.reading += int(s.n)
	}
	return sent
}

func (p *Peer) takeFlight() {
	r := p.core.rdma
	if n := len(r.flights); n > 0 {
		p.flight, r.flights = r.flights[n-1], r.flights[:n-1]
		return
	}
	p.flight = new([reliability.ReplayWindow]slot)
}

// readable checks that what a write is to send may be read. If not, the operation
// fails.
func (p *Peer) readable(s *slot) bool {
	o := s.op
	if o.op != verbs.WRRDMAWrite || len(o.inline) > 0 {
		return true
	}
	m := p.core.checkList(o.sgl, s.off, s.n, false)
	if !m.ok() {
		o.fail(verbs.WCLocProtErr, localFailure(m))
	}
	return m.ok()
}

func localFailure(m memFault) *verbs.Failure {
	return &verbs.Failure{Event: "local memory cannot be used: " + m.fault.String(),
		Key: m.sge.LKey, Addr: m.sge.Addr, Length: m.sge.Length, Cause: localCause(m.fault)}
}

// transmit lays out the packet of a slot, which leaves for the first time or again.
// It returns blocked, and has failed the operation, if the data cannot be read.
func (p *Peer) transmit(now Time, out Out, psn wire.PSN, s *slot) outcome {
	c, o := p.core, s.op
	op := wire.UDXWriteOnly
	switch o.op {
	case verbs.WRRDMARead:
		op = wire.UDXReadRequest
	case verbs.WRAtomicCmpSwap:
		op = wire.UDXCmpSwap
	case verbs.WRAtomicFetchAdd:
		op = wire.UDXFetchAdd
	}
	payload := 0
	if op == wire.UDXWriteOnly {
		payload = int(s.n)
	}
	info := op.Info()
	pad := wire.PadFor(payload)
	b := out.Next(&p.path, info.HeaderLen+payload+pad+wire.ICRCLen)
	if b == nil {
		return full
	}
	if op == wire.UDXWriteOnly {
		body := b[info.HeaderLen : info.HeaderLen+payload+pad]
		if len(o.inline) > 0 {
			copy(body, o.inline[s.off:s.off+s.n])
		} else if m := c.gather(body[:payload], o.sgl, s.off); !m.ok() {
			cancel(out, b)
			o.fail(verbs.WCLocProtErr, localFailure(m))
			return blocked
		}
		clear(body[payload:])
	}
	s.asks = p.wantsAnswer(s)
	p.head(b, op, pad, psn, s.asks)
	h := b[wire.BTHLen+wire.DETHLen:]
	va := o.remote + uint64(s.off)
	switch op {
	case wire.UDXWriteOnly:
		wire.RETH{VA: va, RKey: o.rkey, Length: s.n}.Put(h)
		c.counters.SentBytes += uint64(payload)
	case wire.UDXReadRequest:
		first, n := p.missing(s)
		wire.RETH{VA: va + uint64(first), RKey: o.rkey, Length: n}.Put(h)
	case wire.UDXCmpSwap:
		wire.AtomicETH{VA: va, RKey: o.rkey, SwapAdd: o.swap, Compare: o.operand}.Put(h)
	default:
		wire.AtomicETH{VA: va, RKey: o.rkey, SwapAdd: o.operand}.Put(h)
	}
	p.departed(now, op, psn, s)
	return sent
}

// wantsAnswer decides whether the packet of a slot asks to be answered at once, as
// Core.asks does: of writes those that leave again, those that end an operation somebody
// waits for, and so many others that neither window is used up before an answer comes.
func (p *Peer) wantsAnswer(s *slot) bool {
	c, o := p.core, s.op
	if o.op != verbs.WRRDMAWrite || s.at != 0 || p.careful > 0 {
		p.unasked = 0
		p.careful -= min(p.careful, 1)
		return true
	}
	every := min(maxUnasked, max(1, p.window.Size()/4/int(p.mtu)))
	last := s.off+s.n >= o.length
	hurried := o.flags&verbs.SendUnhurried == 0 || 2*c.rdma.ops >= c.rdma.most
	if p.unasked++; int(p.unasked) >= every || last && hurried || !p.window.Allows(p.flying+p.cost(o, s), int(p.mtu)+PacketCost) {
		p.unasked = 0
		return true
	}
	return false
}

// head writes BTH and DETH of a packet to the peer.
func (p *Peer) head(b []byte, op wire.Opcode, pad int, psn wire.PSN, asks bool) {
	bth := wire.BTH{Opcode: op, AckReq: asks, Pad: uint8(pad), PKey: p.core.pkey, DestQPN: p.qpn, PSN: psn}
	bth.Put(b)
	wire.DETH{QKey: p.out, SrcQPN: p.core.num}.Put(b[wire.BTHLen:])
	p.core.counters.SentPkts++
}

// departed notes that the packet of a slot leaves.
func (p *Peer) departed(now Time, op wire.Opcode, psn wire.PSN, s *slot) {
	c := p.core
	c.recorder.packet(now, true, op, psn, 0)
	if s.at != 0 {
		s.again = true
		c.counters.Retransmitted++
		p.rtt.Abandon()
	} else if s.asks {
		p.rtt.Sent(now, psn)
	}
	if p.flying == 0 && p.deadline == 0 {
		p.progress = now
	}
	s.lost, s.at, s.order = false, now, p.order
	p.lost--
	p.order++
	p.flying += p.cost(s.op, s)
	if s.asks {
		p.asking++
	}
	if p.deadline == 0 || s.asks && p.asking == 1 {
		p.setDeadline(now)
	}
}

// pieces is how many packets answer a read slot.
func (p *Peer) pieces(s *slot) uint32 { return max(1, (s.n+p.mtu-1)/p.mtu) }

// missing is the range of a read slot's bytes from the first to the last piece that has
// not come.
func (p *Peer) missing(s *slot) (first, n uint32) {
	all := uint32(1)<<p.pieces(s) - 1
	open := all &^ s.got
	lo, hi := uint32(bits.TrailingZeros32(open)), uint32(bits.Len32(open))
	return lo * p.mtu, min(hi*p.mtu, s.n) - lo*p.mtu
}

// setDeadline sets the time when the oldest request should be asked for again.
func (p *Peer) setDeadline(now Time) {
	after := p.rtt.ProbeAfter()
	if p.asking == 0 {
		after = max(after, reliability.LazyProbe)
	}
	p.deadline = now + Time(min(after<<min(p.asks, 6), 320*reliability.Millisecond))
	r := p.core.rdma
	r.deadline = reliability.Earlier(r.deadline, p.deadline)
}

// advanceRDMA does what is due.
func (c *Core) advanceRDMA(now Time) {
	r := c.rdma
	if r.deadline == 0 || now < r.deadline {
		return
	}
	r.due(now)
	for i := len(r.busy) - 1; i >= 0; i-- { // who is given up leaves the list
		if p := r.busy[i]; p.deadline != 0 && p.deadline <= now {
			p.expire(now)
		}
	}
	r.deadline = 0
	if r.later.Len() > 0 {
		r.deadline = r.later.Front().at
	}
	for _, p := range r.busy {
		r.deadline = reliability.Earlier(r.deadline, p.deadline)
	}
}

// expire asks again for the oldest request: its answer shows what of the others is
// lost. In the end it gives up. The time by which it is called late does not count: the
// process did not run, or did not read what had arrived.
func (p *Peer) expire(now Time) {
	c := p.core
	if p.flying == 0 && p.lost == 0 {
		p.deadline = 0
		return
	}
	p.progress += now - p.deadline
	if int64(now-p.progress) >= p.giveUp {
		c.counters.RetryExceededErr++
		f := &verbs.Failure{
			Event: fmt.Sprintf("no answer from %v", p.path.Dst), Cause: "the peer is gone, or does not know us (any more)",
		}
		if p.refusal != nil {
			f = p.refusal.Failure()
		}
		f.PSN, f.Retries = uint32(p.una), int(p.asks)
		p.abort(verbs.WCRetryExcErr, f)
		return
	}
	p.attemptRefused = false
	p.asks = min(p.asks+1, 100)
	c.counters.Timeouts++
	if p.asks == 2 {
		p.window.Collapsed(now)
	}
	p.careful = carefulFor
	p.lose(p.oldest())
	p.setDeadline(now)
	p.activate()
}

// oldest is the oldest slot that has no answer. There has to be one.
func (p *Peer) oldest() *slot {
	psn := p.una
	for p.place(psn).op == nil {
		psn = psn.Add(1)
	}
	return p.place(psn)
}

// lose notes that the packet of a slot, or its answer, is lost.
func (p *Peer) lose(s *slot) {
	if !s.lost {
		s.lost = true
		p.lost++
		p.landed(s)
	}
}

// heard notes that the peer answers. What is under way then decides when to ask again.
func (p *Peer) heard(now Time) {
	p.progress, p.asks, p.deadline = now, 0, 0
	p.refusal, p.refusals, p.attemptRefused = nil, 0, false
}

// answered ends a slot whose answer has come, all of it.
func (p *Peer) answered(now Time, psn wire.PSN, s *slot) {
	if timed, ok := p.rtt.Timing(); ok && timed == psn && !s.again {
		p.rtt.Acked(now)
	} else if ok && timed == psn {
		p.rtt.Abandon()
	}
	p.window.Acked(p.cost(s.op, s))
	p.settle(s)
	p.advance(now)
}

// advance moves una past what has been answered.
func (p *Peer) advance(now Time) {
	for p.una != p.next && p.place(p.una).op == nil {
		p.una = p.una.Add(1)
	}
	if p.under == 0 {
		p.idle()
		return
	}
	p.activate()
}

// overtaken loses reads and atomics that left before the one of an order, which has been
// answered: their answers would have come before.
func (p *Peer) overtaken(now Time, order uint32) {
	some := false
	for psn := p.una; psn != p.next; psn = psn.Add(1) {
		s := p.place(psn)
		if s.op == nil || s.lost || s.op.op == verbs.WRRDMAWrite || int32(order-s.order) <= 0 {
			continue
		}
		p.lose(s)
		some = true
	}
	if some {
		p.core.reads.Lost(now, max(p.rtt.Smoothed(), reliability.Millisecond))
		p.activate()
	}
}

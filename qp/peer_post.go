package qp

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/verbs"
)

// An rdmaOp is a posted read, write or atomic of a UD queue pair.
type rdmaOp struct {
	peer        *Peer
	id          uint64
	op          verbs.WROpcode
	flags       verbs.SendFlags
	sgl         []verbs.SGE
	inline      []byte
	length      uint32
	bytesIssued uint32 // bytes sent at least once
	started     bool   // a packet was sent
	slots       int    // packets in flight
	remote      uint64
	rkey        uint32
	operand     uint64
	swap        uint64

	status  verbs.WCStatus // final status; reported when no packet is in flight
	failure *verbs.Failure
}

// isRDMA reports whether op is posted with postRDMA.
func isRDMA(op verbs.WROpcode) bool {
	return op == verbs.WRRDMARead || op == verbs.WRRDMAWrite || isAtomic(op)
}

// postRDMA queues an RDMA operation. Operations take no space in the send queue
// and are not ordered with sends.
func (c *Core) postRDMA(wr *verbs.SendWR) error {
	r := c.rdma
	n, err := c.rdmaLength(wr)
	if err != nil {
		return err
	}
	p := c.host.RDMAPeer(wr.AH)
	if p == nil {
		return c.invalidError("post send", "RDMA of a UD queue pair requires the handle of a peer (verbs.PeerAH)")
	}
	switch {
	case p.core != c:
		return c.invalidError("post send", "the peer belongs to another queue pair")
	case p.closed:
		return &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrClosed, Detail: "the peer is closed"}
	case !p.connected:
		return &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrNotConnected, Detail: "PeerAH.Connect has not been called"}
	case r.ops >= r.maxOps:
		return &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrQueueFull,
			Detail: fmt.Sprintf("%d RDMA requests are in flight, MaxDatagramRDMA is %d", r.ops, r.maxOps)}
	}
	o := new(rdmaOp)
	if k := len(r.free); k > 0 {
		o, r.free = r.free[k-1], r.free[:k-1]
	}
	var inline []byte
	if wr.Flags&verbs.SendInline != 0 {
		inline = wr.InlineData
	}
	*o = rdmaOp{peer: p, id: wr.WRID, op: wr.Opcode, flags: wr.Flags, length: n, remote: wr.RemoteAddr, rkey: wr.RKey, operand: wr.CompareAdd, swap: wr.Swap,
		sgl: append(o.sgl[:0], wr.SGList...), inline: slices.Grow(o.inline[:0], len(inline))[:len(inline)]}
	if !place.Load(o.inline, inline) {
		r.free = append(r.free, o)
		return c.inlineFaultError()
	}
	r.ops++
	p.outstanding++
	p.waiting.Push(o)
	p.markBusy()
	return nil
}

// rdmaLength validates the data of a request and returns its length in bytes.
func (c *Core) rdmaLength(wr *verbs.SendWR) (uint32, error) {
	inline := wr.Flags&verbs.SendInline != 0
	n := listLength(wr.SGList)
	switch {
	case inline && wr.Opcode != verbs.WRRDMAWrite:
		return 0, c.invalidError("post send", "%v receives data, which cannot be inline", wr.Opcode)
	case inline && len(wr.SGList) != 0:
		return 0, c.invalidError("post send", "inline data must be in InlineData, not in SGList")
	case inline && len(wr.InlineData) > c.sq.maxInline:
		return 0, &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrLimit,
			Detail: fmt.Sprintf("%d bytes of inline data, MaxInlineData is %d", len(wr.InlineData), c.sq.maxInline)}
	case len(wr.SGList) > c.sq.maxSGE:
		return 0, &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrLimit,
			Detail: fmt.Sprintf("%d scatter/gather elements, MaxSendSGE is %d", len(wr.SGList), c.sq.maxSGE)}
	case n > MaxMessage:
		return 0, c.tooLongError(n, MaxMessage)
	case isAtomic(wr.Opcode) && n != 8:
		return 0, c.invalidError("post send", "an atomic returns 8 bytes, the list has %d", n)
	}
	if inline {
		return uint32(len(wr.InlineData)), nil
	}
	return uint32(n), nil
}

// markBusy adds p to the busy and active peers.
func (p *Peer) markBusy() {
	r := p.core.rdma
	if p.busyIndex == 0 {
		r.busy = append(r.busy, p)
		p.busyIndex = len(r.busy)
	}
	p.markActive()
}

func (p *Peer) markActive() {
	if !p.active && p.outstanding > 0 {
		p.active = true
		p.core.rdma.active.Push(p)
	}
}

// releaseIdle removes p from the busy peers and frees its buffers if no
// operation is outstanding.
func (p *Peer) releaseIdle() {
	r := p.core.rdma
	if p.outstanding > 0 || p.busyIndex == 0 {
		return
	}
	last := r.busy[len(r.busy)-1]
	r.busy[p.busyIndex-1], last.busyIndex = last, p.busyIndex
	r.busy[len(r.busy)-1] = nil
	r.busy = r.busy[:len(r.busy)-1]
	p.busyIndex, p.deadline, p.timeouts, p.sinceAckReq = 0, 0, 0, 0
	if p.flight != nil {
		if len(r.freeFlights) < 16 {
			r.freeFlights = append(r.freeFlights, p.flight)
		}
		p.flight = nil
	}
	p.waiting = fifo.Queue[*rdmaOp]{}
}

// failAll completes all operations to the peer with an error. Packets that were
// sent may have been executed.
func (p *Peer) failAll(status verbs.WCStatus, failure *verbs.Failure) {
	for psn := p.una; psn != p.next; psn = psn.Add(1) {
		if s := p.slotFor(psn); s.op != nil {
			s.op.setFailure(status, failure)
			p.retireSlot(s)
		}
	}
	p.una = p.next
	for p.waiting.Len() > 0 {
		o := *p.waiting.Front()
		p.waiting.Pop()
		o.setFailure(status, failure)
		p.completeOp(o)
	}
	p.releaseIdle()
}

// setFailure records the status of a failed operation. The first failure is
// kept.
func (o *rdmaOp) setFailure(status verbs.WCStatus, failure *verbs.Failure) {
	if o.status == verbs.WCSuccess {
		o.status, o.failure = status, failure
	}
}

// retireSlot removes s from the packets in flight, and completes its operation
// after the last packet.
func (p *Peer) retireSlot(s *slot) {
	r, o := p.core.rdma, s.op
	if s.lost {
		p.lostSlots--
	} else {
		p.removeFromWindow(s)
	}
	if o.op == verbs.WRRDMARead {
		r.readBytes -= int(s.n)
		for _, q := range r.readWaiters {
			q.waitsForReads = false
			q.markActive()
		}
		r.readWaiters = r.readWaiters[:0]
	}
	*s = slot{}
	o.slots--
	if o.slots > 0 || p.waiting.Len() > 0 && *p.waiting.Front() == o {
		return
	}
	p.completeOp(o)
}

// removeFromWindow subtracts the packet of s from the bytes in flight.
func (p *Peer) removeFromWindow(s *slot) {
	p.inFlight -= p.windowCost(s.op, s)
	if s.ackReq {
		p.ackReqsInFlight--
	}
}

// windowCost returns the size of a request packet in the window.
func (p *Peer) windowCost(o *rdmaOp, s *slot) int {
	if o.op == verbs.WRRDMAWrite {
		return int(s.n) + PacketCost
	}
	return PacketCost
}

// completeOp completes an operation without packets in flight.
func (p *Peer) completeOp(o *rdmaOp) {
	c, r := p.core, p.core.rdma
	r.ops--
	p.outstanding--
	switch {
	case o.status != verbs.WCSuccess:
		c.counters.SendErr++
		if o.failure != flushed {
			failure := *o.failure
			failure.Opcode = o.op.String()
			o.failure = &failure
		}
		c.host.Complete(verbs.WC{WRID: o.id, Status: o.status, Opcode: completionOp[o.op], QPN: c.num, Failure: o.failure}, true)
	case o.flags&verbs.SendSignaled != 0 || c.signalAll:
		c.host.Complete(verbs.WC{WRID: o.id, Opcode: completionOp[o.op], ByteLen: o.length, QPN: c.num}, false)
	default:
		c.counters.Unsignaled++
	}
	o.peer, o.failure = nil, nil
	if len(r.free) < 64 {
		r.free = append(r.free, o)
	}
}

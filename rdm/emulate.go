package rdm

import (
	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/reliability/nack"
)

// sided is what is under way with the memory of a peer, and with ours for it.
type sided struct {
	queue fifo.Queue[*Op] // operations that are not, or not all, asked for
	under int             // operations, those in the queue included
	asked int             // emulated ones that are asked for and not answered

	replies    fifo.Queue[reply] // answers that the peer has to get
	fault      status            // of the write of the peer that is coming
	unreadable bool              // the memory of what tell did not send
	native     native
}

// maxAsked is how many emulated operations are asked for at a time. More than that
// of a peer are a breach.
const maxAsked = 64

// rdma is the peer's sided.
func (p *Peer) rdma() *sided {
	if p.sided == nil {
		p.sided = &sided{}
	}
	return p.sided
}

// piece is how many bytes of a read or write fit into a datagram to the peer.
func (p *Peer) piece() int { return p.e.port.MTU(p.number) - nack.DataSize - shortSize }

// pump goes on with all that waits for room to a peer.
func (e *Endpoint) pump(p *Peer) {
	s := p.sided
	if s == nil || p.state == gone {
		return
	}
	if !e.answer(p) {
		return
	}
	if s.native.state == agreed {
		s.replies = fifo.Queue[reply]{} // there will be no more
	}
	for s.queue.Len() > 0 {
		op := *s.queue.Front()
		switch e.way(p) {
		case wayUnknown:
			return // an answer follows
		case wayNative:
			if !e.postNative(op) {
				return
			}
			s.queue.Pop()
			continue
		}
		if s.asked == maxAsked && op.sent == 0 || !e.ask(op) {
			return
		}
		s.queue.Pop()
	}
}

// ask asks the peer for an operation, and reports whether all of that has been said.
func (e *Endpoint) ask(op *Op) bool {
	r := request{id: op.id, rkey: op.remote.RKey, n: uint32(op.n), addr: op.remote.Addr, a: op.a, b: op.b}
	switch op.kind {
	case opRead:
		r.tag = tagRead
	case opCompareSwap:
		r.tag = tagSwap
	case opFetchAdd:
		r.tag = tagAdd
	case opWrite:
		return e.askWrite(op, r)
	}
	if op.n == 0 {
		e.complete(op, nil)
		return true
	}
	if !e.tell(op.p, &r, nil, true) {
		return false
	}
	op.p.sided.asked++
	op.asked = true
	return true
}

// askWrite sends the pieces of a write, as far as there is room.
func (e *Endpoint) askWrite(op *Op, r request) bool {
	if op.n == 0 {
		e.complete(op, nil)
		return true
	}
	r.tag = tagWrite
	for op.sent < op.n {
		n := min(op.p.piece(), op.n-op.sent)
		last := op.sent+n == op.n
		r.n, r.addr, r.status = uint32(n), op.remote.Addr+uint64(op.sent), 0
		if last {
			r.status = 1
		}
		if !e.tell(op.p, &r, op.span.bytes()[op.sent:op.sent+n], last && !e.o.Lazy) {
			if op.p.sided.takeFault() {
				e.failWrite(op)
				return true
			}
			return false
		}
		if op.sent == 0 {
			op.p.sided.asked++
		}
		op.sent += n
	}
	op.asked = true
	return true
}

// takeFault reports whether the last message was not sent because the system
// refuses access to its memory.
func (s *sided) takeFault() (fault bool) {
	fault, s.unreadable = s.unreadable, false
	return fault
}

// failWrite ends an emulated write whose memory cannot be read.
func (e *Endpoint) failWrite(op *Op) {
	if op.sent > 0 {
		op.p.sided.asked--
	}
	e.complete(op, ErrLocal)
}

// tell sends a message about an operation, if there is room, and its memory can be
// read: see takeFault.
func (e *Endpoint) tell(p *Peer, r *request, payload []byte, solicited bool) bool {
	if p.state == gone {
		return false
	}
	n := r.put(&e.head)
	send := e.core.Send
	if solicited {
		send = e.core.SendSolicited
	}
	switch err := send(e.port.Now(), p.number, e.head[:n], payload); err {
	case nil:
		return true
	case nack.ErrNoRoom:
		p.full = true
	case nack.ErrFault:
		p.sided.unreadable = true
	default:
		e.lose(p, err)
	}
	return false
}

// answered takes what the peer says of an operation of ours: DATA or END.
func (e *Endpoint) answered(p *Peer, r *request, payload []byte) {
	op := e.ops.find(r.id)
	if op == nil || op.p != p || !op.asked { // numbers can be guessed
		e.breach(p)
		return
	}
	if r.tag == tagData {
		if op.kind != opRead || r.addr != uint64(op.got) || len(payload) > op.n-op.got {
			e.breach(p)
			return
		}
		op.faulty = !place.Copy(op.span.bytes()[op.got:op.got+len(payload)], payload) || op.faulty
		if op.got += len(payload); op.got < op.n {
			return
		}
	} else {
		if op.kind == opRead && r.status == statusOK || r.status >= statuses {
			e.breach(p)
			return
		}
		op.old = r.a
	}
	p.sided.asked--
	err := r.status.err()
	if op.faulty {
		err = ErrLocal
	}
	e.complete(op, err)
	e.pump(p)
}

// abandon fails all that waits for a peer that is gone.
func (e *Endpoint) abandon(p *Peer) {
	s := p.sided
	if s == nil {
		return
	}
	s.queue, s.replies = fifo.Queue[*Op]{}, fifo.Queue[reply]{}
	e.endNative(p)
	if s.under == 0 {
		return
	}
	for _, op := range e.ops.at {
		if op != nil && op.p == p && !op.posted {
			e.complete(op, p.err)
		}
	}
}

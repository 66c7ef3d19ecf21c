package rdm

import (
	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/reliability/nack"
)

// rdmaState is what is under way with the memory of a peer, and with ours for it.
type rdmaState struct {
	queue       fifo.Queue[*Op] // operations that are not, or not all, asked for
	outstanding int             // operations, those in the queue included
	awaiting    int             // emulated ones that are asked for and not answered

	replies    fifo.Queue[reply] // answers that the peer has to get
	fault      status            // of the write of the peer that is coming
	unreadable bool              // the memory of what tell did not send
	native     nativeState
}

// maxAwaiting is how many emulated operations are asked for at a time. More than that
// of a peer are a breach.
const maxAwaiting = 64

// ensureRDMA is the peer's sided.
func (p *Peer) ensureRDMA() *rdmaState {
	if p.rdmaState == nil {
		p.rdmaState = &rdmaState{}
	}
	return p.rdmaState
}

// fragmentSize is how many bytes of a read or write fit into a datagram to the peer.
func (p *Peer) fragmentSize() int { return p.e.port.PeerMTU(p.number) - nack.DataSize - shortSize }

// flushPending goes on with all that waits for room to a peer.
func (e *Endpoint) flushPending(p *Peer) {
	s := p.rdmaState
	if s == nil || p.state == failed {
		return
	}
	if !e.sendReplies(p) {
		return
	}
	if s.native.state == agreed {
		s.replies = fifo.Queue[reply]{} // there will be no more
	}
	for s.queue.Len() > 0 {
		op := *s.queue.Front()
		switch e.routeTo(p) {
		case routeUnknown:
			return // an answer follows
		case routeNative:
			if !e.postNative(op) {
				return
			}
			s.queue.Pop()
			continue
		}
		if s.awaiting == maxAwaiting && op.sent == 0 || !e.sendRequest(op) {
			return
		}
		s.queue.Pop()
	}
}

// sendRequest asks the peer for an operation, and reports whether all of that has been said.
func (e *Endpoint) sendRequest(op *Op) bool {
	r := request{id: op.id, rkey: op.remote.RKey, n: uint32(op.n), addr: op.remote.Addr, a: op.a, b: op.b}
	switch op.kind {
	case opRead:
		r.tag = tagRead
	case opCompareSwap:
		r.tag = tagSwap
	case opFetchAdd:
		r.tag = tagAdd
	case opWrite:
		return e.sendWrite(op, r)
	}
	if op.n == 0 {
		e.completeOp(op, nil)
		return true
	}
	if !e.sendOpMessage(op.p, &r, nil, true) {
		return false
	}
	op.p.rdmaState.awaiting++
	op.requested = true
	return true
}

// sendWrite sends the pieces of a write, as far as there is room.
func (e *Endpoint) sendWrite(op *Op, r request) bool {
	if op.n == 0 {
		e.completeOp(op, nil)
		return true
	}
	r.tag = tagWrite
	for op.sent < op.n {
		n := min(op.p.fragmentSize(), op.n-op.sent)
		last := op.sent+n == op.n
		r.n, r.addr, r.status = uint32(n), op.remote.Addr+uint64(op.sent), 0
		if last {
			r.status = 1
		}
		if !e.sendOpMessage(op.p, &r, op.span.bytes()[op.sent:op.sent+n], last && !e.o.Lazy) {
			if op.p.rdmaState.clearUnreadable() {
				e.failWrite(op)
				return true
			}
			return false
		}
		if op.sent == 0 {
			op.p.rdmaState.awaiting++
		}
		op.sent += n
	}
	op.requested = true
	return true
}

// clearUnreadable reports whether the last message was not sent because the system
// refuses access to its memory.
func (s *rdmaState) clearUnreadable() (fault bool) {
	fault, s.unreadable = s.unreadable, false
	return fault
}

// failWrite ends an emulated write whose memory cannot be read.
func (e *Endpoint) failWrite(op *Op) {
	if op.sent > 0 {
		op.p.rdmaState.awaiting--
	}
	e.completeOp(op, ErrLocal)
}

// sendOpMessage sends a message about an operation, if there is room, and its memory can be
// read: see takeFault.
func (e *Endpoint) sendOpMessage(p *Peer, r *request, payload []byte, solicited bool) bool {
	if p.state == failed {
		return false
	}
	n := r.encode(&e.head)
	send := e.core.Send
	if solicited {
		send = e.core.SendSolicited
	}
	switch err := send(e.port.Now(), p.number, e.head[:n], payload); err {
	case nil:
		return true
	case nack.ErrWouldBlock:
		p.full = true
	case nack.ErrFault:
		p.rdmaState.unreadable = true
	default:
		e.failPeer(p, err)
	}
	return false
}

// handleReply takes what the peer says of an operation of ours: DATA or END.
func (e *Endpoint) handleReply(p *Peer, r *request, payload []byte) {
	op := e.ops.lookup(r.id)
	if op == nil || op.p != p || !op.requested { // numbers can be guessed
		e.failProtocol(p)
		return
	}
	if r.tag == tagData {
		if op.kind != opRead || r.addr != uint64(op.got) || len(payload) > op.n-op.got {
			e.failProtocol(p)
			return
		}
		op.faulty = !place.Copy(op.span.bytes()[op.got:op.got+len(payload)], payload) || op.faulty
		if op.got += len(payload); op.got < op.n {
			return
		}
	} else {
		if op.kind == opRead && r.status == statusOK || r.status >= statuses {
			e.failProtocol(p)
			return
		}
		op.old = r.a
	}
	p.rdmaState.awaiting--
	err := r.status.toError()
	if op.faulty {
		err = ErrLocal
	}
	e.completeOp(op, err)
	e.flushPending(p)
}

// failOps fails all that waits for a peer that is gone.
func (e *Endpoint) failOps(p *Peer) {
	s := p.rdmaState
	if s == nil {
		return
	}
	s.queue, s.replies = fifo.Queue[*Op]{}, fifo.Queue[reply]{}
	e.closeNativePeer(p)
	if s.outstanding == 0 {
		return
	}
	for _, op := range e.ops.slots {
		if op != nil && op.p == p && !op.posted {
			e.completeOp(op, p.err)
		}
	}
}

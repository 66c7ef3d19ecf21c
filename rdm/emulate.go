package rdm

import (
	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/internal/place"
)

// An rdmaState is the state of memory operations to and from a peer.
type rdmaState struct {
	queue       fifo.Queue[*Op] // operations that are not completely requested
	outstanding int             // outstanding operations, including the queue
	awaiting    int             // emulated operations that wait for a reply

	replies    fifo.Queue[reply] // replies to send to the peer
	opsFirst   bool              // the next flush sends operations before replies
	fault      status            // first error of the peer's incomplete write
	unreadable bool              // sendOpMessage failed because its memory is unreadable
	native     nativeState
}

// maxAwaiting is the maximum number of outstanding emulated operations. A peer
// that exceeds it violates the protocol.
const maxAwaiting = 64

// ensureRDMA returns p's rdmaState and creates it if necessary.
func (p *Peer) ensureRDMA() *rdmaState {
	if p.rdmaState == nil {
		p.rdmaState = &rdmaState{}
	}
	return p.rdmaState
}

// fragmentSize returns the number of read or write bytes in a datagram to the
// peer.
func (p *Peer) fragmentSize() int { return p.e.port.PeerMTU(p.number) - nack.DataSize - shortSize }

// flushPending sends the replies and operations that wait for space in p's
// window. They take turns in being the first, because either may fill the window
// again and again: a peer that reads all the time would otherwise stop the
// operations of this endpoint.
func (e *Endpoint) flushPending(p *Peer) {
	s := p.rdmaState
	if s == nil || p.state == failed {
		return
	}
	first := s.opsFirst
	s.opsFirst = !first
	if first {
		e.sendOps(p)
	}
	if !e.sendReplies(p) {
		return
	}
	if s.native.state == agreed {
		s.replies = fifo.Queue[reply]{} // no more emulated requests follow
	}
	if !first {
		e.sendOps(p)
	}
}

// sendOps sends the queued operations on the memory of a peer.
func (e *Endpoint) sendOps(p *Peer) {
	s := p.rdmaState
	for p.state != failed && s.queue.Len() > 0 {
		op := *s.queue.Front()
		switch e.routeTo(p) {
		case routeUnknown:
			return // the reply resumes the queue
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

// sendRequest sends the request of an emulated operation and reports whether it
// was sent completely.
func (e *Endpoint) sendRequest(op *Op) bool {
	r := opMessage{id: op.id, rkey: op.remote.RKey, n: uint32(op.n), addr: op.remote.Addr, a: op.a, b: op.b}
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

// sendWrite sends the fragments of a write while there is space.
func (e *Endpoint) sendWrite(op *Op, r opMessage) bool {
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

// clearUnreadable reports and clears the unreadable flag: the system refused
// access to the memory of the last message.
func (s *rdmaState) clearUnreadable() (fault bool) {
	fault, s.unreadable = s.unreadable, false
	return fault
}

// failWrite completes an emulated write with unreadable memory.
func (e *Endpoint) failWrite(op *Op) {
	if op.sent > 0 {
		op.p.rdmaState.awaiting--
	}
	e.completeOp(op, ErrLocal)
}

// sendOpMessage sends a message about an operation. It reports false if there
// is no space, or if the memory is unreadable: see clearUnreadable.
func (e *Endpoint) sendOpMessage(p *Peer, r *opMessage, payload []byte, solicited bool) bool {
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

// handleReply handles the reply to a local operation: DATA or END.
func (e *Endpoint) handleReply(p *Peer, r *opMessage, payload []byte) {
	op := e.ops.lookup(r.id)
	if op == nil || op.p != p || !op.requested { // a peer can guess operation numbers
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

// failOps fails all operations of a failed peer.
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

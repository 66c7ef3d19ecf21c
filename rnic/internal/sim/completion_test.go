package sim_test

import (
	"bytes"

	"github.com/softrnic/softrnic/verbs"
)

// poll handles all completions and events of a host.
func (h *host) poll() {
	var wcs [16]verbs.WC
	for _, cq := range h.cqs {
		for {
			n, err := cq.Poll(wcs[:])
			h.world.must(err)
			for i := range n {
				h.completed(&wcs[i])
			}
			if n < len(wcs) {
				break
			}
		}
	}
	for _, ev := range h.dev.Events() {
		h.event(ev)
	}
}

func (h *host) completed(wc *verbs.WC) {
	q := h.halves[wc.QPN]
	if q == nil {
		h.world.fail("%s: a completion of a queue pair that does not exist: %+v", h.name, *wc)
	}
	if h.world.trace != nil {
		h.world.trace.NoteCompletion(h.dev, *wc)
	}
	if wc.Status != verbs.WCSuccess && (q.pair == nil || !q.pair.killed) {
		h.world.fail("%v failed without a cause: %v", q, wc.Err())
	}
	if wc.Status == verbs.WCSuccess {
		h.world.seen[q.typ.String()+" "+wc.Opcode.String()+" SUCCESS"]++
	} else {
		h.world.seen["failure "+wc.Status.String()]++
	}
	if wc.Opcode.IsRecv() {
		q.receiveCompleted(wc)
	} else {
		q.sendCompleted(wc)
	}
	if wc.Status == verbs.WCSuccess {
		q.nap = 2 * h.world.pace
	}
}

func (h *host) event(ev verbs.AsyncEvent) {
	h.world.seen["event "+ev.Type.String()]++
	switch ev.Type {
	case verbs.EventSRQLimitReached:
		if !h.srq.limit {
			h.world.fail("%s: the limit of the SRQ was not armed", h.name)
		}
		h.srq.limit = false
	case verbs.EventSQDrained:
		if q := h.halves[ev.QP.Num()]; q != nil {
			q.drained()
		}
	case verbs.EventCommEst, verbs.EventQPLastWQEReached:
	case verbs.EventQPReqErr, verbs.EventQPAccessErr:
		if q := h.halves[ev.QP.Num()]; q != nil && !q.pair.killed {
			h.world.fail("%v: %v: %v", q, ev.Type, ev.Failure)
		}
	default:
		h.world.fail("%s: %v: %v", h.name, ev.Type, ev.Failure)
	}
}

// sendCompleted handles the completion of a send request: the oldest, except for earlier unsignaled
// ones, which succeeded.
func (h *qpProgram) sendCompleted(wc *verbs.WC) {
	w := h.world
	for {
		if len(h.posted) == 0 {
			w.fail("%v: completion %d, but nothing is posted", h, wc.WRID)
		}
		r := h.posted[0]
		h.posted = h.posted[1:]
		if r.id != wc.WRID {
			if r.signaled || h.signalAll || r.id > wc.WRID {
				w.fail("%v: completion %d arrived while %d is the oldest", h, wc.WRID, r.id)
			}
			h.succeeded(r)
			continue
		}
		if wc.Status == verbs.WCSuccess {
			h.succeeded(r)
		} else {
			h.flushed(r)
		}
		return
	}
}

// succeeded checks the effect of a request.
func (h *qpProgram) succeeded(r *request) {
	w := h.world
	if r.msg != nil && (h.typ != verbs.RC || !r.msg.write || r.msg.hasImm) {
		h.host.sent++
	}
	switch r.op {
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm, verbs.WRAtomicWrite:
		if h.typ == verbs.RC && !r.msg.equalTo(h.peer.target.at(r.msg.off, r.msg.length)) {
			w.fail("%v: write %d is complete, but the memory at %d does not hold its %d bytes", h, r.id, r.msg.off, r.msg.length)
		}
	case verbs.WRRDMARead:
		got := h.results.at(r.result.off, r.result.n)
		if !bytes.Equal(got, r.expect) {
			w.fail("%v: read %d brought other data", h, r.id)
		}
		copy(h.results.want[r.result.off:], got)
	case verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwap:
		got := h.results.at(r.result.off, 8)
		copy(h.results.want[r.result.off:], got)
		h.peer.host.words.answered(h, r, wordOf(got))
	case verbs.WRBindMW:
		h.window.isBound()
	case verbs.WRLocalInv:
		h.window.busy = false
	}
}

// flushed records a failed request, which may or may not have been executed.
func (h *qpProgram) flushed(r *request) {
	if r.atomic != nil {
		h.peer.host.words.unknown(r.atomic)
	}
}

// receiveCompleted handles a received message.
func (h *qpProgram) receiveCompleted(wc *verbs.WC) {
	w := h.world
	l, r := h.received(wc)
	if wc.Status != verbs.WCSuccess {
		l.release(r, true)
		return
	}
	h.host.received++
	written := wc.Opcode == verbs.WCRecvRDMAWithImm
	n := int(wc.ByteLen)
	if written {
		n = 0
	}
	got := l.checkReceive(r, n, h.typ != verbs.RC)
	if h.typ != verbs.RC {
		h.match(wc, got)
		return
	}
	if len(h.inbox) == 0 {
		w.fail("%v: a message that was not sent: %+v", h, *wc)
	}
	m := h.inbox[0]
	h.inbox = h.inbox[1:]
	switch {
	case m.write != written || int(wc.ByteLen) != m.length ||
		m.hasImm != (wc.Flags&verbs.WCWithImm != 0) || m.imm != wc.Imm ||
		m.hasInv != (wc.Flags&verbs.WCWithInv != 0) || m.inv != wc.InvKey:
		w.fail("%v: expected message %+v, received %+v", h, *m, *wc)
	case written && !m.equalTo(h.target.at(m.off, m.length)):
		w.fail("%v: the memory of a write with immediate is not complete", h)
	case !written && !m.equalTo(got):
		w.fail("%v: %d bytes arrived, but not those that were sent", h, n)
	}
	if m.hasInv {
		w.seen["message with invalidate"]++
		h.window.busy = false
	}
}

// match finds an unreliable message among the sent ones.
func (h *qpProgram) match(wc *verbs.WC, got []byte) {
	length := int(wc.ByteLen)
	if h.typ == verbs.UD {
		if length < grh || wc.Flags&verbs.WCGRH == 0 {
			h.world.fail("%v: a datagram without GRH: %+v", h, *wc)
		}
		got, length = got[grh:], length-grh
	}
	written := wc.Opcode == verbs.WCRecvRDMAWithImm
	for _, m := range h.coming {
		if m.length != length || m.write != written || m.hasImm != (wc.Flags&verbs.WCWithImm != 0) || m.imm != wc.Imm {
			continue
		}
		if written {
			got = h.target.at(m.off, m.length)
		}
		if m.qpn == wc.SrcQPN && m.equalTo(got) {
			return
		}
	}
	h.world.fail("%v: received a message that was sent otherwise: %+v", h, *wc)
}

package rdma

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/verbs"
)

// Send implements protocol.Net.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	l := f.links[rank]
	if l == nil || !l.up {
		f.connect(rank)
		return false
	}
	if l.credits == 0 || l.room() == 0 {
		l.waiting = true
		return false
	}
	if f.pack(l, h, payload) {
		return true
	}
	if l.batch.n > 0 && !f.flush(l) || l.credits == 0 || l.room() == 0 {
		l.waiting = true
		return false
	}
	n := envelope.Size + len(payload)
	h.Credits = l.owed
	wr := &f.wr[0]
	fast := n <= int(l.out.size) && h.Kind != envelope.Hello
	if n <= inlineMax {
		put(f.frame[:n], h, payload, fast)
		*wr = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: f.frame[:n], WRID: l.wrid(wrInline, 0)}
		if l.posted%signalEvery == 0 {
			wr.Flags |= verbs.SendSignaled
		}
	} else {
		s := f.sends.take()
		if s < 0 {
			f.wait(l)
			return false
		}
		put(f.sends.buf(s)[:n], h, payload, fast)
		f.sge[0] = f.sends.sge(s, n)
		*wr = verbs.SendWR{Opcode: verbs.WRSend, Flags: f.sends.flags(), SGList: f.sge[:], WRID: l.wrid(wrBuffer, s)}
	}
	if fast {
		f.place(l, n)
	}
	if !f.post(l) {
		return true // lost: the core hears of it by the completion
	}
	l.owed = 0
	l.credits--
	f.stats.packets++
	f.recent(l)
	return true
}

// recent counts what leaves until the next Flush.
func (f *Fabric) recent(l *link) {
	if l.recent++; l.recent == 1 {
		f.recents = append(f.recents, l)
	}
}

// put writes a packet to b: header and payload, or the other way round where
// the end is what counts.
func put(b []byte, h *envelope.Header, payload []byte, headerLast bool) {
	if headerLast {
		h.MarshalTo(b[copy(b, payload):])
		return
	}
	h.MarshalTo(b)
	copy(b[envelope.Size:], payload)
}

// post posts f.wr.
func (f *Fabric) post(l *link) bool {
	f.postList(l)
	if _, err := l.qp.PostSend(f.wr[:]); err != nil {
		f.lose(l, err)
		return false
	}
	l.posted++
	return true
}

// wait makes a rank's packets wait for a send buffer.
func (f *Fabric) wait(l *link) {
	if !l.short {
		l.short = true
		f.short = append(f.short, l.rank)
	}
}

package acp

import (
	"github.com/softrnic/softrnic/acp/fabric"
	"github.com/softrnic/softrnic/acp/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// flushMin is the length of a segment that leaves before the next one is made.
const flushMin = 4 << 10

// stepSend has a sending end go on, and reports whether only memory will tell when there is
// more to do.
func (ch *Channel) stepSend() (watch bool) {
	if ch.state != open {
		return ch.stepConnect()
	}
	if !ch.imm && !ch.hear() {
		return false
	}
	put := ch.send.Put()
	told := put
	for r := ch.next(); r != nil; r = ch.next() {
		if r.kind == freeing {
			if !ch.sayBye() {
				break
			}
			continue
		}
		g, ok := ch.send.Next(len(r.buf))
		if !ok {
			break
		}
		direct := ch.fill(r, g)
		if ch.err != nil {
			return false
		}
		if r.left = g.Last; g.Last && !direct {
			r.end(nil) // its bytes are in slots
		}
		if g.Bytes() >= flushMin {
			ch.tell()
			told = ch.send.Put()
			ch.p.net.Flush()
		}
	}
	if now := ch.send.Put(); now != put {
		ch.p.turns.events++
		if now != told {
			ch.tell()
		}
	}
	if ch.over && ch.bye && ch.send.Quiet() && ch.under == 0 {
		ch.release()
		return false
	}
	return !ch.imm && (ch.bye || ch.next() != nil)
}

// next is the first request that has not left yet; those at their end are taken away.
func (ch *Channel) next() *Request {
	for ch.first != nil && ch.first.done {
		ch.pop()
	}
	r := ch.first
	for r != nil && (r.left || r.done) {
		r = r.next
	}
	return r
}

// hear reads how many slots the receiver has taken.
func (ch *Channel) hear() bool {
	head := ch.control(protocol.HeadOffset)
	ch.over = ch.over || head&protocol.HeadBye != 0
	if err := ch.send.Taken(head &^ protocol.HeadBye); err != nil {
		ch.fail(err)
		return false
	}
	return true
}

// fill puts a segment of a message, through its slot, or from where the message is: then direct.
func (ch *Channel) fill(r *Request, g protocol.Segment) (direct bool) {
	slot, off := ch.slot(g.Slot)
	if g.Header {
		protocol.PutHeader(slot, uint64(len(r.buf)))
		slot = slot[protocol.HeaderSize:]
	}
	if !ch.copies && len(r.buf) >= directMin && ch.direct(r) {
		a := ch.slotPut(g)
		head := 0
		if g.Header {
			head = protocol.HeaderSize
		}
		a.Head, a.HeadOff, a.HeadN = ch.mem.mr, off, head
		a.MR, a.Off, a.N, a.local = r.mr.mr, g.Off, g.N, ch.mem
		r.mr.under++
		a.request = r
		ch.mem.uses++
		ch.p.start(a)
		return true
	}
	copy(slot, r.buf[g.Off:g.Off+g.N])
	a := ch.slotPut(g)
	a.use(ch.mem, off, g.Bytes())
	ch.p.start(a)
	return false
}

// slotPut is the put of a segment, whose memory is to be filled in.
func (ch *Channel) slotPut(g protocol.Segment) *access {
	to := ch.remote.Add(protocol.ReceiverControl + g.Ring*int(ch.size))
	a := ch.p.newAccess(to, g.Bytes(), (*slotPut)(ch))
	a.Kind = fabric.Put
	if ch.imm {
		a.Signal, a.Imm = true, protocol.Imm(protocol.Filled, 1, ch.far)
	}
	ch.under++
	return a
}

// slotPut hears that a slot has left.
type slotPut Channel

func (e *slotPut) accessed(a *access, err error) {
	ch := (*Channel)(e)
	ch.under--
	ch.send.Left()
	if r := a.request; r != nil {
		if r.mr.under--; r.mr.under == 0 && (r.left || ch.err != nil || err != nil) {
			_ = r.mr.mr.Dereg()
			r.mr.mr = nil
			if !r.done && err == nil {
				r.end(nil)
			}
		}
	}
	if err != nil {
		ch.fail(err)
	}
	ch.p.channels.activate(ch)
}

// direct is memory of the program that a message leaves from.
type direct struct {
	mr    verbs.MR
	under int // puts
}

// direct registers the memory of a message, for the time being.
func (ch *Channel) direct(r *Request) bool {
	if r.mr.mr == nil {
		mr, err := ch.p.pd.RegMR(r.buf, 0)
		if err != nil {
			return false // through the slots, then
		}
		r.mr.mr = mr
	}
	return true
}

// tell mirrors our tail, unless each slot has told of itself.
func (ch *Channel) tell() {
	if ch.imm {
		return
	}
	ch.under++
	ch.p.start(ch.p.putWord(ch.remote, ch.send.Put(), (*answering)(ch)))
}

// sayBye puts the word that no message follows. With that the end is freed, as far as the program is
// concerned: its memory goes when the receiver has said that it writes no more.
func (ch *Channel) sayBye() bool {
	g, ok := ch.send.Bye()
	if !ok {
		return false
	}
	slot, off := ch.slot(g.Slot)
	protocol.PutHeader(slot, protocol.Bye)
	a := ch.slotPut(g)
	a.use(ch.mem, off, g.Bytes())
	ch.p.start(a)
	ch.bye = true
	for r := ch.first; r != nil; r = r.next {
		if r.kind == freeing {
			r.left = true
			r.end(nil)
		}
	}
	return true
}

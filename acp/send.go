package acp

import (
	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Segments leave together, as datagrams that are whole then rather than each with an odd packet
// at its end. But the first one leaves at once, if it has some length, and has the receiver begin.
const (
	flushMin = 4 << 10
	flushAll = 128 << 10
)

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
	told, kept, enough := put, 0, flushMin
	if ch.under > 0 {
		enough = flushAll
	}
	for r := ch.next(); r != nil; r = ch.next() {
		if r.kind == freeing {
			if !ch.sayBye() {
				break
			}
			continue
		}
		n, ok := ch.put(r)
		if !ok {
			break
		}
		if ch.err != nil {
			return false
		}
		if kept += n; kept >= enough {
			ch.tell()
			told = ch.send.Put()
			ch.p.net.Flush()
			kept, enough = 0, flushAll
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

// put puts what is next of a message: all of it to its place, if that is known, and else a segment. It returns how much
// that is, and is not ok without room.
func (ch *Channel) put(r *Request) (n int, ok bool) {
	direct := !ch.copies && len(r.buf) >= directMin
	if direct && !ch.direct(r) {
		return 0, true // its end
	}
	if at, known := ch.placeOf(); known && direct {
		g, ok := ch.send.Place()
		if ok {
			ch.toPlace(r, at, g)
			r.left = true
		}
		return len(r.buf), ok
	}
	g, ok := ch.send.Next(len(r.buf), direct || ch.send.Ahead(len(r.buf)) <= inlineMax)
	if ok {
		ch.fill(r, g)
		r.left = g.Last
	}
	return g.Bytes(), ok
}

// next is the first request that has not left yet. Those at their end are taken away: requests end in their order, when
// nothing leaves from their memory any more.
func (ch *Channel) next() *Request {
	for ch.first != nil && (ch.first.done || ch.first.left && ch.first.mr.mr == nil) {
		if r := ch.pop(); !r.done {
			r.end(nil)
		}
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

// fill puts a segment of a message: from where the message is, behind its length, within the work request, or through
// its slot.
func (ch *Channel) fill(r *Request, g protocol.Segment) {
	if r.mr.mr != nil {
		to, n := ch.ring(g.Ring), g.Bytes()
		if g.Lead > 0 {
			a := ch.putHeader(to, uint64(len(r.buf)), (*answering)(ch))
			a.Lazy = true
			ch.p.start(a)
			to, n = to.Add(g.Lead), g.N
		}
		a := ch.slotPut(to, n)
		a.carry(r, g.Off, g.N)
		ch.p.start(a)
		return
	}
	a := ch.slotPut(ch.ring(g.Ring), g.Bytes())
	var slot []byte
	if g.Slot < 0 {
		slot = a.words[:g.Bytes()]
		a.Inline, a.Lazy = slot, true
	} else {
		var off int
		slot, off = ch.slot(g.Slot)
		a.use(ch.mem, off, g.Bytes())
	}
	if g.Lead > 0 {
		protocol.PutHeader(slot, uint64(len(r.buf)))
	}
	copy(slot[g.Lead:], r.buf[g.Off:g.Off+g.N])
	ch.p.start(a)
}

// carry has a put take n bytes of a message from where they are.
func (a *access) carry(r *Request, off, n int) {
	a.Mem, a.Off, a.N, a.request = r.mr.mr, off, n, r
	r.mr.under++
}

// putHeader is the put of the length of a message.
func (ch *Channel) putHeader(to GA, length uint64, owner accessOwner) *access {
	a := ch.p.putWord(to, 0, owner)
	protocol.PutHeader(a.Inline, length)
	ch.under++
	return a
}

// ring is where a slot of the receiver begins.
func (ch *Channel) ring(i int) GA { return ch.remote.Add((i - ch.send.Ring()) * int(ch.size)) }

// slotPut is the put of n bytes of a segment, whose memory is to be filled in.
func (ch *Channel) slotPut(to GA, n int) *access {
	a := ch.p.newAccess(to, n, (*slotPut)(ch))
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
	if a.local != nil {
		ch.send.Left()
	}
	if r := a.request; r != nil {
		if r.mr.under--; r.mr.under == 0 && (r.left || r.done) {
			r.withhold() // next ends it, unless the channel has failed
		}
	}
	if err != nil {
		ch.fail(err)
	}
	ch.p.channels.activate(ch)
}

// direct is memory of the program that a message leaves from.
type direct struct {
	mr    fabric.Memory
	under int // puts
}

// direct registers the memory of a message, for the time being. If that cannot be, the message does not leave: it is too
// long for what the end of a slot is used for besides.
func (ch *Channel) direct(r *Request) bool {
	if r.mr.mr == nil {
		mr, err := ch.p.net.Register(r.buf, false)
		if err != nil {
			r.end(err)
			return false
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
	a := ch.p.putWord(ch.remote, ch.send.Put(), (*answering)(ch))
	a.Lazy = !ch.bye // nothing may follow the last
	ch.under++
	ch.p.start(a)
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
	a := ch.slotPut(ch.ring(g.Ring), g.Bytes())
	a.use(ch.mem, off, g.Bytes())
	ch.p.start(a)
	ch.bye = true
	for r := ch.first; r != nil; r = r.next {
		if r.kind == freeing {
			r.left = true
		}
	}
	return true
}

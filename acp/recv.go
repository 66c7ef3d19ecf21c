package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// stepRecv has a receiving end go on, and reports whether only memory will tell when there is more
// to do.
func (ch *Channel) stepRecv() (watch bool) {
	if ch.state != open {
		return false // the request will tell
	}
	if !ch.imm {
		if err := ch.recv.Come(ch.control(0)); err != nil {
			ch.fail(err)
			return false
		}
	}
	for ch.first != nil && !ch.bye && ch.err == nil && ch.recv.Full() > 0 {
		n := ch.take(ch.first)
		ch.p.turns.events++
		switch {
		case !ch.recv.Due():
		case n >= flushMin: // the sender waits for room rather than we for an answer
			ch.give()
		default:
			ch.owe()
		}
	}
	if ch.err != nil {
		return false
	}
	if ch.bye {
		ch.leave()
		return false
	}
	if !ch.imm && ch.recv.Owed() > 0 {
		ch.owe()
	}
	return !ch.imm && ch.first != nil
}

// take takes a slot, for a receive, or for nobody if the end is freed, and returns how many bytes were in it.
func (ch *Channel) take(r *Request) int {
	slot, _ := ch.slot(ch.recv.Slot())
	g := ch.recv.Take(slot)
	switch {
	case g.Bye:
		ch.bye = true
	case r.kind == freeing:
	case g.Placed && r.place == nil:
		ch.fail(fmt.Errorf("%w: a message is said to be at a place that it was not given", ErrBroken))
	default:
		if g.Off < uint64(len(r.buf)) {
			copy(r.buf[g.Off:], g.Bytes)
		}
		if ch.long = g.Length >= placeMin; g.Last {
			r.n = int(min(g.Length, uint64(len(r.buf))))
			ch.pop().end(nil)
			ch.offer()
		}
	}
	return len(g.Bytes)
}

// owe has slots given back to the sender: with what the program does next, its answer perhaps, or when it comes
// back and waits. Ahead of an answer they would cost a packet that is waited for.
func (ch *Channel) owe() {
	if !ch.owes {
		ch.owes = true
		ch.p.channels.owing = append(ch.p.channels.owing, ch)
	}
}

// pay has all give that owe.
func (c *channels) pay() {
	for i, ch := range c.owing {
		c.owing[i] = nil
		ch.owes = false
		if ch.err == nil && ch.state == open && !ch.over {
			ch.give()
		}
	}
	c.owing = c.owing[:0]
}

// give gives slots that were taken back to the sender.
func (ch *Channel) give() {
	head, n := ch.recv.Tell()
	if ch.imm {
		ch.signal(protocol.Freed, n)
		return
	}
	a := ch.p.putWord(ch.remote.Add(protocol.HeadOffset), head, (*answering)(ch))
	a.Lazy = true
	ch.under++
	ch.p.start(a)
}

// signal tells the sender something by immediate data.
func (ch *Channel) signal(s protocol.Signal, n int) {
	a := ch.p.newAccess(ch.remote, 0, (*answering)(ch))
	a.Kind, a.Signal, a.Imm = fabric.Put, true, protocol.Imm(s, n, ch.far)
	a.Lazy = s != protocol.Ended
	ch.under++
	ch.p.start(a)
}

// leave ends what waits for messages, of which no more come. If the end is freed, it says so, and goes when that has
// left.
func (ch *Channel) leave() {
	for ch.first != nil && ch.first.kind == receiving {
		ch.pop().end(ErrEnd)
	}
	if ch.first == nil {
		return
	}
	if !ch.over {
		ch.over = true
		if ch.imm {
			ch.signal(protocol.Ended, 0)
		} else {
			head, _ := ch.recv.Tell()
			ch.under++
			ch.p.start(ch.p.putWord(ch.remote.Add(protocol.HeadOffset), head|protocol.HeadBye, (*answering)(ch)))
		}
	}
	if ch.under == 0 {
		ch.pop().end(nil)
		ch.release()
	}
}

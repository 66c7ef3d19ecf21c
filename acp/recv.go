package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// progressRecv advances a receiving end. It reports whether the next event is visible in memory only.
func (ch *Channel) progressRecv() (watch bool) {
	if ch.state != open {
		return false // the connection request opens it
	}
	if !ch.imm {
		if err := ch.recv.SetTail(ch.controlWord(0)); err != nil {
			ch.failChannel(err)
			return false
		}
	}
	for ch.first != nil && !ch.eof && ch.err == nil && ch.recv.AvailableSlots() > 0 {
		n := ch.takeSlot(ch.first)
		ch.p.changes++
		switch {
		case !ch.recv.CreditsDue():
		case n >= flushMin: // the sender waits for credits rather than this rank for a reply
			ch.returnCredits()
		default:
			ch.scheduleCredits()
		}
	}
	if ch.err != nil {
		return false
	}
	if ch.eof {
		ch.completeAtEOF()
		return false
	}
	if !ch.imm && ch.recv.PendingCredits() > 0 {
		ch.scheduleCredits()
	}
	return !ch.imm && ch.first != nil
}

// takeSlot consumes the next slot: it copies the data for r, or drops it if r is the Free. It returns the
// length of the data in bytes.
func (ch *Channel) takeSlot(r *Request) int {
	slot, _ := ch.slotBuf(ch.recv.NextSlot())
	g := ch.recv.TakeSlot(slot)
	switch {
	case g.EOF:
		ch.eof = true
	case r.kind == freeKind:
	case g.Direct && r.advertMem == nil:
		ch.failChannel(fmt.Errorf("%w: direct message without an advertised buffer", ErrBroken))
	default:
		if g.Off < uint64(len(r.buf)) {
			copy(r.buf[g.Off:], g.Bytes)
		}
		if ch.lastWasLong = g.Length >= minAdvert; g.Last {
			r.n = int(min(g.Length, uint64(len(r.buf))))
			ch.popRequest().complete(nil)
			ch.advertiseReceives()
		}
	}
	return len(g.Bytes)
}

// scheduleCredits queues ch for a credit update, which is sent with the next send or when the program waits.
// Sent ahead of a reply, the update would cost a packet on the critical path.
func (ch *Channel) scheduleCredits() {
	if !ch.creditDue {
		ch.creditDue = true
		ch.p.channels.creditsDue = append(ch.p.channels.creditsDue, ch)
	}
}

// flushCredits sends all pending credit updates.
func (t *channelTable) flushCredits() {
	for i, ch := range t.creditsDue {
		t.creditsDue[i] = nil
		ch.creditDue = false
		if ch.err == nil && ch.state == open && !ch.receiverFreed {
			ch.returnCredits()
		}
	}
	t.creditsDue = t.creditsDue[:0]
}

// returnCredits sends a credit update for the slots that were consumed.
func (ch *Channel) returnCredits() {
	head, n := ch.recv.TakeCredits()
	if ch.imm {
		ch.sendImm(protocol.SlotsFreed, n)
		return
	}
	a := ch.p.newWordPut(ch.remote.Add(protocol.HeadOffset), head, (*controlOp)(ch))
	a.Lazy = true
	ch.outstanding++
	ch.p.startAccess(a)
}

// sendImm sends a signal to the sender as immediate data.
func (ch *Channel) sendImm(s protocol.Signal, n int) {
	a := ch.p.newAccess(ch.remote, 0, (*controlOp)(ch))
	a.Kind, a.Signal, a.Imm = fabric.Put, true, protocol.EncodeImm(s, n, ch.remoteID)
	a.Lazy = s != protocol.ReceiverFreed
	ch.outstanding++
	ch.p.startAccess(a)
}

// completeAtEOF completes the receives that get no message with ErrEnd. If the end was freed, it notifies the
// sender and releases the memory when that has been sent.
func (ch *Channel) completeAtEOF() {
	for ch.first != nil && ch.first.kind == recvKind {
		ch.popRequest().complete(ErrEnd)
	}
	if ch.first == nil {
		return
	}
	if !ch.receiverFreed {
		ch.receiverFreed = true
		if ch.imm {
			ch.sendImm(protocol.ReceiverFreed, 0)
		} else {
			head, _ := ch.recv.TakeCredits()
			ch.outstanding++
			ch.p.startAccess(ch.p.newWordPut(ch.remote.Add(protocol.HeadOffset), head|protocol.HeadFreed, (*controlOp)(ch)))
		}
	}
	if ch.outstanding == 0 {
		ch.popRequest().complete(nil)
		ch.releaseMemory()
	}
}

package acp

import (
	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Segments are flushed in batches of flushAll bytes, which fill packets better than single segments. The
// first flush comes earlier, after flushMin bytes, to start the receiver.
const (
	flushMin = 4 << 10
	flushAll = 128 << 10
)

// progressSend advances a sending end. It reports whether the next event is visible in memory only.
func (ch *Channel) progressSend() (watch bool) {
	if ch.state != open {
		return ch.progressConnect()
	}
	if !ch.imm && !ch.readHead() {
		return false
	}
	oldTail := ch.send.Tail()
	mirrored, unflushed, threshold := oldTail, 0, flushMin
	if ch.outstanding > 0 {
		threshold = flushAll
	}
	for r := ch.nextUnsent(); r != nil; r = ch.nextUnsent() {
		if r.kind == freeKind {
			if !ch.putEOF() {
				break
			}
			continue
		}
		n, ok := ch.putNext(r)
		if !ok {
			break
		}
		if ch.err != nil {
			return false
		}
		if unflushed += n; unflushed >= threshold {
			ch.putTail()
			mirrored = ch.send.Tail()
			ch.p.net.Flush()
			unflushed, threshold = 0, flushAll
		}
	}
	if tail := ch.send.Tail(); tail != oldTail {
		ch.p.changes++
		if tail != mirrored {
			ch.putTail()
		}
	}
	if ch.receiverFreed && ch.eof && ch.send.AllSent() && ch.outstanding == 0 {
		ch.releaseMemory()
		return false
	}
	return !ch.imm && (ch.eof || ch.nextUnsent() != nil)
}

// putNext sends the next part of r: the whole message if its receive buffer is advertised, else a segment. It
// returns the length in bytes, and false if the receiver has no free slot.
func (ch *Channel) putNext(r *Request) (n int, ok bool) {
	direct := !ch.copyOnly && len(r.buf) >= directMin
	if direct && !ch.registerMessage(r) {
		return 0, true // r has failed
	}
	if at, known := ch.nextAdvert(); known && direct {
		g, ok := ch.send.NextDirect()
		if ok {
			ch.writeToAdvert(r, at, g)
			r.sent = true
		}
		return len(r.buf), ok
	}
	g, ok := ch.send.NextSegment(len(r.buf), direct || ch.send.NextLen(len(r.buf)) <= maxInline)
	if ok {
		ch.putSegment(r, g)
		r.sent = g.Last
	}
	return g.Size(), ok
}

// nextUnsent returns the first request that is not sent completely. It completes the sends before it, in
// order, once no put reads their buffers.
func (ch *Channel) nextUnsent() *Request {
	for ch.first != nil && (ch.first.done || ch.first.sent && ch.first.sendMem.mr == nil) {
		if r := ch.popRequest(); !r.done {
			r.complete(nil)
		}
	}
	r := ch.first
	for r != nil && (r.sent || r.done) {
		r = r.next
	}
	return r
}

// readHead reads the receiver's mirrored head index.
func (ch *Channel) readHead() bool {
	head := ch.controlWord(protocol.HeadOffset)
	ch.receiverFreed = ch.receiverFreed || head&protocol.HeadFreed != 0
	if err := ch.send.SetHead(head &^ protocol.HeadFreed); err != nil {
		ch.failChannel(err)
		return false
	}
	return true
}

// putSegment sends a segment of a message: from the program's buffer, inline in the work request, or copied
// to a slot.
func (ch *Channel) putSegment(r *Request, g protocol.Segment) {
	if r.sendMem.mr != nil {
		to, n := ch.remoteSlot(g.Ring), g.Size()
		if g.HeaderLen > 0 {
			a := ch.newHeaderPut(to, uint64(len(r.buf)), (*controlOp)(ch))
			a.Lazy = true
			ch.p.startAccess(a)
			to, n = to.Add(g.HeaderLen), g.N
		}
		a := ch.newSlotPut(to, n)
		a.setMessage(r, g.Off, g.N)
		ch.p.startAccess(a)
		return
	}
	a := ch.newSlotPut(ch.remoteSlot(g.Ring), g.Size())
	var slot []byte
	if g.Slot < 0 {
		slot = a.words[:g.Size()]
		a.Inline, a.Lazy = slot, true
	} else {
		var off int
		slot, off = ch.slotBuf(g.Slot)
		a.setLocal(ch.mem, off, g.Size())
	}
	if g.HeaderLen > 0 {
		protocol.PutHeader(slot, uint64(len(r.buf)))
	}
	copy(slot[g.HeaderLen:], r.buf[g.Off:g.Off+g.N])
	ch.p.startAccess(a)
}

// setMessage makes n bytes of r's buffer the source of a put.
func (a *access) setMessage(r *Request, off, n int) {
	a.Mem, a.Off, a.N, a.request = r.sendMem.mr, off, n, r
	r.sendMem.outstanding++
}

// hasUnposted reports whether operations on the receiver wait for this rank's progress before the adapter has
// them.
func (ch *Channel) hasUnposted() bool {
	r := ch.p.peers[ch.peer]
	if r == nil || r.lostErr != nil {
		return false
	}
	if !r.connected {
		return r.pending.first != nil
	}
	e := r.entries[uint16(ch.remote.Region())]
	return e != nil && !e.valid && e.pending.first != nil || ch.p.net.HasUnposted(int(ch.peer))
}

// newHeaderPut returns a put of the header of a message.
func (ch *Channel) newHeaderPut(to protocol.GA, length uint64, owner accessOwner) *access {
	a := ch.p.newWordPut(to, 0, owner)
	protocol.PutHeader(a.Inline, length)
	ch.outstanding++
	return a
}

// remoteSlot returns the address of a slot of the receiver.
func (ch *Channel) remoteSlot(i int) protocol.GA {
	return ch.remote.Add((i - ch.send.RemoteSlots()) * int(ch.size))
}

// newSlotPut returns a put of n bytes of a segment. The caller sets the source.
func (ch *Channel) newSlotPut(to protocol.GA, n int) *access {
	a := ch.p.newAccess(to, n, (*slotPutOp)(ch))
	a.Kind = fabric.Put
	if ch.imm {
		a.Signal, a.Imm = true, protocol.EncodeImm(protocol.SlotFilled, 1, ch.remoteID)
	}
	ch.outstanding++
	return a
}

// slotPutOp is a Channel as the accessOwner of puts to slots.
type slotPutOp Channel

func (e *slotPutOp) onAccessDone(a *access, err error) {
	ch := (*Channel)(e)
	ch.outstanding--
	if a.local != nil {
		ch.send.SlotSent()
	}
	if r := a.request; r != nil {
		if r.sendMem.outstanding--; r.sendMem.outstanding == 0 && (r.sent || r.done) {
			r.deregister() // nextUnsent completes it, unless the channel has failed
		}
	}
	if err != nil {
		ch.failChannel(err)
	}
	ch.p.channels.markActive(ch)
}

// sendMemory is the registered buffer of a zero-copy send.
type sendMemory struct {
	mr          fabric.Memory
	outstanding int // puts in flight
}

// registerMessage registers the buffer of a zero-copy send. If that fails, so does the send: a slot cannot
// take its place, because the board is in the last slot.
func (ch *Channel) registerMessage(r *Request) bool {
	if r.sendMem.mr == nil {
		mr, err := ch.p.net.Register(r.buf, false)
		if err != nil {
			r.complete(err)
			return false
		}
		r.sendMem.mr = mr
	}
	return true
}

// putTail mirrors the tail index in the receiver's memory. With immediate data each slot signals itself.
func (ch *Channel) putTail() {
	if ch.imm {
		return
	}
	a := ch.p.newWordPut(ch.remote, ch.send.Tail(), (*controlOp)(ch))
	a.Lazy = !ch.eof // EOF may be the last operation, so its tail must not be lazy
	ch.outstanding++
	ch.p.startAccess(a)
}

// putEOF sends EOF. The Free is complete when it has arrived; the memory is released when the receiver has
// reported that it writes no more.
func (ch *Channel) putEOF() bool {
	g, ok := ch.send.NextEOF()
	if !ok {
		return false
	}
	slot, off := ch.slotBuf(g.Slot)
	protocol.PutHeader(slot, protocol.EOF)
	a := ch.newSlotPut(ch.remoteSlot(g.Ring), g.Size())
	a.setLocal(ch.mem, off, g.Size())
	ch.p.startAccess(a)
	ch.eof = true
	for r := ch.first; r != nil; r = r.next {
		if r.kind == freeKind {
			r.sent = true
		}
	}
	return true
}

package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// errUnposted ends a connection whose driver mixes up its queue pairs.
var errUnposted = errors.New("a completion of work that was not posted")

// Complete takes a completion of the connection's queue pair.
func (c *Core) Complete(wc *verbs.WC) {
	switch {
	case wc.Status != verbs.WCSuccess:
		c.broken(wc)
	case wc.Opcode.IsRecv():
		c.arrived(wc)
	default:
		c.completed(wc)
	}
	if c.started {
		c.proceed()
	}
}

// broken takes a failed completion: the queue pair is in StateErr. Flushed work
// says nothing about the cause.
func (c *Core) broken(wc *verbs.WC) {
	c.aborting = 0
	if c.Over() {
		return
	}
	if wc.Status == verbs.WCWRFlushErr {
		c.Fail(ErrReset)
		return
	}
	var refused *verbs.RefusedError
	if wc.Status == verbs.WCRetryExcErr && !errors.As(wc.Err(), &refused) {
		c.Fail(fmt.Errorf("%w, because the peer does not answer any more: %w", ErrReset, wc.Err()))
		return
	}
	c.Fail(fmt.Errorf("%w: %w", ErrReset, wc.Err()))
}

// completed takes the success of a send request.
func (c *Core) completed(wc *verbs.WC) {
	switch k, value := split(wc.WRID); {
	case k == kindData && c.started:
		c.sender.Done(value)
	case k == kindControl:
		c.controlDone(value)
	case k == kindRead && c.fetch.reading:
		c.fetched()
	case k == kindWrite && c.drain.writing:
		c.placed()
	case k == kindAlive && c.asking:
		c.asking, c.left = false, value == last
	default:
		c.Fail(errUnposted)
	}
}

// arrived takes a message.
func (c *Core) arrived(wc *verbs.WC) {
	slot, ok := c.slots.arrived(wc.WRID)
	if !ok {
		c.Fail(errUnposted)
		return
	}
	if !c.started {
		c.violation("a message before the connection is there")
		return
	}
	c.received++
	if c.peer.Design != flow.NIC && c.known() < 0 {
		c.violation("message %d, and there were receives for %d", c.received, c.words.at+uint32(c.words.told))
		return
	}
	if wc.Opcode == verbs.WCRecvRDMAWithImm {
		c.slots.give(slot)
		c.ringWrite(bsdh.Imm(wc.Imm), int(wc.ByteLen))
		return
	}
	b := c.slots.bytes(slot, int(wc.ByteLen))
	keeps := false
	if wc.Flags&verbs.WCWithImm != 0 {
		keeps = c.brief(bsdh.Brief(wc.Imm), b, slot)
	} else {
		keeps = c.message(b, slot)
	}
	if !keeps {
		c.slots.give(slot)
	}
	if c.slots.isOld(slot) {
		c.oldUsed()
	}
}

// message takes a message of the standard's form, and reports whether it keeps
// the slot.
func (c *Core) message(b []byte, slot int) (keeps bool) {
	h, err := bsdh.ParseHeader(b)
	if err != nil {
		c.violation("%v", err)
		return false
	}
	if int(h.Len) != len(b) {
		c.violation("%v says %d bytes and has %d", h.MID, h.Len, len(b))
		return false
	}
	if h.Seq != c.received {
		c.violation("%v has number %d; %d was due", h.MID, h.Seq, c.received)
		return false
	}
	return c.heard(h, b[bsdh.HeaderBytes:], slot)
}

// heard takes the word about the peer's receives in a header, and the message.
func (c *Core) heard(h bsdh.Header, body []byte, slot int) (keeps bool) {
	if !c.credits.Update(h.Bufs, h.Ack) {
		c.violation("%v acknowledges message %d, which was not sent", h.MID, h.Ack)
		return false
	}
	c.mode.acknowledged(h.Ack)
	return c.dispatch(h, body, slot)
}

// brief takes a Data message whose header is immediate data, and reports whether it
// keeps the slot.
func (c *Core) brief(b bsdh.Brief, payload []byte, slot int) (keeps bool) {
	if !c.peer.Brief {
		c.violation("a SEND with immediate data, which was not agreed on")
		return false
	}
	if room := cap(payload) - bsdh.HeaderBytes; len(payload) > room { // the slot has room for a header, too
		c.violation("a brief Data message of %d bytes for a receive of %d", len(payload), room)
		return false
	}
	return c.heard(b.Header(c.received, c.credits.Sent(), len(payload)), payload, slot)
}

// ringWrite takes note of data that the peer has written to our ring.
func (c *Core) ringWrite(imm bsdh.Imm, n int) {
	r, ok := c.receiver.(flow.RingReceiver)
	if !ok {
		c.violation("an RDMA WRITE with immediate data in a connection without a ring")
		return
	}
	if !c.mayArrive("a write") {
		return
	}
	if err := r.Arrived(int(imm.Offset()), n); err != nil {
		c.violation("a write of %d bytes at %d of the ring: %v", n, imm.Offset(), err)
		return
	}
	c.crowded(r)
	c.kept(n, imm.Urgent())
}

// data takes a Data message of the standard.
func (c *Core) data(h bsdh.Header, payload []byte, slot int) (keeps bool) {
	r, ok := c.receiver.(*flow.CreditReceiver)
	if !ok {
		c.violation("a Data message with %d bytes in a connection by %v", len(payload), c.peer.Design)
		return false
	}
	if !c.mayArrive("a Data message") {
		return false
	}
	if err := r.Arrived(slot, payload); err != nil {
		c.violation("%v", err)
		return false
	}
	c.kept(len(payload), h.Flags&bsdh.OOBPresent != 0)
	return true
}

// mayArrive reports whether data has its place here.
func (c *Core) mayArrive(what string) bool {
	switch {
	case c.finished:
		c.violation("%s after DisConn", what)
	case c.avail.live:
		c.violation("%s behind a SrcAvail that is open", what)
	default:
		return true
	}
	return false
}

// kept counts n bytes of data that have been taken.
func (c *Core) kept(n int, urgent bool) {
	c.carrying++
	c.stats.arrived(n)
	if urgent {
		c.urge.arrive(c.position + uint64(c.receiver.Buffered()))
	}
	c.crossed()
}

// dispatch handles a message by its id, and reports whether it keeps the slot.
func (c *Core) dispatch(h bsdh.Header, body []byte, slot int) (keeps bool) {
	ext, payload := body[:h.MID.Extended()], body[h.MID.Extended():]
	if h.Flags&bsdh.OOBPending != 0 {
		c.urge.announced = true
	}
	if len(payload) > 0 && !h.MID.MayCarry() {
		c.violation("%v with %d bytes of data", h.MID, len(payload))
		return false
	}
	if h.MID.Private() && c.peer.Design == flow.Credit {
		c.violation("%v in a connection by %v", h.MID, c.peer.Design)
		return false
	}
	switch h.MID {
	case bsdh.MIDData:
		if len(payload) == 0 {
			c.words.empty++
			c.questions.heard(h.Flags&bsdh.RequestPipe != 0 && c.peer.Design == flow.NIC)
			return false
		}
		return c.data(h, payload, slot)
	case bsdh.MIDDisConn:
		c.ended()
	case bsdh.MIDAbortConn:
		c.Fail(ErrAborted)
	case bsdh.MIDSrcAvail:
		return c.sourceAvailable(ext, payload, slot)
	case bsdh.MIDSinkAvail:
		c.sinkAvailable(ext, payload)
	case bsdh.MIDRdmaRdCompl:
		c.offerRead(binary.BigEndian.Uint32(ext), h.Flags)
	case bsdh.MIDRdmaWrCompl:
		c.sinkWritten(binary.BigEndian.Uint32(ext))
	case bsdh.MIDSendSm:
		c.offerRefused()
	case bsdh.MIDSrcAvailCancel:
		c.availCancelled()
	case bsdh.MIDSinkAvailCancel:
		c.drainCancelled()
	case bsdh.MIDSinkCancelAck:
		c.sinkCancelled()
	case bsdh.MIDModeChange:
		c.modeChange(ext)
	case bsdh.MIDChRcvBuf:
		c.sizeAsked(binary.BigEndian.Uint32(ext))
	case bsdh.MIDChRcvBufAck:
		c.sizeAnswered(binary.BigEndian.Uint32(ext))
	case bsdh.MIDSuspComm:
		// The peer wants to move the connection elsewhere. We stay.
		c.Fail(fmt.Errorf("%w: the peer wants to suspend it (SuspComm), which is not supported", ErrReset))
	case bsdh.MIDRingUpdate:
		c.ringFreed(binary.BigEndian.Uint64(ext))
	case bsdh.MIDRingChange:
		c.ringOffered(ext)
	case bsdh.MIDRingSwitched:
		c.ringSwitched()
	default:
		c.violation("%v", h.MID)
	}
	return false
}

// ringFreed takes a RingUpdate.
func (c *Core) ringFreed(freed uint64) {
	s, ok := c.sender.(*flow.RDMASender)
	if !ok {
		c.violation("RingUpdate in a connection by %v", c.peer.Design)
		return
	}
	c.words.empty++
	if !s.Freed(freed) {
		c.violation("RingUpdate says that %d bytes are free again, more than were sent", freed)
	}
}

package protocol

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/sdp/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// Complete takes a completion of the connection's queue pair.
func (c *Core) Complete(wc *verbs.WC) {
	if wc.Status != verbs.WCSuccess {
		c.broken(wc)
		return
	}
	if wc.Opcode.IsRecv() {
		c.arrived(wc)
	} else {
		c.completed(wc)
	}
	if c.err == nil {
		c.repost()
		c.report()
		c.pump()
	}
}

// broken takes a failed completion: the queue pair is in StateErr. Flushed work
// says nothing about the cause.
func (c *Core) broken(wc *verbs.WC) {
	if c.over() {
		return
	}
	if wc.Status == verbs.WCWRFlushErr {
		c.fail(ErrReset)
		return
	}
	c.fail(fmt.Errorf("%w: %w", ErrReset, wc.Err()))
}

// completed takes the success of a send request.
func (c *Core) completed(wc *verbs.WC) {
	switch k, value := split(wc.WRID); k {
	case kindData:
		c.sender.Done(value)
	case kindControl:
		c.controls.done = value
		c.there = c.there || c.parted && value == c.controls.sent
	case kindRead:
		c.fetched(int(value))
	case kindWrite:
		c.placed(int(value))
	}
}

// arrived takes a message.
func (c *Core) arrived(wc *verbs.WC) {
	slot := int(wc.WRID)
	c.slots.posted--
	if !c.started {
		c.violation("a message before the connection is there")
		return
	}
	if wc.Opcode == verbs.WCRecvRDMAWithImm {
		c.slots.give(slot)
		c.ringWrite(bsdh.Imm(wc.Imm), int(wc.ByteLen))
		return
	}
	b := c.slots.bytes(slot, int(wc.ByteLen))
	h, err := bsdh.ParseHeader(b)
	if err != nil {
		c.violation("%v", err)
		return
	}
	if int(h.Len) != len(b) {
		c.violation("%v says %d bytes and has %d", h.MID, h.Len, len(b))
		return
	}
	c.received++
	if h.Seq != c.received {
		c.violation("%v has number %d; %d was due", h.MID, h.Seq, c.received)
		return
	}
	if !c.credits.Update(h.Bufs, h.Ack) {
		c.violation("%v acknowledges message %d, which was not sent", h.MID, h.Ack)
		return
	}
	if !c.dispatch(h, b[bsdh.HeaderBytes:], slot) {
		c.slots.give(slot)
	}
}

// ringWrite takes note of data that the peer has written to our ring.
func (c *Core) ringWrite(imm bsdh.Imm, n int) {
	c.received++
	if c.peer.Design == flow.Credit {
		c.violation("an RDMA WRITE with immediate data in a connection without a ring")
		return
	}
	if c.finished {
		c.violation("data after DisConn")
		return
	}
	if err := c.receiver.(flow.RingReceiver).Arrived(int(imm.Offset()), n); err != nil {
		c.violation("a write of %d bytes at %d of the ring: %v", n, imm.Offset(), err)
		return
	}
	c.carrying++
	c.stats.arrived(n)
	if imm.Urgent() {
		c.urge.arrive(c.receiver.Buffered())
	}
	c.crossed()
}

// dispatch handles a message by its id, and reports whether it keeps the slot.
func (c *Core) dispatch(h bsdh.Header, body []byte, slot int) (keeps bool) {
	ext, payload := body[:h.MID.Extended()], body[h.MID.Extended():]
	if h.Flags&bsdh.OOBPending != 0 {
		c.urge.announced = true
	}
	if len(payload) > 0 && h.MID != bsdh.MIDData && h.MID != bsdh.MIDSrcAvail && h.MID != bsdh.MIDSinkAvail {
		c.violation("%v with %d bytes of data", h.MID, len(payload))
		return false
	}
	switch h.MID {
	case bsdh.MIDData:
		if len(payload) == 0 {
			return false
		}
		return c.data(h, payload, slot)
	case bsdh.MIDDisConn:
		if c.finished {
			c.violation("DisConn twice")
			return false
		}
		c.finished = true
		c.ended()
	case bsdh.MIDAbortConn:
		c.fail(ErrAborted)
	case bsdh.MIDRingUpdate:
		s, ok := c.sender.(*flow.RDMASender)
		if !ok {
			c.violation("%v in a connection by %v", h.MID, c.peer.Design)
			return false
		}
		if freed := binary.BigEndian.Uint64(ext); !s.Freed(freed) {
			c.violation("%v frees %d bytes, more than were sent", h.MID, freed)
		}
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
		c.resizeAsked(binary.BigEndian.Uint32(ext))
	case bsdh.MIDChRcvBufAck:
		c.resized(binary.BigEndian.Uint32(ext))
	case bsdh.MIDSuspComm:
		// The peer wants to move the connection elsewhere. We stay.
		c.fail(fmt.Errorf("%w: the peer wants to suspend it (SuspComm), which is not supported", ErrReset))
	default:
		c.violation("%v", h.MID)
	}
	return false
}

// data takes a Data message of the standard.
func (c *Core) data(h bsdh.Header, payload []byte, slot int) (keeps bool) {
	r, ok := c.receiver.(*flow.CreditReceiver)
	switch {
	case !ok:
		c.violation("a Data message with %d bytes in a connection by %v", len(payload), c.peer.Design)
		return false
	case c.finished:
		c.violation("data after DisConn")
		return false
	}
	if err := r.Arrived(slot, payload); err != nil {
		c.violation("%v", err)
		return false
	}
	c.carrying++
	c.stats.arrived(len(payload))
	if h.Flags&bsdh.OOBPresent != 0 {
		c.urge.arrive(r.Buffered())
	}
	c.crossed()
	return true
}

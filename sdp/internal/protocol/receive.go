package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// Read copies received bytes to p and returns their number, 0 if none are buffered.
// [Core.Finished] reports the end of the stream.
func (c *Core) Read(p []byte) (n int) {
	n = c.receiver.Read(p)
	if n > 0 {
		c.position += uint64(n)
		c.stats.addRead(n)
		c.postPending()
	}
	return n
}

// RingHalfFull reports whether more than half of the receive ring is unread. It is false with
// Credit.
func (c *Core) RingHalfFull() bool {
	r, ok := c.receiver.(flow.RingReceiver)
	return ok && r.HalfFull()
}

// Urgent returns the number of unread bytes up to and including the last urgent one, or 0, and
// whether the peer has announced another that has not arrived.
func (c *Core) Urgent() (ahead int, announced bool) {
	if c.oob.recvPos > c.position {
		ahead = int(c.oob.recvPos - c.position)
	}
	return ahead, c.oob.announced
}

// HandleCompletion handles a completion of the connection's queue pair.
func (c *Core) HandleCompletion(wc *verbs.WC) {
	switch {
	case wc.Status != verbs.WCSuccess:
		c.handleFailure(wc)
	case wc.Opcode.IsRecv():
		c.handleReceive(wc)
	default:
		c.handleSendCompletion(wc)
	}
	if c.started {
		c.postPending()
	}
}

// handleSendCompletion handles a successful send completion.
func (c *Core) handleSendCompletion(wc *verbs.WC) {
	switch k, value := splitWRID(wc.WRID); {
	case k == kindData && c.started:
		c.sender.CompleteUpTo(value)
	case k == kindControl:
		c.handleControlDone(value)
	case k == kindRead && c.sourceRead.outstanding:
		c.handleSourceReadDone()
	case k == kindWrite && c.sinkWrite.outstanding:
		c.handleSinkWriteDone()
	case k == kindAlive && c.probing:
		c.probing, c.flushed = false, value == probeAfterLast
	default:
		c.Fail(errUnposted)
	}
}

// handleFailure handles a failed completion, after which the queue pair is in StateErr. A flush
// error does not tell the cause.
func (c *Core) handleFailure(wc *verbs.WC) {
	c.abortSeq = 0
	if c.BothClosed() {
		return
	}
	if wc.Status == verbs.WCWRFlushErr {
		c.Fail(ErrReset)
		return
	}
	var refused *verbs.RefusedError
	if wc.Status == verbs.WCRetryExcErr && !errors.As(wc.Err(), &refused) {
		c.Fail(fmt.Errorf("%w: no acknowledgement from peer: %w", ErrReset, wc.Err()))
		return
	}
	c.Fail(fmt.Errorf("%w: %w", ErrReset, wc.Err()))
}

// handleReceive handles a receive completion.
func (c *Core) handleReceive(wc *verbs.WC) {
	slot, ok := c.slots.consume(wc.WRID)
	if !ok {
		c.Fail(errUnposted)
		return
	}
	if !c.started {
		c.violation("message before the connection is established")
		return
	}
	c.received++
	if c.peer.FlowControl != flow.NIC && c.advertisedLeft() < 0 {
		c.violation("message %d exceeds the advertised receives, %d", c.received, c.advertised.atSeq+uint32(c.advertised.count))
		return
	}
	if wc.Opcode == verbs.WCRecvRDMAWithImm {
		c.slots.release(slot)
		c.handleRingWrite(bsdh.Imm(wc.Imm), int(wc.ByteLen))
		return
	}
	b := c.slots.bytes(slot, int(wc.ByteLen))
	keeps := false
	if wc.Flags&verbs.WCWithImm != 0 {
		keeps = c.handleBrief(bsdh.ShortHeader(wc.Imm), b, slot)
	} else {
		keeps = c.handleMessage(b, slot)
	}
	if !keeps {
		c.slots.release(slot)
	}
	if c.slots.isOld(slot) {
		c.countOldReceive()
	}
}

// handleRingWrite handles data that the peer has written to the local ring.
func (c *Core) handleRingWrite(imm bsdh.Imm, n int) {
	r, ok := c.receiver.(flow.RingReceiver)
	if !ok {
		c.violation("RDMA WRITE with immediate data in a connection without a ring")
		return
	}
	if !c.checkDataAllowed("ring write") {
		return
	}
	if err := r.Deliver(int(imm.Offset()), n); err != nil {
		c.violation("ring write of %d bytes at offset %d: %v", n, imm.Offset(), err)
		return
	}
	c.noteRingPressure(r)
	c.recordData(n, imm.Urgent())
}

// handleBrief handles a Data message whose header is immediate data and reports whether it keeps
// the slot.
func (c *Core) handleBrief(b bsdh.ShortHeader, payload []byte, slot int) (keeps bool) {
	if !c.peer.ShortHeaders {
		c.violation("SEND with immediate data not negotiated")
		return false
	}
	if room := cap(payload) - bsdh.HeaderBytes; len(payload) > room { // the slot also has space for a header
		c.violation("Data message with a short header of %d bytes exceeds the receive of %d", len(payload), room)
		return false
	}
	return c.updateCreditsAndDispatch(b.Header(c.received, c.credits.LastSeq(), len(payload)), payload, slot)
}

// handleMessage handles a message with the standard's header (BSDH) and reports whether it keeps
// the slot.
func (c *Core) handleMessage(b []byte, slot int) (keeps bool) {
	h, err := bsdh.ParseHeader(b)
	if err != nil {
		c.violation("%v", err)
		return false
	}
	if int(h.Len) != len(b) {
		c.violation("%v: length field %d, message has %d bytes", h.MID, h.Len, len(b))
		return false
	}
	if h.Seq != c.received {
		c.violation("%v: sequence number %d, want %d", h.MID, h.Seq, c.received)
		return false
	}
	return c.updateCreditsAndDispatch(h, b[bsdh.HeaderBytes:], slot)
}

// updateCreditsAndDispatch applies the credits and the acknowledgement in a header and dispatches
// the message.
func (c *Core) updateCreditsAndDispatch(h bsdh.Header, body []byte, slot int) (keeps bool) {
	if !c.credits.Update(h.Bufs, h.Ack) {
		c.violation("%v: acknowledgement of unsent message %d", h.MID, h.Ack)
		return false
	}
	c.mode.handleAck(h.Ack)
	return c.dispatchMessage(h, body, slot)
}

// dispatchMessage handles a message by its ID and reports whether it keeps the slot.
func (c *Core) dispatchMessage(h bsdh.Header, body []byte, slot int) (keeps bool) {
	ext, payload := body[:h.MID.Extended()], body[h.MID.Extended():]
	if h.Flags&bsdh.OOBPending != 0 {
		c.oob.announced = true
	}
	if len(payload) > 0 && !h.MID.MayCarry() {
		c.violation("%v with %d bytes of data", h.MID, len(payload))
		return false
	}
	if h.MID.Private() && c.peer.FlowControl == flow.Credit {
		c.violation("%v with flow control %v", h.MID, c.peer.FlowControl)
		return false
	}
	switch h.MID {
	case bsdh.MIDData:
		if len(payload) == 0 {
			c.advertised.emptyMessages++
			c.receiveQuery.handleEmptyData(h.Flags&bsdh.RequestPipe != 0 && c.peer.FlowControl == flow.NIC)
			return false
		}
		return c.handleData(h, payload, slot)
	case bsdh.MIDDisConn:
		c.handleDisConn()
	case bsdh.MIDAbortConn:
		c.Fail(ErrAborted)
	case bsdh.MIDSrcAvail:
		return c.handleSrcAvail(ext, payload) && len(payload) > 0 && c.deliverInline(payload, slot)
	case bsdh.MIDSinkAvail:
		c.handleSinkAvail(ext, payload)
	case bsdh.MIDRdmaRdCompl:
		c.handleRdmaRdCompl(binary.BigEndian.Uint32(ext), h.Flags)
	case bsdh.MIDRdmaWrCompl:
		c.handleRdmaWrCompl(binary.BigEndian.Uint32(ext))
	case bsdh.MIDSendSm:
		c.handleSendSm()
	case bsdh.MIDSrcAvailCancel:
		c.handleSrcAvailCancel()
	case bsdh.MIDSinkAvailCancel:
		c.handleSinkAvailCancel()
	case bsdh.MIDSinkCancelAck:
		c.handleSinkCancelAck()
	case bsdh.MIDModeChange:
		c.handleModeChange(ext)
	case bsdh.MIDChRcvBuf:
		c.handleChRcvBuf(binary.BigEndian.Uint32(ext))
	case bsdh.MIDChRcvBufAck:
		c.handleChRcvBufAck(binary.BigEndian.Uint32(ext))
	case bsdh.MIDSuspComm:
		// SuspComm asks to move the connection to another address.
		c.Fail(fmt.Errorf("%w: SuspComm not supported", ErrReset))
	case bsdh.MIDRingUpdate:
		c.handleRingUpdate(binary.BigEndian.Uint64(ext))
	case bsdh.MIDRingChange:
		c.handleRingChange(ext)
	case bsdh.MIDRingSwitched:
		c.handleRingSwitched()
	default:
		c.violation("%v", h.MID)
	}
	return false
}

// handleData handles a Data message with a header and reports whether it keeps the slot.
func (c *Core) handleData(h bsdh.Header, payload []byte, slot int) (keeps bool) {
	r, ok := c.receiver.(*flow.CreditReceiver)
	if !ok {
		c.violation("Data message of %d bytes with flow control %v", len(payload), c.peer.FlowControl)
		return false
	}
	if !c.checkDataAllowed("Data message") {
		return false
	}
	if err := r.Deliver(slot, payload); err != nil {
		c.violation("%v", err)
		return false
	}
	c.recordData(len(payload), h.Flags&bsdh.OOBPresent != 0)
	return true
}

// deliverInline delivers the data that a SrcAvail carries.
func (c *Core) deliverInline(payload []byte, slot int) (keeps bool) {
	if err := c.receiver.(*flow.CreditReceiver).Deliver(slot, payload); err != nil {
		c.violation("%v", err)
		return false
	}
	c.recordData(len(payload), false)
	return true
}

// handleRingUpdate handles a RingUpdate, the peer's report of free bytes.
func (c *Core) handleRingUpdate(freed uint64) {
	s, ok := c.sender.(*flow.RDMASender)
	if !ok {
		c.violation("RingUpdate with flow control %v", c.peer.FlowControl)
		return
	}
	c.advertised.emptyMessages++
	if !s.SetFreed(freed) {
		c.violation("RingUpdate of %d bytes, more than were sent", freed)
	}
}

// checkDataAllowed reports whether data is valid in the current state; otherwise it fails the
// connection.
func (c *Core) checkDataAllowed(what string) bool {
	switch {
	case c.peerClosed:
		c.violation("%s after DisConn", what)
	case c.peerSource.live:
		c.violation("%s while a SrcAvail is outstanding", what)
	default:
		return true
	}
	return false
}

// recordData counts n bytes of delivered data.
func (c *Core) recordData(n int, urgent bool) {
	c.carrying++
	c.stats.addReceived(n)
	if urgent {
		c.oob.recordArrival(c.position + uint64(c.receiver.Buffered()))
	}
	c.endCrossedSink()
}

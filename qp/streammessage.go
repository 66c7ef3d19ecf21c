package qp

import (
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// beginSegment checks a segment with n bytes of payload before anything of it is stored. If it is
// invalid, it ends the connection and returns false.
func (c *Core) beginSegment(now reliability.Time, h *iwarp.Header, head []byte, n int) bool {
	s := c.stream
	s.maySend = true
	c.peerSeen = true
	c.recordSegment(now, false, h.Opcode, h.MSN)
	if c.state == sRTR && !c.established {
		c.established = true
		c.host.Event(verbs.EventCommEst, nil)
	}
	reject := func(code iwarp.Code, reason string) bool {
		c.rejectSegment(now, code, head, len(head)+n, reason)
		return false
	}
	if !s.params.Extended && h.Opcode >= iwarp.OpImmediate && h.Opcode != iwarp.OpAtomicRequest && h.Opcode != iwarp.OpAtomicResponse {
		return reject(iwarp.UnexpectedOpcode, "the opcode is unknown")
	}
	switch h.Opcode {
	case iwarp.OpWrite:
		return n == 0 || c.checkWrite(now, h, head, n)
	case iwarp.OpReadResponse:
		if s.in.rtrResponse && n == 0 && h.Last && h.STag == 0 {
			return true
		}
		_, w := c.oldestResponse(verbs.WRRDMARead)
		switch {
		case w == nil || uint32(w.operand) != h.STag:
			return reject(iwarp.TaggedInvalidSTag, "no read is outstanding with the key of the response")
		case h.Offset != uint64(w.got) || uint64(w.got)+uint64(n) > uint64(w.length) || h.Last != (int(w.got)+n == int(w.length)):
			return reject(iwarp.TaggedBaseBounds, "the response does not have the bytes that were requested")
		}
		return true
	}
	inMessage := h.Queue == iwarp.QueueSend && c.msg.active
	switch {
	case h.MSN != s.nextMSN[h.Queue]+1:
		return reject(iwarp.MSNOutOfRange, "the message has the wrong number")
	case !inMessage && h.Message != 0, inMessage && h.Message != c.msg.got:
		return reject(iwarp.InvalidOffset, "the segment has the wrong offset in its message")
	case inMessage && h.Opcode != s.in.message:
		return reject(iwarp.UnexpectedOpcode, "the opcode changes within a message")
	case h.Queue != iwarp.QueueSend:
		s.nextMSN[h.Queue]++
		return true
	case !inMessage && !c.acquireRecv():
		return reject(iwarp.NoBuffer, "no receive is posted")
	}
	c.msg.active, s.in.message = true, h.Opcode
	if h.Opcode != iwarp.OpImmediate && h.Opcode != iwarp.OpImmediateSE && uint64(c.msg.got)+uint64(n) > c.msg.capacity {
		c.failTooLong(now, h, head, len(head)+n)
		return false
	}
	return true
}

// checkWrite checks the target of a WRITE.
func (c *Core) checkWrite(now reliability.Time, h *iwarp.Header, head []byte, n int) bool {
	f := FaultAccess
	if c.attr.AccessFlags&verbs.AccessRemoteWrite != 0 {
		_, f = c.mem.Remote(h.STag, h.Offset, uint32(n), verbs.AccessRemoteWrite, c.num)
	}
	switch {
	case f == NoFault:
		return true
	case h.Offset+uint64(n) < h.Offset:
		c.rejectAccess(now, iwarp.TaggedOffsetWrap, head, n, nil, h.STag, h.Offset, uint32(n), f)
	default:
		c.rejectAccess(now, taggedCode(f), head, n, nil, h.STag, h.Offset, uint32(n), f)
	}
	return false
}

// endSegment handles the end of a segment whose payload is stored.
func (c *Core) endSegment(now reliability.Time, h *iwarp.Header, n int) {
	c.counters.RcvdBytes += uint64(n)
	switch h.Opcode {
	case iwarp.OpWrite:
	case iwarp.OpReadResponse:
		if c.stream.in.rtrResponse && h.STag == 0 {
			c.stream.in.rtrResponse = false
			return
		}
		_, w := c.oldestResponse(verbs.WRRDMARead)
		w.got += uint32(n)
		if h.Last {
			c.finishResponse(now, w)
		}
	default:
		c.msg.got += uint32(n)
		if h.Last {
			c.finishMessage(now, h, verbs.WC{Opcode: verbs.WCRecv, ByteLen: c.msg.got})
		}
	}
}

// finishResponse completes a READ or atomic.
func (c *Core) finishResponse(now reliability.Time, w *sendWQE) {
	w.done = true
	c.rdOut--
	c.completeReady(now)
}

// finishMessage completes the receive of a message.
func (c *Core) finishMessage(now reliability.Time, h *iwarp.Header, wc verbs.WC) {
	s, m := c.stream, &c.msg
	s.nextMSN[iwarp.QueueSend]++
	m.active = false
	switch h.Opcode {
	case iwarp.OpSendInv, iwarp.OpSendSEInv:
		if f := c.mem.Invalidate(h.Key, c.num); f != NoFault {
			c.sendTerminate(now, iwarp.CannotInvalidate, nil, 0, nil, verbs.WCRemAccessErr, &verbs.Failure{
				Event: "SEND with invalidate: " + f.String(), Opcode: h.Opcode.String(), Key: h.Key,
				Cause: "only a bound type 2 memory window of this queue pair can be invalidated by the peer",
			})
			return
		}
		wc.Flags, wc.InvKey = verbs.WCWithInv, h.Key
	case iwarp.OpSendImm, iwarp.OpSendSEImm:
		wc.Flags, wc.Imm = verbs.WCWithImm, h.Key
	}
	wc.WRID, wc.QPN = m.wqe.ID, c.num
	m.held, m.got = false, 0
	c.counters.RDMARecvs++
	c.host.Complete(wc, h.Opcode.IsSolicited())
}

// handleControl handles a message that is not stored as it is.
func (c *Core) handleControl(now reliability.Time, h *iwarp.Header, head, payload []byte) {
	segment := len(head) + len(payload)
	switch h.Opcode {
	case iwarp.OpTerminate:
		c.receiveTerminate(now, payload)
		return
	case iwarp.OpAtomicResponse:
		c.receiveAtomicResponse(now, head, payload)
		return
	}
	want := map[iwarp.Opcode]int{
		iwarp.OpReadRequest: iwarp.ReadRequestLen, iwarp.OpAtomicRequest: iwarp.AtomicRequestLen,
		iwarp.OpImmediate: iwarp.ImmediateLen, iwarp.OpImmediateSE: iwarp.ImmediateLen,
	}[h.Opcode]
	if len(payload) != want || !h.Last {
		c.rejectSegment(now, iwarp.MessageTooLong, head, segment, "the request has an invalid length")
		return
	}
	switch h.Opcode {
	case iwarp.OpReadRequest:
		c.receiveReadRequest(now, head, payload)
	case iwarp.OpAtomicRequest:
		c.receiveAtomicRequest(now, head, payload)
	default:
		length, imm := iwarp.ParseImmediate(payload)
		c.finishMessage(now, h, verbs.WC{Opcode: verbs.WCRecvRDMAWithImm, ByteLen: length, Flags: verbs.WCWithImm, Imm: imm})
	}
}

// receiveReadRequest schedules the response of a READ.
func (c *Core) receiveReadRequest(now reliability.Time, head, payload []byte) {
	s := c.stream
	r := iwarp.ParseReadRequest(payload)
	if len(s.responses) >= c.maxResponses() && r.Length > 0 {
		c.rejectSegment(now, iwarp.NoBuffer, head, len(head)+len(payload), tooManyReads)
		return
	}
	if r.Length > 0 {
		f := FaultAccess
		if c.attr.AccessFlags&verbs.AccessRemoteRead != 0 && r.Length <= MaxMessage {
			_, f = c.mem.Remote(r.SourceSTag, r.SourceOffset, r.Length, verbs.AccessRemoteRead, c.num)
		}
		if f != NoFault {
			code := sourceCode(f)
			if r.SourceOffset+uint64(r.Length) < r.SourceOffset {
				code = iwarp.OffsetWrap
			}
			c.rejectAccess(now, code, head, len(payload), payload, r.SourceSTag, r.SourceOffset, r.Length, f)
			return
		}
	}
	s.responses = append(s.responses, streamResponse{
		sink: r.SinkSTag, sinkOffset: r.SinkOffset, key: r.SourceSTag, addr: r.SourceOffset, length: r.Length,
	})
}

// maxResponses returns the number of READs and atomics that the peer may have outstanding.
func (c *Core) maxResponses() int {
	return max(1, min(int(c.attr.MaxDestRdAtomic), int(c.stream.params.IRD)))
}

// receiveAtomicRequest executes an atomic and schedules its response.
func (c *Core) receiveAtomicRequest(now reliability.Time, head, payload []byte) {
	s := c.stream
	r, ok := iwarp.ParseAtomicRequest(payload)
	if !ok || len(s.responses) >= c.maxResponses() {
		c.rejectSegment(now, iwarp.NoBuffer, head, len(head)+len(payload), tooManyReads+", or an operation that this adapter does not have")
		return
	}
	f := FaultAccess
	var mem []byte
	if c.attr.AccessFlags&verbs.AccessRemoteAtomic != 0 {
		mem, f = c.mem.Remote(r.STag, r.Offset, 8, verbs.AccessRemoteAtomic, c.num)
	}
	word, aligned := atomicWord(mem)
	if f == NoFault && !aligned {
		f = FaultMisalign
	}
	var value uint64
	if f == NoFault && !place.Try(func() {
		if r.Op == iwarp.CmpSwap {
			value = place.CompareSwap(word, r.Compare, r.Data)
		} else {
			value = place.FetchAdd(word, r.Data)
		}
	}) {
		f = FaultMemory
	}
	if f != NoFault {
		c.rejectAccess(now, sourceCode(f), head, len(payload), nil, r.STag, r.Offset, 8, f)
		return
	}
	s.responses = append(s.responses, streamResponse{atomic: true, id: r.ID, value: value})
}

// receiveAtomicResponse completes an atomic.
func (c *Core) receiveAtomicResponse(now reliability.Time, head, payload []byte) {
	i, w := c.oldestResponse(verbs.WRAtomicFetchAdd)
	if len(payload) != iwarp.AtomicResponseLen || w == nil {
		c.rejectSegment(now, iwarp.MessageTooLong, head, len(head)+len(payload), "an atomic response that belongs to no atomic")
		return
	}
	id, value := iwarp.ParseAtomicResponse(payload)
	if id != uint32(w.operand) {
		c.rejectSegment(now, iwarp.MSNOutOfRange, head, len(head)+len(payload), "an atomic response that belongs to another atomic")
		return
	}
	var b [8]byte
	putHost(b[:], value)
	if m := c.scatter(c.sq.sglAt(i), 0, b[:]); !m.ok() {
		c.failSink(now, w, m)
		return
	}
	c.finishResponse(now, w)
}

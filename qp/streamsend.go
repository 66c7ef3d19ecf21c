package qp

import (
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// A streamResponse is the response to a READ or atomic of the peer.
type streamResponse struct {
	atomic bool
	id     uint32 // atomics: of the request
	value  uint64 // atomics: before the operation

	sink       uint32 // READs: where the peer stores the data
	sinkOffset uint64
	key        uint32 // READs: source
	addr       uint64
	length     uint32
	sent       uint32 // bytes in the output
}

// drain implements transport: the ready-to-receive indication, responses, then requests.
func (t stream) drain(now reliability.Time, out Out) bool {
	s := t.stream
	if !s.attached {
		if s.connectBy == 0 && t.state == sRTS && t.sq.head != t.sq.tail {
			s.connectBy = now + max(reliability.Time(8*ackTimeout(t.attr.Timeout)), minConnectTime)
		}
		return false
	}
	if s.ending {
		return false
	}
	if s.out != nil && s.out.written > 0 {
		return true
	}
	if s.owesRTR {
		t.sendRTR(now)
	}
	if !s.maySend {
		return false
	}
	for len(s.responses) > 0 && !s.ending {
		if !t.sendResponse(now, &s.responses[0]) {
			return true
		}
		if s.ending { // there are none
			return false
		}
		s.responses = s.responses[:copy(s.responses, s.responses[1:])]
	}
	return t.sendRequests(now, out)
}

// sendRTR builds the ready-to-receive indication of the initiator: an empty WRITE, or READ.
func (t stream) sendRTR(now reliability.Time) {
	s := t.stream
	s.owesRTR = false
	h := iwarp.Header{Opcode: iwarp.OpWrite, Last: true}
	if !s.params.ReadRTR {
		s.putControl(&h, 0, func([]byte) {})
	} else {
		t.putReadRequest(now, &iwarp.ReadRequest{})
		s.in.rtrResponse = true
	}
	t.recordSegment(now, true, h.Opcode, 0)
}

// sendPacket implements transport: it builds the next segment of w.
func (t stream) sendPacket(now reliability.Time, _ Out, w *sendWQE) outcome {
	s := t.stream
	if extensionNames[w.op] != "" && !s.params.Extended { // posted before there was a connection
		if t.cur == t.sq.head {
			t.failSend(now, w, verbs.WCRemInvReqErr, &verbs.Failure{
				Event: "the peer is no softrnic, and RFC 5040 has no message for " + extensionNames[w.op], Cause: "use requests that every iWARP peer has",
			})
		}
		return blocked
	}
	switch {
	case w.op == verbs.WRRDMARead:
		return t.sendReadRequest(now, w)
	case w.isAtomic():
		return t.sendAtomicRequest(now, w)
	}
	return t.sendSegment(now, w)
}

// finishRequest advances past w, of which the last segment was built.
func (t stream) finishRequest() {
	t.next = t.next.Add(1)
	t.top = t.next
	t.cur++
}

// sendReadRequest builds the request of a READ. It lends the memory of w to the response under a key
// of its own, which nothing but this response may use.
func (t stream) sendReadRequest(now reliability.Time, w *sendWQE) outcome {
	s := t.stream
	switch {
	case t.rdOut >= t.readLimitOfStream():
		return blocked
	case !s.acquireOutput().hasRoom(0):
		return full
	}
	if m := t.checkList(t.sq.sglAt(t.cur), 0, w.length, true); !m.ok() {
		return t.failSource(now, w, m)
	}
	sink := s.nextSink()
	w.operand = uint64(sink)
	t.putReadRequest(now, &iwarp.ReadRequest{SinkSTag: sink, Length: w.length, SourceSTag: w.rkey, SourceOffset: w.remote})
	t.rdOut++
	t.finishRequest()
	return sent
}

func (t stream) putReadRequest(now reliability.Time, r *iwarp.ReadRequest) {
	h := t.newUntagged(iwarp.OpReadRequest)
	t.stream.putControl(&h, iwarp.ReadRequestLen, r.Put)
	t.recordSegment(now, true, h.Opcode, h.MSN)
}

// readLimitOfStream returns the number of READs and atomics that may be outstanding.
func (t stream) readLimitOfStream() uint32 {
	return min(uint32(t.attr.MaxRdAtomic), uint32(t.stream.params.ORD))
}

// nextSink returns a key for the response of a READ (xorshift). Keys need not be secret: they are
// valid on this connection only.
func (s *streamState) nextSink() uint32 {
	x := s.seed | 1
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	s.seed = x
	return x
}

// newUntagged returns the header of the only segment of an untagged message.
func (t stream) newUntagged(op iwarp.Opcode) iwarp.Header {
	q := op.Queue()
	t.stream.sentMSN[q]++
	return iwarp.Header{Opcode: op, Last: true, Queue: q, MSN: t.stream.sentMSN[q]}
}

// sendAtomicRequest builds the request of an atomic. Its identifier is that of the sink of a READ.
func (t stream) sendAtomicRequest(now reliability.Time, w *sendWQE) outcome {
	s := t.stream
	switch {
	case t.rdOut >= t.readLimitOfStream():
		return blocked
	case !s.acquireOutput().hasRoom(iwarp.AtomicRequestLen):
		return full
	}
	if m := t.checkList(t.sq.sglAt(t.cur), 0, w.length, true); !m.ok() {
		return t.failSource(now, w, m)
	}
	r := iwarp.AtomicRequest{Op: iwarp.FetchAdd, ID: s.nextSink(), STag: w.rkey, Offset: w.remote, Data: w.operand}
	if w.op == verbs.WRAtomicCmpSwap {
		r.Op, r.Data, r.Compare = iwarp.CmpSwap, w.swap, w.operand
	}
	w.operand = uint64(r.ID)
	h := t.newUntagged(iwarp.OpAtomicRequest)
	s.putControl(&h, iwarp.AtomicRequestLen, r.Put)
	t.recordSegment(now, true, h.Opcode, h.MSN)
	t.rdOut++
	t.finishRequest()
	return sent
}

// sendOpcode returns the opcode of a message.
func sendOpcode(w *sendWQE) iwarp.Opcode {
	solicited := w.flags&verbs.SendSolicited != 0
	op := iwarp.OpSend
	switch w.op {
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm:
		return iwarp.OpWrite
	case verbs.WRSendWithInv:
		op = iwarp.OpSendInv
	case verbs.WRSendWithImm:
		op = iwarp.OpSendImm
	}
	if solicited {
		return map[iwarp.Opcode]iwarp.Opcode{iwarp.OpSend: iwarp.OpSendSE, iwarp.OpSendInv: iwarp.OpSendSEInv, iwarp.OpSendImm: iwarp.OpSendSEImm}[op]
	}
	return op
}

// minLastSegment is the minimum payload of the last of several segments. It contains the last aligned
// word of the data, which the receiver stores last.
const minLastSegment = 16

// sendSegment builds the next segment of a SEND or WRITE.
func (t stream) sendSegment(now reliability.Time, w *sendWQE) outcome {
	s, o := t.stream, t.stream.acquireOutput()
	off := w.got // bytes in the output
	n := w.length - off
	if n > uint32(s.maxPayload) {
		if n -= uint32(s.maxPayload); n < minLastSegment {
			n = uint32(s.maxPayload) - minLastSegment
		} else {
			n = uint32(s.maxPayload)
		}
	}
	zeroCopy := w.inline == 0 && n >= minStreamZeroCopy && len(t.sq.sglAt(t.cur)) == 1
	copied := int(n)
	if zeroCopy {
		copied = 0
	}
	if !o.hasRoom(copied) {
		return full
	}
	h := iwarp.Header{Opcode: sendOpcode(w), Last: off+n == w.length, STag: w.rkey, Offset: w.remote + uint64(off), Message: off}
	if h.Opcode != iwarp.OpWrite {
		if off == 0 {
			s.sentMSN[iwarp.QueueSend]++
		}
		h.MSN = s.sentMSN[iwarp.QueueSend]
		if w.op != verbs.WRSend {
			h.Key = w.immInv
		}
	}
	m := o.markEnd()
	if f := t.putPayload(o, &h, w, off, n, zeroCopy); !f.ok() {
		o.cutTo(m)
		if off == 0 && h.Opcode != iwarp.OpWrite {
			s.sentMSN[iwarp.QueueSend]--
		}
		return t.failSource(now, w, f)
	}
	w.got += n
	t.counters.SentBytes += uint64(n)
	t.recordSegment(now, true, h.Opcode, h.MSN)
	if !h.Last {
		return sent
	}
	if w.op == verbs.WRRDMAWriteWithImm {
		t.sendImmediate(now, w)
	}
	t.finishRequest()
	return sent
}

// putPayload appends a segment with n bytes at offset off of w, the request at cur.
func (t stream) putPayload(o *streamOutput, h *iwarp.Header, w *sendWQE, off, n uint32, zeroCopy bool) memFault {
	start, crc, withCRC := len(o.buf), uint32(0), t.stream.params.CRC
	o.beginFPDU(h, int(n))
	if zeroCopy {
		list := t.sq.sglAt(t.cur)
		src, f := t.resolveSource(list, off, n)
		if !f.ok() {
			return f
		}
		readable := true
		if withCRC {
			crc, readable = sumMemory(iwarp.AddCRC(0, o.buf[start:]), src)
		} else {
			readable = place.Readable(src)
		}
		if !readable {
			return memFault{FaultMemory, list[0]}
		}
		o.pieces = append(o.pieces, outputPiece{n: int(n), memory: true, key: list[0].LKey, addr: list[0].Addr + uint64(off)})
		o.total += int(n)
	} else {
		var src []byte
		if w.inline == 0 {
			var f memFault
			if src, f = t.resolveSource(t.sq.sglAt(t.cur), off, n); !f.ok() {
				return f
			}
		}
		if f := t.fillPayload(o.growBuffer(int(n)), w, src, off, n); !f.ok() {
			return f
		}
		if withCRC {
			crc = iwarp.AddCRC(0, o.buf[start:])
		}
	}
	o.endFPDU(h.Len()+int(n), crc, withCRC)
	return memFault{}
}

// sendImmediate builds the immediate data behind the WRITE w.
func (t stream) sendImmediate(now reliability.Time, w *sendWQE) {
	op := iwarp.OpImmediate
	if w.flags&verbs.SendSolicited != 0 {
		op = iwarp.OpImmediateSE
	}
	h := t.newUntagged(op)
	length, imm := w.length, w.immInv
	t.stream.putControl(&h, iwarp.ImmediateLen, func(b []byte) { iwarp.PutImmediate(b, length, imm) })
	t.recordSegment(now, true, op, h.MSN)
}

// sendResponse builds the segments of the response r as far as the output has room, and reports
// whether it is complete. The data is copied if it has a CRC: the application may change it
// meanwhile, and a wrong CRC would end the connection.
func (t stream) sendResponse(now reliability.Time, r *streamResponse) bool {
	s := t.stream
	if r.atomic {
		if !s.acquireOutput().hasRoom(iwarp.AtomicResponseLen) {
			return false
		}
		h := t.newUntagged(iwarp.OpAtomicResponse)
		s.putControl(&h, iwarp.AtomicResponseLen, func(b []byte) { iwarp.PutAtomicResponse(b, r.id, r.value) })
		t.recordSegment(now, true, h.Opcode, h.MSN)
		return true
	}
	for last := false; !last; {
		o, n := s.acquireOutput(), min(r.length-r.sent, uint32(s.maxPayload))
		zeroCopy := !s.params.CRC && n >= minStreamZeroCopy
		copied := int(n)
		if zeroCopy {
			copied = 0
		}
		if !o.hasRoom(copied) {
			return false
		}
		var src []byte
		if n > 0 {
			var f Fault
			if src, f = t.mem.Remote(r.key, r.addr+uint64(r.sent), n, verbs.AccessRemoteRead, t.num); f != NoFault {
				t.failVanishedSource(now, r, f)
				return true
			}
		}
		last = r.sent+n == r.length
		h := iwarp.Header{Opcode: iwarp.OpReadResponse, Last: last, STag: r.sink, Offset: r.sinkOffset + uint64(r.sent)}
		start, crc, m := len(o.buf), uint32(0), o.markEnd()
		o.beginFPDU(&h, int(n))
		if zeroCopy {
			o.pieces = append(o.pieces, outputPiece{n: int(n), memory: true, remote: true, key: r.key, addr: r.addr + uint64(r.sent)})
			o.total += int(n)
		} else if !place.Load(o.growBuffer(int(n)), src) {
			o.cutTo(m)
			t.failVanishedSource(now, r, FaultMemory)
			return true
		}
		if s.params.CRC {
			crc = iwarp.AddCRC(0, o.buf[start:])
		}
		o.endFPDU(h.Len()+int(n), crc, s.params.CRC)
		r.sent += n
		t.counters.SentBytes += uint64(n)
		t.recordSegment(now, true, h.Opcode, 0)
	}
	return true
}

// failVanishedSource ends the connection because the source of a READ was deregistered, or became
// inaccessible, before the response was sent.
func (t stream) failVanishedSource(now reliability.Time, r *streamResponse, f Fault) {
	status, cause := verbs.WCRemAccessErr, "deregister memory only after the peer's requests are complete"
	if f == FaultMemory {
		status, cause = verbs.WCLocProtErr, memoryCause
	}
	t.sendTerminate(now, sourceCode(f), nil, 0, nil, status, &verbs.Failure{
		Event: "memory that the peer reads is no longer accessible: " + f.String(), Key: r.key, Addr: r.addr, Length: r.length, Cause: cause,
	})
}

package qp

import (
	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// A streamInput is the receiving half of a stream. Bytes are in the buffer until their FPDU is
// complete. If the payload of an FPDU is not, it is placed at once, and the rest of it is read from the
// socket directly into registered memory. The last bytes come through the buffer, so that the last
// word of the data becomes visible last, when the CRC is known.
type streamInput struct {
	buf        []byte // nil if nothing is buffered
	start, end int    // bytes in the buffer

	active bool // an FPDU is being placed
	h      iwarp.Header
	head   [iwarp.UntaggedLen]byte // h as it arrived, for a Terminate
	n      int                     // bytes of payload
	got    int                     // bytes of payload placed
	crc    uint32                  // of the bytes before

	message     iwarp.Opcode // of the SEND that is arriving
	rtrResponse bool         // a response to the ready-to-receive indication is outstanding
}

const (
	orderedTail    = 64       // bytes at the end of a payload that come through the buffer
	shortLookahead = 64       // bytes read behind a long FPDU: a header
	longPayload    = 16 << 10 // bytes of a payload behind which another long one is expected
)

// isPartial reports whether an FPDU is incomplete.
func (in *streamInput) isPartial() bool { return in.active || in.end > in.start }

// releaseBuffer returns the buffer.
func (in *streamInput) releaseBuffer(p *StreamPool) {
	if in.buf != nil && p != nil && len(p.inputs) < maxPooled {
		p.inputs = append(p.inputs, in.buf)
	}
	*in = streamInput{}
}

// freeIfEmpty returns an empty buffer to the pool, so that idle queue pairs need none.
func (in *streamInput) freeIfEmpty(p *StreamPool) {
	if in.buf != nil && in.start == in.end && len(p.inputs) < maxPooled {
		p.inputs = append(p.inputs, in.buf)
		in.buf, in.start, in.end = nil, 0, 0
	}
}

// ensureBuffer provides a buffer with the buffered bytes at its start.
func (in *streamInput) ensureBuffer(p *StreamPool) {
	if in.buf == nil {
		if k := len(p.inputs); k > 0 {
			in.buf, p.inputs = p.inputs[k-1], p.inputs[:k-1]
		} else {
			in.buf = make([]byte, streamInputBytes)
		}
	}
	if in.start > 0 {
		in.end = copy(in.buf, in.buf[in.start:in.end])
		in.start = 0
	}
}

// StreamBuffers appends the memory for the next bytes of the stream to vec. The adapter reads once and
// calls StreamReceived, without another call on the Core or release of the lock in between.
func (c *Core) StreamBuffers(now reliability.Time, vec [][]byte) [][]byte {
	s := c.stream
	if s == nil || !s.attached || s.ending || s.stalled {
		return vec
	}
	in := &s.in
	in.ensureBuffer(s.outputs)
	space := in.buf[in.end:]
	if in.active {
		direct := max(0, in.n-orderedTail) - in.got
		if direct > 0 {
			mem, f := c.destinationAt(&in.h, in.got, direct)
			if !f.ok() {
				c.failPlacement(now, &in.h, in.head[:in.h.Len()], f)
				return vec
			}
			if vec = append(vec, mem); len(mem) < direct {
				return vec // the list has a further element
			}
		}
		if in.n >= longPayload {
			space = space[:min(len(space), in.trailerLen()-(in.end-in.start)+shortLookahead)]
		}
	}
	return append(vec, space)
}

// trailerLen returns the number of bytes of the FPDU that come through the buffer behind those placed
// directly.
func (in *streamInput) trailerLen() int {
	segment := in.h.Len() + in.n
	return min(in.n-in.got, orderedTail) + iwarp.PadFor(segment) + iwarp.CRCLen
}

// StreamReceived handles n bytes that were read into vec of StreamBuffers, and returns the number of
// FPDUs that are complete.
func (c *Core) StreamReceived(now reliability.Time, vec [][]byte, n int) (fpdus int) {
	s := c.stream
	in := &s.in
	if in.active && in.got < in.n-orderedTail { // vec begins with registered memory
		k := min(n, len(vec[0]))
		if s.params.CRC {
			var ok bool
			if in.crc, ok = sumMemory(in.crc, vec[0][:k]); !ok {
				c.failPlacement(now, &in.h, in.head[:in.h.Len()], memFault{fault: FaultMemory})
				return 0
			}
		}
		in.got += k
		n -= k
	}
	in.end += n
	for !s.ending && s.attached && c.handleNext(now) {
		fpdus++
	}
	if !s.ending && s.attached {
		in.freeIfEmpty(s.outputs)
	}
	return fpdus
}

// handleNext handles the next FPDU if it is complete, and begins to place it if it is not.
func (c *Core) handleNext(now reliability.Time) bool {
	s := c.stream
	in := &s.in
	if in.active {
		return c.continueFPDU(now)
	}
	b := in.buf[in.start:in.end]
	if len(b) <= iwarp.LengthLen {
		return false
	}
	segment := int(b[0])<<8 | int(b[1])
	k := iwarp.HeaderLen(b[iwarp.LengthLen])
	if segment < k {
		c.sendTerminate(now, iwarp.FrameMismatch, nil, 0, nil, verbs.WCRemInvReqErr, &verbs.Failure{Event: "an FPDU is shorter than its header"})
		return false
	}
	total := iwarp.FPDULen(segment)
	complete := len(b) >= total
	if len(b) < iwarp.LengthLen+k {
		return false
	}
	if complete && s.params.CRC && iwarp.AddCRC(0, b[:total-iwarp.CRCLen]) != iwarp.ReadCRC(b[total-iwarp.CRCLen:]) {
		c.failCRC(now)
		return false
	}
	head := b[iwarp.LengthLen : iwarp.LengthLen+k]
	h, bad := iwarp.ParseHeader(head)
	if bad != iwarp.CodeNone {
		c.rejectSegment(now, bad, head, segment, "malformed header")
		return false
	}
	if c.stallStream(now, &h) {
		return false
	}
	n := segment - k
	if !complete {
		if h.Opcode.Queue() != iwarp.QueueSend || h.Opcode == iwarp.OpImmediate || h.Opcode == iwarp.OpImmediateSE {
			if n > iwarp.MaxTerminateLen {
				c.rejectSegment(now, iwarp.MessageTooLong, head, segment, "the request has an invalid length")
			}
			return false
		}
		if !c.beginSegment(now, &h, head, n) {
			return false
		}
		in.active, in.h, in.n, in.got, in.crc = true, h, n, 0, 0
		copy(in.head[:], head)
		if s.params.CRC {
			in.crc = iwarp.AddCRC(0, b[:iwarp.LengthLen+k])
		}
		in.start += iwarp.LengthLen + k
		return c.continueFPDU(now)
	}
	payload := b[iwarp.LengthLen+k : iwarp.LengthLen+segment]
	in.start += total
	switch {
	case !c.beginSegment(now, &h, head, n):
	case h.Opcode.Queue() == iwarp.QueueSend && h.Opcode != iwarp.OpImmediate && h.Opcode != iwarp.OpImmediateSE:
		if f := c.placePayload(&h, 0, payload); !f.ok() {
			c.failPlacement(now, &h, head, f)
			return false
		}
		c.endSegment(now, &h, n)
	default:
		c.handleControl(now, &h, head, payload)
	}
	return true
}

// continueFPDU places buffered bytes of the FPDU that is being placed, and finishes it if they
// complete it.
func (c *Core) continueFPDU(now reliability.Time) bool {
	s := c.stream
	in := &s.in
	if k := min(in.end-in.start, max(0, in.n-orderedTail)-in.got); k > 0 {
		b := in.buf[in.start : in.start+k]
		if f := c.placePayload(&in.h, in.got, b); !f.ok() {
			c.failPlacement(now, &in.h, in.head[:in.h.Len()], f)
			return false
		}
		if s.params.CRC {
			in.crc = iwarp.AddCRC(in.crc, b)
		}
		in.got += k
		in.start += k
	}
	rest := in.trailerLen()
	if in.got < in.n-orderedTail || in.end-in.start < rest {
		return false
	}
	b := in.buf[in.start : in.start+rest]
	if s.params.CRC && iwarp.AddCRC(in.crc, b[:rest-iwarp.CRCLen]) != iwarp.ReadCRC(b[rest-iwarp.CRCLen:]) {
		c.failCRC(now)
		return false
	}
	if f := c.placePayload(&in.h, in.got, b[:in.n-in.got]); !f.ok() {
		c.failPlacement(now, &in.h, in.head[:in.h.Len()], f)
		return false
	}
	in.active = false
	in.start += rest
	c.endSegment(now, &in.h, in.n)
	return true
}

// destinationAt returns up to n bytes of memory, at least one, for the payload at offset off of a
// segment.
func (c *Core) destinationAt(h *iwarp.Header, off, n int) ([]byte, memFault) {
	switch h.Opcode {
	case iwarp.OpWrite:
		mem, f := c.mem.Remote(h.STag, h.Offset+uint64(off), uint32(n), verbs.AccessRemoteWrite, c.num)
		return mem, memFault{f, verbs.SGE{Addr: h.Offset + uint64(off), Length: uint32(n), LKey: h.STag}}
	case iwarp.OpReadResponse:
		i, w := c.oldestResponse(verbs.WRRDMARead)
		if w == nil {
			return nil, memFault{fault: FaultKey}
		}
		return c.elementAt(c.sq.sglAt(i), w.got+uint32(off), n)
	}
	return c.elementAt(c.msg.wqe.SGList, c.msg.got+uint32(off), n)
}

// elementAt returns up to n bytes of one element at offset off of a list, which has more bytes.
func (c *Core) elementAt(list []verbs.SGE, off uint32, n int) ([]byte, memFault) {
	for i := range list {
		e := &list[i]
		if off >= e.Length {
			off -= e.Length
			continue
		}
		mem, f := c.mem.Local(e.LKey, e.Addr+uint64(off), min(uint32(n), e.Length-off), true)
		return mem, memFault{f, *e}
	}
	return nil, memFault{fault: FaultBounds}
}

// placePayload stores src at offset off of the payload of a segment.
func (c *Core) placePayload(h *iwarp.Header, off int, src []byte) memFault {
	for len(src) > 0 {
		mem, f := c.destinationAt(h, off, len(src))
		if f.ok() && !writeMemory(mem, src[:len(mem)]) {
			f.fault = FaultMemory
		}
		if !f.ok() {
			return f
		}
		off += len(mem)
		src = src[len(mem):]
	}
	return memFault{}
}

// oldestResponse returns the oldest outstanding request of an opcode, or nil.
func (c *Core) oldestResponse(op verbs.WROpcode) (uint32, *sendWQE) {
	for i := c.sq.head; i != c.cur; i++ {
		w := c.sq.wqeAt(i)
		if w.started && !w.done && (w.op == op || op != verbs.WRRDMARead && w.isAtomic()) {
			return i, w
		}
	}
	return 0, nil
}

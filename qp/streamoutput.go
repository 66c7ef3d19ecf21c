package qp

import (
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

const (
	streamOutputBytes = 128 << 10 // bytes of copied output, at least two segments
	maxOutputPieces   = 96
	maxOutputLen      = 512 << 10 // bytes of output, copied or not, after which it is sent
	minStreamZeroCopy = 4096      // bytes of payload that are sent from the application's memory
	streamInputBytes  = 16 << 10  // bytes read at a time that are not placed directly
	maxPooled         = 64        // outputs and inputs that a pool keeps
)

// A StreamPool has the buffers of streams that share a lock. A stream uses one only while it has
// output that TCP does not take, or incomplete input.
type StreamPool struct {
	outputs []*streamOutput
	inputs  [][]byte
}

// A streamOutput is a sequence of FPDUs that are ready to be sent.
type streamOutput struct {
	buf       []byte        // headers, checksums and copied payload
	pieces    []outputPiece // of the output, in order
	total     int           // bytes
	written   int           // bytes that are in the TCP stream
	terminate bool          // the output is a Terminate
}

// An outputPiece is a part of the output: of the buffer, or of registered memory. That is looked up
// for each write, because it may be deregistered in between.
type outputPiece struct {
	n      int
	off    int // in the buffer
	key    uint32
	addr   uint64
	memory bool
	remote bool // the key is that of the peer
}

// acquireOutput returns the output, which may be full.
func (s *streamState) acquireOutput() *streamOutput {
	if s.out == nil {
		if k := len(s.outputs.outputs); k > 0 {
			s.out, s.outputs.outputs = s.outputs.outputs[k-1], s.outputs.outputs[:k-1]
		} else {
			s.out = &streamOutput{buf: make([]byte, 0, streamOutputBytes), pieces: make([]outputPiece, 0, maxOutputPieces)}
		}
	}
	return s.out
}

// dropOutput discards the output.
func (s *streamState) dropOutput() {
	o := s.out
	if o == nil {
		return
	}
	s.out = nil
	*o = streamOutput{buf: o.buf[:0], pieces: o.pieces[:0]}
	if len(s.outputs.outputs) < maxPooled {
		s.outputs.outputs = append(s.outputs.outputs, o)
	}
}

// hasRoom reports whether a segment fits that copies n bytes of payload. Some room is left for a
// Terminate.
func (o *streamOutput) hasRoom(n int) bool {
	return o.written == 0 && o.total < maxOutputLen && len(o.pieces) <= maxOutputPieces-4 &&
		len(o.buf)+n+2*(iwarp.LengthLen+iwarp.UntaggedLen+iwarp.MaxTerminateLen+iwarp.CRCLen) <= cap(o.buf)
}

// growBuffer appends n bytes of the buffer to the output and returns them.
func (o *streamOutput) growBuffer(n int) []byte {
	off := len(o.buf)
	o.buf = o.buf[:off+n]
	if k := len(o.pieces); k > 0 && !o.pieces[k-1].memory {
		o.pieces[k-1].n += n
	} else {
		o.pieces = append(o.pieces, outputPiece{n: n, off: off})
	}
	o.total += n
	return o.buf[off:]
}

// beginFPDU appends length and header of an FPDU with n bytes of payload.
func (o *streamOutput) beginFPDU(h *iwarp.Header, n int) []byte {
	k := h.Len()
	b := o.growBuffer(iwarp.LengthLen + k)
	b[0], b[1] = byte((k+n)>>8), byte(k+n)
	h.Put(b[iwarp.LengthLen:])
	return b
}

// endFPDU appends padding and CRC of an FPDU whose other bytes have the CRC crc.
func (o *streamOutput) endFPDU(segment int, crc uint32, withCRC bool) {
	pad := iwarp.PadFor(segment)
	b := o.growBuffer(pad + iwarp.CRCLen)
	clear(b)
	if withCRC {
		iwarp.PutCRC(b[pad:], iwarp.AddCRC(crc, b[:pad]))
	}
}

// putControl appends an FPDU whose payload of n bytes put writes.
func (s *streamState) putControl(h *iwarp.Header, n int, put func(b []byte)) {
	o := s.acquireOutput()
	start := len(o.buf)
	o.beginFPDU(h, n)
	put(o.growBuffer(n))
	crc := uint32(0)
	if s.params.CRC {
		crc = iwarp.AddCRC(0, o.buf[start:])
	}
	o.endFPDU(h.Len()+n, crc, s.params.CRC)
}

// An outputMark is a position in the output: the lengths of buffer and pieces, the length of the last
// piece, and the total.
type outputMark struct{ buf, pieces, last, total int }

// markEnd returns the end of the output.
func (o *streamOutput) markEnd() outputMark {
	m := outputMark{len(o.buf), len(o.pieces), 0, o.total}
	if m.pieces > 0 {
		m.last = o.pieces[m.pieces-1].n
	}
	return m
}

// cutTo removes the output behind a mark.
func (o *streamOutput) cutTo(m outputMark) {
	o.buf, o.pieces, o.total = o.buf[:m.buf], o.pieces[:m.pieces], m.total
	if m.pieces > 0 {
		o.pieces[m.pieces-1].n = m.last
	}
}

// sumMemory adds registered memory to a CRC, and reports whether all of it was readable.
func sumMemory(crc uint32, mem []byte) (sum uint32, ok bool) {
	ok = place.Try(func() { sum = iwarp.AddCRC(crc, mem) })
	return sum, ok
}

// StreamOutput appends the bytes to send to vec. They are valid until the next call on the Core.
func (c *Core) StreamOutput(now reliability.Time, vec [][]byte) [][]byte {
	s := c.stream
	if s == nil || s.out == nil {
		return vec
	}
	o, skip := s.out, s.out.written
	for i := range o.pieces {
		p := &o.pieces[i]
		if skip >= p.n {
			skip -= p.n
			continue
		}
		if !p.memory {
			vec = append(vec, o.buf[p.off+skip:p.off+p.n])
			skip = 0
			continue
		}
		mem, f := c.mem.Local(p.key, p.addr, uint32(p.n), false)
		if p.remote {
			mem, f = c.mem.Remote(p.key, p.addr, uint32(p.n), verbs.AccessRemoteRead, c.num)
		}
		if f != NoFault {
			c.failOutput(now, f, p)
			return vec[:0]
		}
		vec = append(vec, mem[skip:])
		skip = 0
	}
	return vec
}

// failOutput ends the connection because memory of the output, part of an FPDU, is no longer
// registered or accessible.
func (c *Core) failOutput(now reliability.Time, f Fault, p *outputPiece) {
	s := c.stream
	s.dropOutput()
	s.ending = true
	c.failStream(now, verbs.WCLocProtErr, &verbs.Failure{
		Event: "memory that is being sent cannot be accessed: " + f.String(), Key: p.key, Addr: p.addr, Length: uint32(p.n), Cause: localCause(f),
	}, true)
}

// StreamFault handles the system's report that memory of StreamOutput or StreamBuffers is not
// accessible.
func (c *Core) StreamFault(now reliability.Time, sending bool) {
	s := c.stream
	if sending {
		if s.out != nil {
			for i := range s.out.pieces {
				if p := &s.out.pieces[i]; p.memory {
					c.failOutput(now, FaultMemory, p)
					return
				}
			}
		}
		return
	}
	if s.in.active {
		c.failPlacement(now, &s.in.h, s.in.head[:s.in.h.Len()], memFault{fault: FaultMemory})
	}
}

// StreamWritten records that n bytes of StreamOutput are in the TCP stream. When all of them are, the
// requests are ready for CompleteWritten.
func (c *Core) StreamWritten(n int) {
	s := c.stream
	o := s.out
	if o == nil {
		return
	}
	if o.written += n; o.written < o.total {
		return
	}
	s.dropOutput()
	if c.state == sErr || c.state == sReset {
		return
	}
	for i := c.sq.head; i != c.cur; i++ {
		if w := c.sq.wqeAt(i); w.started && !w.done && !w.expectsResponse() {
			w.done, s.hasWritten = true, true
		}
	}
}

// HasWritten reports whether requests are ready for CompleteWritten.
func (c *Core) HasWritten() bool { return c.stream.hasWritten }

// CompleteWritten completes the requests that are in the TCP stream. The adapter calls it while it
// polls, and not while a program posts, so that completions are raised where programs expect them.
func (c *Core) CompleteWritten(now reliability.Time) {
	c.stream.hasWritten = false
	if c.state != sErr && c.state != sReset {
		c.completeReady(now)
	}
}

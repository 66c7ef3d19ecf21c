package qp

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/verbs"
)

// A memFault is the element of a scatter/gather list that failed, and the
// reason.
type memFault struct {
	fault Fault
	sge   verbs.SGE
}

func (m memFault) ok() bool { return m.fault == NoFault }

// checkList checks that n bytes at offset off of the list can be accessed.
func (c *Core) checkList(list []verbs.SGE, off, n uint32, write bool) memFault {
	for i := range list {
		if n == 0 {
			break
		}
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		k := min(n, s.Length-off)
		if _, f := c.mem.Local(s.LKey, s.Addr+uint64(off), k, write); f != NoFault {
			return memFault{f, *s}
		}
		n -= k
		off = 0
	}
	return memFault{}
}

// resolveSource checks n bytes at offset off of the list for reading, as
// checkList does. If the list has one element, it returns the bytes, which
// saves a second look-up.
func (c *Core) resolveSource(list []verbs.SGE, off, n uint32) ([]byte, memFault) {
	if len(list) != 1 || n == 0 {
		return nil, c.checkList(list, off, n, false)
	}
	src, f := c.mem.Local(list[0].LKey, list[0].Addr+uint64(off), n, false)
	return src, memFault{f, list[0]}
}

// probeAhead is the number of message bytes that are probed for page faults at
// a time before packets refer to them. It is a multiple of every MTU.
const probeAhead = 64 << 10

// probeSource checks that memory at offset off of the element, part of an
// n-byte message, is readable: probeAhead bytes, or the rest of the message.
func (c *Core) probeSource(s *verbs.SGE, off, n uint32) memFault {
	src, f := c.mem.Local(s.LKey, s.Addr+uint64(off), min(probeAhead, n-off), false)
	if f == NoFault && !place.Readable(src) {
		f = FaultMemory
	}
	return memFault{f, *s}
}

// fillPayload copies n bytes at offset off of w, the request at cur, to body
// and pads it with zeros. The source is src or, if src is nil, the inline data
// or the gather list.
func (c *Core) fillPayload(body []byte, w *sendWQE, src []byte, off, n uint32) memFault {
	switch {
	case w.inline != 0:
		copy(body, c.sq.inlineData(c.cur)[off:off+n])
	case src != nil:
		if !place.Load(body[:n], src) {
			return memFault{FaultMemory, c.sq.sglAt(c.cur)[0]}
		}
	default:
		if m := c.gather(body[:n], c.sq.sglAt(c.cur), off); !m.ok() {
			return m
		}
	}
	clear(body[n:])
	return memFault{}
}

// gather copies len(dst) bytes at offset off of the list to dst. The list must
// have passed checkList.
func (c *Core) gather(dst []byte, list []verbs.SGE, off uint32) memFault {
	for i := range list {
		if len(dst) == 0 {
			break
		}
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		k := min(uint32(len(dst)), s.Length-off)
		src, f := c.mem.Local(s.LKey, s.Addr+uint64(off), k, false)
		if f == NoFault && !place.Load(dst[:k], src) {
			f = FaultMemory
		}
		if f != NoFault {
			return memFault{f, *s}
		}
		dst = dst[k:]
		off = 0
	}
	return memFault{}
}

// scatter copies src to offset off of the list. It stops at the first element
// that cannot be written.
func (c *Core) scatter(list []verbs.SGE, off uint32, src []byte) memFault {
	for i := range list {
		if len(src) == 0 {
			break
		}
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		k := min(uint32(len(src)), s.Length-off)
		dst, f := c.mem.Local(s.LKey, s.Addr+uint64(off), k, true)
		if f == NoFault && !writeMemory(dst, src[:k]) {
			f = FaultMemory
		}
		if f != NoFault {
			return memFault{f, *s}
		}
		src = src[k:]
		off = 0
	}
	return memFault{}
}

// listLength returns the number of bytes in a list.
func listLength(list []verbs.SGE) uint64 {
	var n uint64
	for i := range list {
		n += uint64(list[i].Length)
	}
	return n
}

// writeMemory copies src to registered memory, see place.Copy.
func writeMemory(dst, src []byte) (ok bool) { return place.Copy(dst, src) }

// atomicWord returns b as a word for atomics, see place.Word64.
func atomicWord(b []byte) (*uint64, bool) { return place.Word64(b) }

// putHost stores v in host byte order, as atomics return it.
func putHost(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }

package flow

import "math"

// GrownLength is how many bytes a ring should have instead of n that are not enough.
func GrownLength(n int) int { return 16 * min(n, math.MaxInt32/16) }

// ring is a buffer that is filled at one end and emptied at the other. The ends
// count all bytes that ever passed, through this ring and those before it.
type ring struct {
	mem  []byte
	base uint64 // position of what was put in first, at offset 0
	head uint64 // of what has been put in
	tail uint64 // of what has been taken out
}

func (r *ring) len() int  { return int(r.head - r.tail) }
func (r *ring) free() int { return len(r.mem) - r.len() }

// offsetOf is the offset of a position.
func (r *ring) offsetOf(pos uint64) int { return ringOffset(pos, r.base, len(r.mem)) }

// ringOffset is where a position lies in a ring of n bytes that begins with base.
func ringOffset(pos, base uint64, n int) int { return int((pos - base) % uint64(n)) }

// contiguous is how many of the n bytes from a position lie in one piece.
func (r *ring) contiguous(pos uint64, n int) int { return min(n, len(r.mem)-r.offsetOf(pos)) }

// writeFrom copies in what there is room for.
func (r *ring) writeFrom(p []byte) int {
	n := min(len(p), r.free())
	k := copy(r.mem[r.offsetOf(r.head):], p[:n])
	copy(r.mem, p[k:n])
	r.head += uint64(n)
	return n
}

// readInto copies out what is there.
func (r *ring) readInto(p []byte) int {
	n := min(len(p), r.len())
	if n == 0 {
		return 0 // there may be no mem either
	}
	k := copy(p[:n], r.mem[r.offsetOf(r.tail):])
	copy(p[k:n], r.mem)
	r.tail += uint64(n)
	return n
}

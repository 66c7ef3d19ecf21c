package flow

import "math"

// GrownLength returns the length of a ring that replaces a too short one of n bytes.
func GrownLength(n int) int { return 16 * min(n, math.MaxInt32/16) }

// A ring is a byte queue. Its positions count all bytes that ever passed through it and its
// predecessors.
type ring struct {
	mem  []byte
	base uint64 // position of offset 0
	head uint64 // position after the last byte written
	tail uint64 // position of the next byte to read
}

func (r *ring) len() int  { return int(r.head - r.tail) }
func (r *ring) free() int { return len(r.mem) - r.len() }

// offsetOf returns the offset of a position.
func (r *ring) offsetOf(pos uint64) int { return ringOffset(pos, r.base, len(r.mem)) }

// ringOffset returns the offset of pos in a ring of n bytes that begins with position base.
func ringOffset(pos, base uint64, n int) int { return int((pos - base) % uint64(n)) }

// contiguous returns how many of the n bytes from pos are contiguous in memory.
func (r *ring) contiguous(pos uint64, n int) int { return min(n, len(r.mem)-r.offsetOf(pos)) }

// writeFrom copies as much of p as fits into the ring and returns the number of bytes copied.
func (r *ring) writeFrom(p []byte) int {
	n := min(len(p), r.free())
	k := copy(r.mem[r.offsetOf(r.head):], p[:n])
	copy(r.mem, p[k:n])
	r.head += uint64(n)
	return n
}

// readInto copies buffered bytes to p and returns their number.
func (r *ring) readInto(p []byte) int {
	n := min(len(p), r.len())
	if n == 0 {
		return 0 // mem may be empty
	}
	k := copy(p[:n], r.mem[r.offsetOf(r.tail):])
	copy(p[k:n], r.mem)
	r.tail += uint64(n)
	return n
}

package collective

import "math/bits"

// scratch is the scratch memory of consecutive calls. It is kept, so that the adapter need not
// register it again. It implements coll.Memory.
type scratch struct {
	free [bits.UintSize][][]byte // by size class
	kept int                     // bytes in free
}

const (
	minScratch = 64       // bytes: aligned for all element kinds
	maxScratch = 16 << 20 // bytes: maximum of kept
)

// sizeClass returns the binary logarithm of the block size for n bytes, rounded up.
func sizeClass(n int) int { return bits.Len(uint(max(n, minScratch) - 1)) }

// Alloc implements coll.Memory.
func (s *scratch) Alloc(n int) []byte {
	if n == 0 {
		return nil
	}
	free := &s.free[sizeClass(n)]
	if last := len(*free) - 1; last >= 0 {
		b := (*free)[last]
		*free = (*free)[:last]
		s.kept -= cap(b)
		return b[:n]
	}
	return make([]byte, n, 1<<sizeClass(n))
}

// Free implements coll.Memory.
func (s *scratch) Free(b []byte) {
	if c := cap(b); c > 0 && s.kept+c <= maxScratch {
		s.kept += c
		s.free[sizeClass(c)] = append(s.free[sizeClass(c)], b)
	}
}

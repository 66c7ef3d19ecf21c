package reliability

import (
	"math/bits"

	"github.com/softrnic/softrnic/wire"
)

// MaxSpan is the maximum number of PSNs between the oldest unacknowledged packet
// and the newest one under selective retransmission. It bounds the memory of
// both ends.
const MaxSpan = 1 << 16

// A psnSet is a set of PSNs that lie within capacity PSNs of each other. It needs
// no memory before the first PSN is added.
type psnSet struct {
	words []uint64 // the bit of a PSN is at the PSN modulo the capacity
	n     int
}

func (s *psnSet) has(p wire.PSN) bool {
	if s.n == 0 {
		return false
	}
	return s.words[s.wordIndex(p)]>>(p&63)&1 != 0
}

func (s *psnSet) wordIndex(p wire.PSN) int { return int(p>>6) & (len(s.words) - 1) }

// add adds p and reports whether it is new. All members are from base to p, or
// from base to the highest one.
func (s *psnSet) add(base, p wire.PSN) bool {
	if need := p.Sub(base) + 64; need > 64*len(s.words) {
		s.grow(base, need)
	}
	w := &s.words[s.wordIndex(p)]
	bit := uint64(1) << (p & 63)
	if *w&bit != 0 {
		return false
	}
	*w |= bit
	s.n++
	return true
}

// remove removes p and reports whether it was a member.
func (s *psnSet) remove(p wire.PSN) bool {
	if !s.has(p) {
		return false
	}
	s.words[s.wordIndex(p)] &^= 1 << (p & 63)
	s.n--
	return true
}

// grow makes the capacity at least need PSNs. All members are at or after base.
func (s *psnSet) grow(base wire.PSN, need int) {
	old := *s
	size := max(16, 2*len(old.words))
	for 64*size < need {
		size *= 2
	}
	*s = psnSet{words: make([]uint64, size)}
	if old.n == 0 {
		return
	}
	end := base.Add(64 * len(old.words))
	for p, ok := old.next(base, end); ok; p, ok = old.next(p.Add(1), end) {
		s.add(base, p)
	}
}

// next returns the first member from from to before end. There must be no member
// before from, unless end is within the capacity of the lowest member.
func (s *psnSet) next(from, end wire.PSN) (p wire.PSN, ok bool) {
	if s.n == 0 {
		return 0, false
	}
	for left := min(end.Sub(from), 64*len(s.words)); left > 0; {
		w := s.words[s.wordIndex(from)] >> (from & 63)
		if w != 0 {
			k := bits.TrailingZeros64(w)
			return from.Add(k), k < left
		}
		k := 64 - int(from&63)
		from, left = from.Add(k), left-k
	}
	return 0, false
}

// word returns the members among the 64 PSNs from p, a multiple of 64, on. One of
// them must be within the range of the members.
func (s *psnSet) word(p wire.PSN) uint64 {
	if s.n == 0 {
		return 0
	}
	return s.words[s.wordIndex(p)]
}

// removeRange removes all members from from to before end.
func (s *psnSet) removeRange(from, end wire.PSN) {
	for p, ok := s.next(from, end); ok; p, ok = s.next(p.Add(1), end) {
		s.remove(p)
	}
}

// reset removes all members.
func (s *psnSet) reset() {
	clear(s.words)
	s.n = 0
}

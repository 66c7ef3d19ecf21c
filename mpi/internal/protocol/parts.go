package protocol

import "slices"

// rangeSet are the bytes of a message that have come.
type rangeSet struct {
	prefix uint64      // all before it
	ranges []byteRange // and these, in order; none touches the next
}

type byteRange struct{ from, to uint64 }

// maxRanges bounds the pieces that have come before their turn.
const maxRanges = 1 << 10

// add notes that the bytes from one offset to another have come. It returns
// false if some of them had before, or if there are too many pieces.
func (p *rangeSet) add(from, to uint64) bool {
	if from < p.prefix {
		return false
	}
	i, _ := slices.BinarySearchFunc(p.ranges, from, func(s byteRange, at uint64) int {
		if s.from < at {
			return -1
		}
		return 1
	}) // of the first span that begins at from or behind it
	if i < len(p.ranges) && p.ranges[i].from < to || i > 0 && p.ranges[i-1].to > from {
		return false
	}
	before := i > 0 && p.ranges[i-1].to == from
	after := i < len(p.ranges) && p.ranges[i].from == to
	switch {
	case from == p.prefix:
		p.prefix = to
		if after {
			p.prefix = p.ranges[0].to // it is the first, for none touches the front
			p.ranges = slices.Delete(p.ranges, 0, 1)
		}
	case before && after:
		p.ranges[i-1].to = p.ranges[i].to
		p.ranges = slices.Delete(p.ranges, i, i+1)
	case before:
		p.ranges[i-1].to = to
	case after:
		p.ranges[i].from = from
	case len(p.ranges) == maxRanges:
		return false
	default:
		p.ranges = slices.Insert(p.ranges, i, byteRange{from, to})
	}
	return true
}

package protocol

import "slices"

// A rangeSet is the set of byte ranges of a message that were received.
type rangeSet struct {
	prefix uint64      // all bytes before it are received
	ranges []byteRange // received ranges beyond prefix, sorted and not adjacent
}

type byteRange struct{ from, to uint64 }

// maxRanges is the maximum number of ranges beyond the prefix.
const maxRanges = 1 << 10

// add adds the bytes [from, to). It returns false if one of them is present already or
// if there are too many ranges.
func (p *rangeSet) add(from, to uint64) bool {
	if from < p.prefix {
		return false
	}
	i, _ := slices.BinarySearchFunc(p.ranges, from, func(s byteRange, at uint64) int {
		if s.from < at {
			return -1
		}
		return 1
	}) // index of the first range at or after from
	if i < len(p.ranges) && p.ranges[i].from < to || i > 0 && p.ranges[i-1].to > from {
		return false
	}
	before := i > 0 && p.ranges[i-1].to == from
	after := i < len(p.ranges) && p.ranges[i].from == to
	switch {
	case from == p.prefix:
		p.prefix = to
		if after {
			p.prefix = p.ranges[0].to // no other range is adjacent to the prefix
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

package protocol

import "slices"

// parts are the bytes of a message that have come.
type parts struct {
	front uint64 // all before it
	ahead []span // and these, in order; none touches the next
}

type span struct{ from, to uint64 }

// maxAhead bounds the pieces that have come before their turn.
const maxAhead = 1 << 10

// add notes that the bytes from one offset to another have come. It returns
// false if some of them had before, or if there are too many pieces.
func (p *parts) add(from, to uint64) bool {
	if from < p.front {
		return false
	}
	i, _ := slices.BinarySearchFunc(p.ahead, from, func(s span, at uint64) int {
		if s.from < at {
			return -1
		}
		return 1
	}) // of the first span that begins at from or behind it
	if i < len(p.ahead) && p.ahead[i].from < to || i > 0 && p.ahead[i-1].to > from {
		return false
	}
	before := i > 0 && p.ahead[i-1].to == from
	after := i < len(p.ahead) && p.ahead[i].from == to
	switch {
	case from == p.front:
		p.front = to
		if after {
			p.front = p.ahead[0].to // it is the first, for none touches the front
			p.ahead = slices.Delete(p.ahead, 0, 1)
		}
	case before && after:
		p.ahead[i-1].to = p.ahead[i].to
		p.ahead = slices.Delete(p.ahead, i, i+1)
	case before:
		p.ahead[i-1].to = to
	case after:
		p.ahead[i].from = from
	case len(p.ahead) == maxAhead:
		return false
	default:
		p.ahead = slices.Insert(p.ahead, i, span{from, to})
	}
	return true
}

package coll

// halving is the state of the reduce-scatter of Rabenseifner's algorithms: vector
// halving, distance doubling. The vector is cut into as many pieces as there are
// ids, of which a range is ours.
type halving struct {
	id     int
	pieces blocks
	lo, hi int // our range
}

// halve runs the reduce-scatter over the ids of a fold, of which we are one. acc is
// the vector, of which the range that is left to us has the result afterwards.
// Neighbours are combined first, so the order of ranks is kept.
func (c *Call) halve(f fold, acc []byte, op *Reduction) (halving, error) {
	h := halving{id: f.id(c.rank), pieces: split(acc, op.Size, f.size), hi: f.size}
	partner, paired := f.partner(c.rank)
	room := len(h.pieces.span(0, f.size/2)) // the greater half
	if paired {
		room = len(acc)
	}
	in := c.scratch(room)
	if paired {
		if err := c.recv(partner, in); err != nil {
			return h, err
		}
		if err := op.merge(acc, in, partner < c.rank); err != nil {
			return h, err
		}
	}
	for mask := 1; mask < f.size; mask *= 2 {
		mid := (h.lo + h.hi) / 2
		lo, hi, out := h.lo, mid, h.pieces.span(mid, h.hi)
		if h.id&mask != 0 {
			lo, hi, out = mid, h.hi, h.pieces.span(h.lo, mid)
		}
		h.lo, h.hi = lo, hi
		peer, ours := f.rank(h.id^mask), h.own()
		if err := c.exchange(peer, out, peer, in[:len(ours)]); err != nil {
			return h, err
		}
		if err := op.merge(ours, in[:len(ours)], h.id&mask != 0); err != nil {
			return h, err
		}
	}
	return h, nil
}

// own is the range of the vector that is ours.
func (h *halving) own() []byte { return h.pieces.span(h.lo, h.hi) }

// sibling is the other half of what was ours before the round of mask.
func (h *halving) sibling(mask int) []byte {
	n := h.hi - h.lo
	if h.id&mask != 0 {
		return h.pieces.span(h.lo-n, h.lo)
	}
	return h.pieces.span(h.hi, h.hi+n)
}

// grow makes the sibling ours.
func (h *halving) grow(mask int) {
	n := h.hi - h.lo
	if h.id&mask != 0 {
		h.lo -= n
	} else {
		h.hi += n
	}
}

package coll

// halvingState is the state of the reduce-scatter of Rabenseifner's algorithms: vector
// halving, distance doubling. The vector is cut into as many pieces as there are
// ids, of which a range is ours.
type halvingState struct {
	id     int
	pieces blocks
	lo, hi int // our range
}

// reduceScatterFold runs the reduce-scatter over the ids of a fold, of which we are one. acc is
// the vector, of which the range that is left to us has the result afterwards.
// Neighbours are combined first, so the order of ranks is kept.
func (c *Call) reduceScatterFold(f powerOfTwoFold, acc []byte, op *Reduction) (halvingState, error) {
	h := halvingState{id: f.id(c.rank), pieces: splitUnits(acc, op.Size, f.size), hi: f.size}
	partner, paired := f.partner(c.rank)
	room := len(h.pieces.blockRange(0, f.size/2)) // the greater half
	if paired {
		room = len(acc)
	}
	in := c.scratch(room)
	if paired {
		if err := c.recv(partner, in); err != nil {
			return h, err
		}
		if err := op.reduceOrdered(acc, in, partner < c.rank); err != nil {
			return h, err
		}
	}
	for mask := 1; mask < f.size; mask *= 2 {
		mid := (h.lo + h.hi) / 2
		lo, hi, out := h.lo, mid, h.pieces.blockRange(mid, h.hi)
		if h.id&mask != 0 {
			lo, hi, out = mid, h.hi, h.pieces.blockRange(h.lo, mid)
		}
		h.lo, h.hi = lo, hi
		peer, ours := f.rank(h.id^mask), h.ownRange()
		if err := c.exchange(peer, out, peer, in[:len(ours)]); err != nil {
			return h, err
		}
		if err := op.reduceOrdered(ours, in[:len(ours)], h.id&mask != 0); err != nil {
			return h, err
		}
	}
	return h, nil
}

// ownRange is the range of the vector that is ours.
func (h *halvingState) ownRange() []byte { return h.pieces.blockRange(h.lo, h.hi) }

// sibling is the other half of what was ours before the round of mask.
func (h *halvingState) sibling(mask int) []byte {
	n := h.hi - h.lo
	if h.id&mask != 0 {
		return h.pieces.blockRange(h.lo-n, h.lo)
	}
	return h.pieces.blockRange(h.hi, h.hi+n)
}

// mergeSibling makes the sibling ours.
func (h *halvingState) mergeSibling(mask int) {
	n := h.hi - h.lo
	if h.id&mask != 0 {
		h.lo -= n
	} else {
		h.hi += n
	}
}

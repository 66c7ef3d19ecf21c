package coll

// A halvingState is the state of the reduce-scatter of Rabenseifner's algorithms:
// vector halving, distance doubling. The vector is divided into one block per ID, of
// which this rank owns a range.
type halvingState struct {
	id     int
	pieces blocks
	lo, hi int // range owned by this rank
}

// reduceScatterFold runs the reduce-scatter over the IDs of a fold, of which this rank
// has one. acc is the vector; afterwards the owned range of it is the result. Neighbors
// are combined first, so that the order of ranks is preserved.
func (c *Call) reduceScatterFold(f powerOfTwoFold, acc []byte, op *Reduction) (halvingState, error) {
	h := halvingState{id: f.id(c.rank), pieces: splitUnits(acc, op.Size, f.size), hi: f.size}
	partner, paired := f.partner(c.rank)
	room := len(h.pieces.blockRange(0, f.size/2)) // the greater half
	if paired {
		room = len(acc)
	}
	in := c.allocScratch(room)
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

// ownRange returns the owned range of the vector.
func (h *halvingState) ownRange() []byte { return h.pieces.blockRange(h.lo, h.hi) }

// sibling returns the other half of the range owned before the round of mask.
func (h *halvingState) sibling(mask int) []byte {
	n := h.hi - h.lo
	if h.id&mask != 0 {
		return h.pieces.blockRange(h.lo-n, h.lo)
	}
	return h.pieces.blockRange(h.hi, h.hi+n)
}

// mergeSibling extends the owned range by its sibling.
func (h *halvingState) mergeSibling(mask int) {
	n := h.hi - h.lo
	if h.id&mask != 0 {
		h.lo -= n
	} else {
		h.hi += n
	}
}

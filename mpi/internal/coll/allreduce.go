package coll

// In the algorithms of this file buf is the vector and the result.

// allreduceDoubling exchanges and combines, in round k, the partial results of ranks
// whose numbers differ in bit k: log2 n rounds, and two more if n is no power of two.
// It preserves the order of ranks.
//
// Thakur, Rabenseifner and Gropp 2005.
func allreduceDoubling(c *Call, buf []byte, op *Reduction) error {
	f := newFold(c.size)
	partner, paired := f.partner(c.rank)
	if f.isFoldedOut(c.rank) {
		if err := c.send(partner, buf); err != nil {
			return err
		}
		return c.recv(partner, buf)
	}
	in := c.allocScratch(len(buf))
	if paired {
		if err := c.recv(partner, in); err != nil {
			return err
		}
		if err := op.reduceOrdered(buf, in, partner < c.rank); err != nil {
			return err
		}
	}
	for id, mask := f.id(c.rank), 1; mask < f.size; mask *= 2 {
		peer := f.rank(id ^ mask)
		if err := c.exchange(peer, buf, peer, in); err != nil {
			return err
		}
		if err := op.reduceOrdered(buf, in, id&mask != 0); err != nil {
			return err
		}
	}
	if paired {
		return c.send(partner, buf)
	}
	return nil
}

// allreduceRabenseifner is a reduce-scatter by vector halving and an allgather by
// vector doubling. Each rank sends about twice the vector and combines it once. It
// preserves the order of ranks.
//
// Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005.
func allreduceRabenseifner(c *Call, buf []byte, op *Reduction) error {
	f := newFold(c.size)
	partner, paired := f.partner(c.rank)
	if f.isFoldedOut(c.rank) {
		if err := c.send(partner, buf); err != nil {
			return err
		}
		return c.recv(partner, buf)
	}
	h, err := c.reduceScatterFold(f, buf, op)
	if err != nil {
		return err
	}
	for mask := f.size / 2; mask > 0; mask /= 2 {
		peer := f.rank(h.id ^ mask)
		if err := c.exchange(peer, h.ownRange(), peer, h.sibling(mask)); err != nil {
			return err
		}
		h.mergeSibling(mask)
	}
	if paired {
		return c.send(partner, buf)
	}
	return nil
}

// allreduceRing is a ring reduce-scatter followed by a ring allgather: 2(n-1) rounds
// between neighbors only. Operands are combined in the order of the ring, not of ranks.
//
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", 2009.
func allreduceRing(c *Call, buf []byte, op *Reduction) error {
	n := c.size
	b := splitUnits(buf, op.Size, n)
	in := c.allocScratch(len(b.block(0)))
	right, left := (c.rank+1)%n, (c.rank-1+n)%n
	for i := range n - 1 {
		out, ours := (c.rank-1-i+n)%n, b.block((c.rank-2-i+2*n)%n)
		if err := c.exchange(right, b.block(out), left, in[:len(ours)]); err != nil {
			return err
		}
		if err := op.reduceLeft(ours, in[:len(ours)]); err != nil {
			return err
		}
	}
	return allgatherRing(c, 0, b)
}

// allreduceReduceBcast reduces at rank 0 and broadcasts the result, both over binomial
// trees.
func allreduceReduceBcast(c *Call, buf []byte, op *Reduction) error {
	if err := reduceBinomial(c, 0, buf, buf, op); err != nil {
		return err
	}
	return bcastBinomial(c, 0, buf)
}

// allreduceLinear reduces at rank 0 and broadcasts the result, both linearly. It
// preserves the order of ranks.
func allreduceLinear(c *Call, buf []byte, op *Reduction) error {
	if err := reduceLinear(c, 0, buf, buf, op); err != nil {
		return err
	}
	return bcastLinear(c, 0, buf)
}

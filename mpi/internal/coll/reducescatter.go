package coll

// In the algorithms of this file send is the vector in dense blocks, one per rank, and recv gets
// this rank's block of the result. recv may be the start of send's memory.

// reduceScatterHalving exchanges, with ranks at shrinking distance, half of the
// remaining range: log2 n rounds, and two more if n is no power of two. It does not
// preserve the order of operands.
//
// Thakur, Rabenseifner and Gropp 2005, "recursive halving".
func reduceScatterHalving(c *Call, send blocks, recv []byte, op *Reduction) error {
	f := newFold(c.size)
	partner, paired := f.partner(c.rank)
	if f.isFoldedOut(c.rank) {
		if err := c.send(partner, send.blockRange(0, c.size)); err != nil {
			return err
		}
		return c.recv(partner, recv)
	}
	acc := c.scratchCopy(send.blockRange(0, c.size))
	in, b := c.allocScratch(len(acc)), send.withMemory(acc)
	if paired {
		if err := c.recv(partner, in); err != nil {
			return err
		}
		if err := op.reduceOrdered(acc, in, partner < c.rank); err != nil {
			return err
		}
	}
	id, lo, hi := f.id(c.rank), 0, f.size
	for mask := f.size / 2; mask > 0; mask /= 2 {
		mid := (lo + hi) / 2
		out := b.blockRange(f.firstRank(mid), f.firstRank(hi))
		if id&mask == 0 {
			hi = mid
		} else {
			out = b.blockRange(f.firstRank(lo), f.firstRank(mid))
			lo = mid
		}
		peer, ours := f.rank(id^mask), b.blockRange(f.firstRank(lo), f.firstRank(hi))
		if err := c.exchange(peer, out, peer, in[:len(ours)]); err != nil {
			return err
		}
		if err := op.reduceLeft(ours, in[:len(ours)]); err != nil {
			return err
		}
	}
	if paired {
		if err := c.send(partner, b.block(partner)); err != nil {
			return err
		}
	}
	copy(recv, b.block(c.rank))
	return nil
}

// reduceScatterPairwise sends, in each of n-1 rounds, another rank its block and
// combines the block received. No data is sent twice. For a non-commutative operation
// the blocks of higher ranks are combined separately.
//
// Thakur, Rabenseifner and Gropp 2005, "pairwise exchange".
func reduceScatterPairwise(c *Call, send blocks, recv []byte, op *Reduction) error {
	n := c.size
	acc := c.scratchCopy(send.block(c.rank))
	in := c.allocScratch(len(acc))
	var behind []byte // combination of the blocks of higher ranks
	for i := 1; i < n; i++ {
		to, from := (c.rank+i)%n, (c.rank-i+n)%n
		if err := c.exchange(to, send.block(to), from, in); err != nil {
			return err
		}
		sum := acc
		if from > c.rank && !op.Commutative {
			if behind == nil {
				behind = c.scratchCopy(in)
				continue
			}
			sum = behind
		}
		if err := op.reduceLeft(sum, in); err != nil {
			return err
		}
	}
	if behind != nil {
		if err := op.reduceRight(acc, behind); err != nil {
			return err
		}
	}
	copy(recv, acc)
	return nil
}

// reduceScatterLinear reduces at rank 0 by a linear reduce, followed by a linear
// scatter.
func reduceScatterLinear(c *Call, send blocks, recv []byte, op *Reduction) error {
	all := send.blockRange(0, c.size)
	var sum []byte
	if c.rank == 0 {
		sum = c.allocScratch(len(all))
	}
	if err := reduceLinear(c, 0, all, sum, op); err != nil {
		return err
	}
	return scatterLinear(c, 0, send.withMemory(sum), recv)
}

// reduceScatterReduce reduces at rank 0 and scatters the result, both over binomial
// trees.
func reduceScatterReduce(c *Call, send blocks, recv []byte, op *Reduction) error {
	all := send.blockRange(0, c.size)
	sum := c.allocScratch(len(all))
	if err := reduceBinomial(c, 0, all, sum, op); err != nil {
		return err
	}
	if err := scatterTree(c, 0, send.withMemory(sum)); err != nil {
		return err
	}
	copy(recv, send.withMemory(sum).block(c.rank))
	return nil
}

package coll

// The algorithms of this file are for ranks with memory in common (Board). All of
// them are one round: everyone shows what it has, and who wants it looks. So each rank
// waits once, at most, and where ranks take turns on a processor that is what counts.
// What is shown is copied twice, as if it were sent and received.

// barrierShared: everyone waits for everyone.
func barrierShared(c *Call) error {
	if err := c.showRound(nil); err != nil {
		return err
	}
	for r := range c.size {
		if _, err := c.waitShown(r, 0); err != nil {
			return err
		}
	}
	return nil
}

// bcastShared: everyone waits for the root.
func bcastShared(c *Call, root int, buf []byte) error {
	if c.rank == root {
		return c.showRound(buf)
	}
	if err := c.showRound(nil); err != nil {
		return err
	}
	return c.copyShown(root, buf)
}

// copyShown gets what a rank shows, from its beginning on.
func (c *Call) copyShown(rank int, to []byte) error {
	b, err := c.waitShown(rank, len(to))
	copy(to, b)
	return err
}

// gatherShared: the root waits for everyone.
func gatherShared(c *Call, root int, send []byte, recv blocks) error {
	if c.rank != root {
		return c.showRound(send)
	}
	if err := c.showRound(nil); err != nil {
		return err
	}
	copyUnlessSame(recv.block(root), send)
	return c.copyAllShown(recv)
}

// copyAllShown gets what the others show, each to its place.
func (c *Call) copyAllShown(recv blocks) error {
	for i := 1; i < c.size; i++ {
		r := (c.rank + i) % c.size
		if err := c.copyShown(r, recv.block(r)); err != nil {
			return err
		}
	}
	return nil
}

// scatterShared: everyone waits for the root, which shows the pieces of all.
func scatterShared(c *Call, root int, send blocks, recv []byte) error {
	if c.rank == root {
		copyUnlessSame(recv, send.block(root))
		return c.showRound(send.mem)
	}
	if err := c.showRound(nil); err != nil {
		return err
	}
	b, err := c.waitShown(root, c.size*len(recv))
	if err == nil {
		copy(recv, b[c.rank*len(recv):])
	}
	return err
}

// allgatherShared: everyone shows its piece. Pieces need not be dense.
func allgatherShared(c *Call, recv blocks) error {
	if err := c.showRound(recv.block(c.rank)); err != nil {
		return err
	}
	return c.copyAllShown(recv)
}

// alltoallShared: everyone shows its pieces for all, which have one size. In place is
// no different: what comes is written after all that leaves has been shown.
func alltoallShared(c *Call, send, recv blocks) error {
	if err := c.showRound(send.mem); err != nil {
		return err
	}
	for i := range c.size {
		from := (c.rank + i) % c.size
		b, err := c.waitShown(from, len(send.mem))
		if err != nil {
			return err
		}
		copy(recv.block(from), send.withMemory(b).block(c.rank))
	}
	return nil
}

// reduceShown makes acc the combination of part i of the vectors that ranks first to last
// show, in their order.
func (c *Call) reduceShown(acc []byte, first, last int, all blocks, i int, op *Reduction) error {
	for r := last; r >= first; r-- {
		b, err := c.waitShown(r, len(all.mem))
		if err != nil {
			return err
		}
		b = all.withMemory(b).block(i)
		if r == last {
			copy(acc, b)
		} else if err := op.reduceLeft(acc, b); err != nil {
			return err
		}
	}
	return nil
}

// singleBlock is a vector in one part.
func singleBlock(b []byte) blocks { return splitUniform(b, 1) }

// reduceShared: everyone shows its vector, and the root combines them.
func reduceShared(c *Call, root int, send, recv []byte, op *Reduction) error {
	if err := c.showRound(send); err != nil || c.rank != root {
		return err
	}
	return c.reduceShown(recv, 0, c.size-1, singleBlock(send), 0, op)
}

// allreduceShared: everyone combines all vectors, in the same order, so that all
// have the same result to the last bit.
func allreduceShared(c *Call, buf []byte, op *Reduction) error {
	if err := c.showRound(buf); err != nil {
		return err
	}
	return c.reduceShown(buf, 0, c.size-1, singleBlock(buf), 0, op)
}

// reduceScatterShared: everyone combines its piece of all vectors. recv may be the
// beginning of send's memory.
func reduceScatterShared(c *Call, send blocks, recv []byte, op *Reduction) error {
	if err := c.showRound(send.mem); err != nil {
		return err
	}
	return c.reduceShown(recv, 0, c.size-1, send, c.rank, op)
}

// scanShared: everyone combines the vectors up to its own.
func scanShared(c *Call, buf []byte, op *Reduction) error {
	if err := c.showRound(buf); err != nil {
		return err
	}
	return c.reduceShown(buf, 0, c.rank, singleBlock(buf), 0, op)
}

// exscanShared: everyone combines the vectors before its own. recv may be the memory
// of send, and is left alone at rank 0.
func exscanShared(c *Call, send, recv []byte, op *Reduction) error {
	if err := c.showRound(send); err != nil {
		return err
	}
	return c.reduceShown(recv, 0, c.rank-1, singleBlock(send), 0, op)
}

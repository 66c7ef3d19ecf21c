package coll

// The algorithms of this file use shared memory (Board). Each is one round: every rank shows its
// data and reads the data that it needs. Each rank waits at most once, which dominates the time of
// ranks that share a processor. Data is copied twice, as by a send and a receive.

// barrierShared waits for all ranks.
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

// bcastShared waits for the root.
func bcastShared(c *Call, root int, buf []byte) error {
	if c.rank == root {
		return c.showRound(buf)
	}
	if err := c.showRound(nil); err != nil {
		return err
	}
	return c.copyShown(root, buf)
}

// copyShown copies the start of the data that a rank shows.
func (c *Call) copyShown(rank int, to []byte) error {
	b, err := c.waitShown(rank, len(to))
	copy(to, b)
	return err
}

// gatherShared waits for all ranks at the root.
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

// copyAllShown copies the data that the other ranks show to their blocks of recv.
func (c *Call) copyAllShown(recv blocks) error {
	for i := 1; i < c.size; i++ {
		r := (c.rank + i) % c.size
		if err := c.copyShown(r, recv.block(r)); err != nil {
			return err
		}
	}
	return nil
}

// scatterShared waits for the root, which shows the blocks of all ranks.
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

// allgatherShared shows the own block and reads all others. Blocks need not be dense.
func allgatherShared(c *Call, recv blocks) error {
	if err := c.showRound(recv.block(c.rank)); err != nil {
		return err
	}
	return c.copyAllShown(recv)
}

// alltoallShared shows the blocks for all ranks, of equal size. It works in place,
// because a rank writes recv only after it has shown send.
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

// reduceShown sets acc to the combination of block i of the vectors that ranks first to
// last show, in their order.
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

// singleBlock returns a vector as one block.
func singleBlock(b []byte) blocks { return splitUniform(b, 1) }

// reduceShared shows the vector of each rank and combines them at the root.
func reduceShared(c *Call, root int, send, recv []byte, op *Reduction) error {
	if err := c.showRound(send); err != nil || c.rank != root {
		return err
	}
	return c.reduceShown(recv, 0, c.size-1, singleBlock(send), 0, op)
}

// allreduceShared combines all vectors at every rank, in the same order, so that all
// results are bitwise identical.
func allreduceShared(c *Call, buf []byte, op *Reduction) error {
	if err := c.showRound(buf); err != nil {
		return err
	}
	return c.reduceShown(buf, 0, c.size-1, singleBlock(buf), 0, op)
}

// allreduceSharedParts combines vectors of any length in chunks of the size of a slot. In each one,
// every rank combines a part of all vectors and reads the other parts of the result, so that it reads
// about two vectors instead of all. Its part of the result replaces that part of its vector, which no
// other rank reads. When all ranks have shown a chunk, none reads the one before any more.
func allreduceSharedParts(c *Call, buf []byte, op *Reduction) error {
	slot, err := c.beginRound()
	if err != nil {
		return err
	}
	room := len(slot) / op.Size * op.Size
	for k := 0; len(buf) > 0; k++ {
		chunk := buf[:min(room, len(buf))]
		buf = buf[len(chunk):]
		copy(c.board.Chunk(c.rank, k), chunk)
		if k == 0 {
			err = c.board.Show(c.sign)
		} else {
			err = c.board.ShowStep(2 * k)
		}
		if err == nil {
			err = c.reduceChunk(splitUnits(chunk, op.Size, c.size), k, op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reduceChunk sets the memory of parts, chunk k of the vectors, to the combination of those of all
// ranks.
func (c *Call) reduceChunk(parts blocks, k int, op *Reduction) error {
	mine := parts.block(c.rank)
	for r := c.size - 1; r >= 0; r-- {
		var err error
		if k == 0 {
			_, err = c.waitShown(r, len(parts.mem))
		} else {
			err = c.board.WaitStep(r, 2*k)
		}
		if err != nil {
			return err
		}
		theirs := parts.withMemory(c.board.Chunk(r, k)).block(c.rank)
		if r == c.size-1 {
			copy(mine, theirs)
		} else if err := op.reduceLeft(mine, theirs); err != nil {
			return err
		}
	}
	copy(parts.withMemory(c.board.Chunk(c.rank, k)).block(c.rank), mine)
	if err := c.board.ShowStep(2*k + 1); err != nil {
		return err
	}
	for i := 1; i < c.size; i++ {
		r := (c.rank + i) % c.size
		if err := c.board.WaitStep(r, 2*k+1); err != nil {
			return err
		}
		copy(parts.block(r), parts.withMemory(c.board.Chunk(r, k)).block(r))
	}
	return nil
}

// reduceScatterShared combines, at each rank, its block of all vectors. recv may be the
// start of send's memory.
func reduceScatterShared(c *Call, send blocks, recv []byte, op *Reduction) error {
	if err := c.showRound(send.mem); err != nil {
		return err
	}
	return c.reduceShown(recv, 0, c.size-1, send, c.rank, op)
}

// scanShared combines, at each rank, the vectors up to its own.
func scanShared(c *Call, buf []byte, op *Reduction) error {
	if err := c.showRound(buf); err != nil {
		return err
	}
	return c.reduceShown(buf, 0, c.rank, singleBlock(buf), 0, op)
}

// exscanShared combines, at each rank, the vectors before its own. recv may be the
// memory of send.
func exscanShared(c *Call, send, recv []byte, op *Reduction) error {
	if err := c.showRound(send); err != nil {
		return err
	}
	return c.reduceShown(recv, 0, c.rank-1, singleBlock(send), 0, op)
}

package coll

// scanLinear: every rank combines what the one before sends with its own, and
// sends it to the next. buf has our vector, and the result afterwards.
func scanLinear(c *Call, buf []byte, op *Reduction) error {
	if c.rank > 0 {
		in := c.scratch(len(buf))
		if err := c.recv(c.rank-1, in); err != nil {
			return err
		}
		if err := op.reduceLeft(buf, in); err != nil {
			return err
		}
	}
	if c.rank < c.size-1 {
		return c.send(c.rank+1, buf)
	}
	return nil
}

// scanDoubling: in round k every rank sends what it has 2^k ranks forward, so that
// afterwards it has that of 2^(k+1) ranks up to itself: ceil(log2 n) rounds.
//
// Hillis and Steele, "Data parallel algorithms", 1986.
func scanDoubling(c *Call, buf []byte, op *Reduction) error {
	in := c.scratch(len(buf))
	for d := 1; d < c.size; d *= 2 {
		if err := c.exchangeShifted(d, buf, in); err != nil {
			return err
		}
		if c.rank >= d {
			if err := op.reduceLeft(buf, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// exchangeShifted sends out d ranks forward, and receives in, as far as there are ranks.
func (c *Call) exchangeShifted(d int, out, in []byte) error {
	if c.rank >= d {
		c.irecv(c.rank-d, in)
	}
	if c.rank+d < c.size {
		c.isend(c.rank+d, out)
	}
	return c.waitAll()
}

// exscanLinear: as scanLinear, without our own. recv may be the memory of send, and
// is left alone at rank 0.
func exscanLinear(c *Call, send, recv []byte, op *Reduction) error {
	acc := send
	if c.rank > 0 {
		if c.rank < c.size-1 {
			acc = c.scratchCopy(send)
		}
		if err := c.recv(c.rank-1, recv); err != nil {
			return err
		}
	}
	if c.rank == c.size-1 {
		return nil
	}
	if c.rank > 0 {
		if err := op.reduceLeft(acc, recv); err != nil {
			return err
		}
	}
	return c.send(c.rank+1, acc)
}

// exscanDoubling: as scanDoubling, without our own. recv as for exscanLinear.
func exscanDoubling(c *Call, send, recv []byte, op *Reduction) error {
	acc, in := c.scratchCopy(send), c.scratch(len(send))
	for d := 1; d < c.size; d *= 2 {
		if err := c.exchangeShifted(d, acc, in); err != nil {
			return err
		}
		if c.rank < d {
			continue
		}
		if d == 1 {
			copy(recv, in)
		} else if err := op.reduceLeft(recv, in); err != nil {
			return err
		}
		if err := op.reduceLeft(acc, in); err != nil {
			return err
		}
	}
	return nil
}

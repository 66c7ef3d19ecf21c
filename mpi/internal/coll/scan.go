package coll

// scanLinear receives from the previous rank, combines, and sends to the next. buf is
// the vector and the result.
func scanLinear(c *Call, buf []byte, op *Reduction) error {
	if c.rank > 0 {
		in := c.allocScratch(len(buf))
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

// scanDoubling sends, in round k, the partial result 2^k ranks forward, so that each
// rank has the combination of 2^(k+1) ranks afterwards: ceil(log2 n) rounds.
//
// Hillis and Steele, "Data parallel algorithms", 1986.
func scanDoubling(c *Call, buf []byte, op *Reduction) error {
	in := c.allocScratch(len(buf))
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

// exchangeShifted sends out d ranks forward and receives in from d ranks back, where
// these exist.
func (c *Call) exchangeShifted(d int, out, in []byte) error {
	if c.rank >= d {
		c.irecv(c.rank-d, in)
	}
	if c.rank+d < c.size {
		c.isend(c.rank+d, out)
	}
	return c.waitAll()
}

// exscanLinear is scanLinear without the own vector. recv may be the memory of send and
// is not changed at rank 0.
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

// exscanDoubling is scanDoubling without the own vector. recv is as for exscanLinear.
func exscanDoubling(c *Call, send, recv []byte, op *Reduction) error {
	acc, in := c.scratchCopy(send), c.allocScratch(len(send))
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

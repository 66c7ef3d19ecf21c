package coll

// bcastBinomial: down a binomial tree, in ceil(log2 n) rounds.
//
// Thakur, Rabenseifner and Gropp 2005.
func bcastBinomial(c *Call, root int, buf []byte) error {
	t := c.tree(root)
	if t.v != 0 {
		if err := c.recv(t.parent(), buf); err != nil {
			return err
		}
	}
	for d := t.reach() / 2; d > 0; d /= 2 {
		if t.has(d) {
			c.isend(t.child(d), buf)
		}
	}
	return c.wait()
}

// bcastLinear: the root sends to everyone, to the next rank first.
func bcastLinear(c *Call, root int, buf []byte) error {
	if c.rank != root {
		return c.recv(root, buf)
	}
	for i := 1; i < c.size; i++ {
		c.isend((root+i)%c.size, buf)
	}
	return c.wait()
}

// bcastScatter: the buffer is cut into a piece for each rank, which go down a
// binomial tree, and then are gathered by all. Everyone sends and receives about
// twice the buffer, however many ranks there are.
//
// Barnett and others, "Interprocessor collective communication library (InterCom)",
// 1994; Thakur, Rabenseifner and Gropp 2005.
func bcastScatter(c *Call, root int, buf []byte, allgather func(c *Call, root int, b blocks) error) error {
	b := split(buf, 1, c.size)
	if err := scatterTree(c, root, b); err != nil {
		return err
	}
	return allgather(c, root, b)
}

// scatterTree brings each rank its piece of a buffer that all have the memory of.
// Pieces are those of the ranks counted from the root on.
func scatterTree(c *Call, root int, b blocks) error {
	t := c.tree(root)
	if t.v != 0 {
		if err := c.recv(t.parent(), b.span(t.v, t.v+t.below())); err != nil {
			return err
		}
	}
	for d := t.reach() / 2; d > 0; d /= 2 {
		if t.has(d) {
			c.isend(t.child(d), b.span(t.v+d, t.v+d+t.belowChild(d)))
		}
	}
	return c.wait()
}

// bcastChain: each rank hands on to the next, a segment at a time, so that all are
// at work at once: n-2 rounds and one for each segment.
//
// Open MPI's "pipeline"; Worringen, "Pipelining and overlapping for MPI collective
// operations", 2003.
func bcastChain(c *Call, root int, buf []byte) error {
	t := c.tree(root)
	last := t.v == c.size-1
	var ahead Request // the receive of the segment after this one
	next := buf
	receive := func() {
		if n := c.segment(next); t.v != 0 && n > 0 {
			ahead = c.Net.Irecv(t.rank(t.v-1), next[:n])
			next = next[n:]
		}
	}
	for receive(); len(buf) > 0; {
		n := c.segment(buf)
		if t.v != 0 {
			this := ahead
			receive()
			if err := c.waitFor(this); err != nil {
				return err
			}
		}
		if !last {
			if err := c.limit(chainDepth - 1); err != nil {
				return err
			}
			c.isend(t.rank(t.v+1), buf[:n])
		}
		buf = buf[n:]
	}
	return c.wait()
}

// chainDepth is how many segments a rank is sending at a time.
const chainDepth = 4

// segment is the size of the first segment of what is left.
func (c *Call) segment(left []byte) int {
	if c.Segment > 0 {
		return min(c.Segment, len(left))
	}
	return min(defaultSegment, len(left))
}

package coll

// bcastBinomial sends down a binomial tree in ceil(log2 n) rounds.
//
// Thakur, Rabenseifner and Gropp 2005.
func bcastBinomial(c *Call, root int, buf []byte) error {
	t := c.newTree(root)
	if t.node != 0 {
		if err := c.recv(t.parent(), buf); err != nil {
			return err
		}
	}
	for d := t.maxDistance() / 2; d > 0; d /= 2 {
		if t.hasChild(d) {
			c.isend(t.child(d), buf)
		}
	}
	return c.waitAll()
}

// bcastLinear sends from the root to every rank, to the next rank first.
func bcastLinear(c *Call, root int, buf []byte) error {
	if c.rank != root {
		return c.recv(root, buf)
	}
	for i := 1; i < c.size; i++ {
		c.isend((root+i)%c.size, buf)
	}
	return c.waitAll()
}

// bcastScatter scatters the buffer over a binomial tree, followed by an allgather. Each
// rank sends and receives about twice the buffer, for any number of ranks.
//
// Barnett and others, "Interprocessor collective communication library (InterCom)",
// 1994; Thakur, Rabenseifner and Gropp 2005.
func bcastScatter(c *Call, root int, buf []byte, allgather func(c *Call, root int, b blocks) error) error {
	b := splitUnits(buf, 1, c.size)
	if err := scatterTree(c, root, b); err != nil {
		return err
	}
	return allgather(c, root, b)
}

// scatterTree sends each rank its block of a buffer for which all ranks have memory.
// Blocks are in the order of ranks, numbered from the root.
func scatterTree(c *Call, root int, b blocks) error {
	t := c.newTree(root)
	if t.node != 0 {
		if err := c.recv(t.parent(), b.blockRange(t.node, t.node+t.subtreeSize())); err != nil {
			return err
		}
	}
	for d := t.maxDistance() / 2; d > 0; d /= 2 {
		if t.hasChild(d) {
			c.isend(t.child(d), b.blockRange(t.node+d, t.node+d+t.childSubtreeSize(d)))
		}
	}
	return c.waitAll()
}

// bcastChain forwards segments from each rank to the next, so that all ranks work
// concurrently: n-2 rounds and one per segment.
//
// Open MPI's "pipeline"; Worringen, "Pipelining and overlapping for MPI collective
// operations", 2003.
func bcastChain(c *Call, root int, buf []byte) error {
	t := c.newTree(root)
	last := t.node == c.size-1
	var ahead Request // receive of the next segment
	next := buf
	receive := func() {
		if n := c.segmentSize(next); t.node != 0 && n > 0 {
			ahead = c.Net.Irecv(t.rank(t.node-1), next[:n])
			next = next[n:]
		}
	}
	for receive(); len(buf) > 0; {
		n := c.segmentSize(buf)
		if t.node != 0 {
			this := ahead
			receive()
			if err := c.waitFor(this); err != nil {
				return err
			}
		}
		if !last {
			if err := c.waitUntil(chainDepth - 1); err != nil {
				return err
			}
			c.isend(t.rank(t.node+1), buf[:n])
		}
		buf = buf[n:]
	}
	return c.waitAll()
}

// chainDepth is the maximum number of segments that a rank has in flight.
const chainDepth = 4

// segmentSize returns the size of the next segment.
func (c *Call) segmentSize(left []byte) int {
	if c.Segment > 0 {
		return min(c.Segment, len(left))
	}
	return min(defaultSegment, len(left))
}

package coll

// scatterLinear sends from the root to every rank. send is significant only at the
// root.
func scatterLinear(c *Call, root int, send blocks, recv []byte) error {
	if c.rank != root {
		return c.recv(root, recv)
	}
	for i := range c.size {
		if i != root {
			c.isend(i, send.block(i))
		}
	}
	copyUnlessSame(recv, send.block(root))
	return c.waitAll()
}

// scatterBinomial sends down a binomial tree in ceil(log2 n) rounds; each node receives
// the blocks of its subtree in one message. Blocks have equal size, known to all ranks.
//
// Sources as for gatherBinomial.
func scatterBinomial(c *Call, root int, send blocks, recv []byte) error {
	t, size := c.newTree(root), len(recv)
	if t.node != 0 {
		if t.subtreeSize() == 1 {
			return c.recv(t.parent(), recv)
		}
		all := c.allocScratch(t.subtreeSize() * size)
		if err := c.recv(t.parent(), all); err != nil {
			return err
		}
		for d := t.maxDistance() / 2; d > 0; d /= 2 {
			if t.hasChild(d) {
				c.isend(t.child(d), all[d*size:][:t.childSubtreeSize(d)*size])
			}
		}
		copy(recv, all)
		return c.waitAll()
	}
	for d := t.maxDistance() / 2; d > 0; d /= 2 {
		if !t.hasChild(d) {
			continue
		}
		to := t.child(d)
		if end := to + t.childSubtreeSize(d); end <= c.size {
			c.isend(to, send.blockRange(to, end))
			continue
		}
		wrapped := c.allocScratch(t.childSubtreeSize(d) * size) // for a subtree that wraps around rank 0
		n := copy(wrapped, send.blockRange(to, c.size))
		copy(wrapped[n:], send.blockRange(0, c.size))
		c.isend(to, wrapped)
	}
	copyUnlessSame(recv, send.block(root))
	return c.waitAll()
}

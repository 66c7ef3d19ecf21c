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

// scattervBinomial is scatterBinomial for blocks of different sizes. Only the root
// knows the sizes, so a node with children receives the lengths of its subtree first.
//
// Sources as for gathervBinomial.
func scattervBinomial(c *Call, root int, send blocks, recv []byte) error {
	t := c.newTree(root)
	if t.node != 0 && t.subtreeSize() == 1 {
		return c.recv(t.parent(), recv)
	}
	l := blockLengths(c.allocScratch(t.subtreeSize() * lengthSize))
	var all []byte
	if t.node != 0 {
		if err := c.recv(t.parent(), l); err != nil {
			return err
		}
		if err := l.validate(); err != nil {
			return err
		}
		all = c.allocScratch(l.sum(0, t.subtreeSize()))
		if err := c.recv(t.parent(), all); err != nil {
			return err
		}
		copy(recv, all)
	} else {
		copyUnlessSame(recv, send.block(root))
		all = c.allocScratch(totalSize(send))
		at := 0
		for v := range c.size {
			piece := send.block(t.rank(v))
			l.set(v, len(piece))
			at += copy(all[at:], piece)
		}
	}
	for d := t.maxDistance() / 2; d > 0; d /= 2 {
		if !t.hasChild(d) {
			continue
		}
		n := t.childSubtreeSize(d)
		if n > 1 {
			c.isend(t.child(d), l.sub(d, n))
		}
		c.isend(t.child(d), all[l.sum(0, d):][:l.sum(d, n)])
	}
	return c.waitAll()
}

package coll

// gatherLinear sends from every rank to the root. recv is significant only at the root.
func gatherLinear(c *Call, root int, send []byte, recv blocks) error {
	if c.rank != root {
		return c.send(root, send)
	}
	copyUnlessSame(recv.block(root), send)
	for i := range c.size {
		if i != root {
			c.irecv(i, recv.block(i))
		}
	}
	return c.waitAll()
}

// gatherBinomial sends up a binomial tree in ceil(log2 n) rounds; each node sends its
// subtree in one message. Blocks have equal size, known to all ranks.
//
// Thakur, Rabenseifner and Gropp 2005; Chan and others, "Collective communication:
// theory, practice, and experience", 2007.
func gatherBinomial(c *Call, root int, send []byte, recv blocks) error {
	t, size := c.newTree(root), len(send)
	if t.node != 0 {
		all := send
		if t.subtreeSize() > 1 {
			all = c.allocScratch(t.subtreeSize() * size)
			copy(all, send)
			for d := 1; d < t.maxDistance() && t.hasChild(d); d *= 2 {
				c.irecv(t.child(d), all[d*size:][:t.childSubtreeSize(d)*size])
			}
			if err := c.waitAll(); err != nil {
				return err
			}
		}
		return c.send(t.parent(), all)
	}
	copyUnlessSame(recv.block(root), send)
	var wrapped []byte // data of a child whose subtree wraps around rank 0
	from := 0
	for d := 1; t.hasChild(d); d *= 2 {
		to := t.child(d)
		if end := to + t.childSubtreeSize(d); end <= c.size {
			c.irecv(to, recv.blockRange(to, end))
			continue
		}
		from, wrapped = to, c.allocScratch(t.childSubtreeSize(d)*size)
		c.irecv(to, wrapped)
	}
	if err := c.waitAll(); err != nil {
		return err
	}
	n := copy(recv.blockRange(from, c.size), wrapped)
	copy(recv.blockRange(0, c.size), wrapped[n:])
	return nil
}

// gatherTree gathers dense blocks at rank 0; all ranks have memory for all blocks.
func gatherTree(c *Call, b blocks) error {
	t := c.newTree(0)
	for d := 1; d < t.maxDistance() && t.hasChild(d); d *= 2 {
		c.irecv(t.child(d), b.blockRange(t.node+d, t.node+d+t.childSubtreeSize(d)))
	}
	if err := c.waitAll(); err != nil || t.node == 0 {
		return err
	}
	return c.send(t.parent(), b.blockRange(t.node, t.node+t.subtreeSize()))
}

package coll

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

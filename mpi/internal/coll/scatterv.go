package coll

// scattervBinomial: as scatterBinomial. Only the root knows how long the pieces
// are, so a node that has others below it is told before.
//
// Sources as for gathervBinomial.
func scattervBinomial(c *Call, root int, send blocks, recv []byte) error {
	t := c.tree(root)
	if t.v != 0 && t.below() == 1 {
		return c.recv(t.parent(), recv)
	}
	l := lengths(c.scratch(t.below() * lengthSize))
	var all []byte
	if t.v != 0 {
		if err := c.recv(t.parent(), l); err != nil {
			return err
		}
		if err := l.check(); err != nil {
			return err
		}
		all = c.scratch(l.sum(0, t.below()))
		if err := c.recv(t.parent(), all); err != nil {
			return err
		}
		copy(recv, all)
	} else {
		place(recv, send.at(root))
		all = c.scratch(total(send))
		at := 0
		for v := range c.size {
			piece := send.at(t.rank(v))
			l.set(v, len(piece))
			at += copy(all[at:], piece)
		}
	}
	for d := t.reach() / 2; d > 0; d /= 2 {
		if !t.has(d) {
			continue
		}
		n := t.belowChild(d)
		if n > 1 {
			c.isend(t.child(d), l.of(d, n))
		}
		c.isend(t.child(d), all[l.sum(0, d):][:l.sum(d, n)])
	}
	return c.wait()
}

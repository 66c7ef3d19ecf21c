package coll

// scatterLinear: the root sends to everyone. send counts at the root only.
func scatterLinear(c *Call, root int, send blocks, recv []byte) error {
	if c.rank != root {
		return c.recv(root, recv)
	}
	for i := range c.size {
		if i != root {
			c.isend(i, send.at(i))
		}
	}
	place(recv, send.at(root))
	return c.wait()
}

// scatterBinomial: down a binomial tree in ceil(log2 n) rounds, each node gets what
// is for those below it in one message. Pieces have one size, which everyone knows.
//
// Sources as for gatherBinomial.
func scatterBinomial(c *Call, root int, send blocks, recv []byte) error {
	t, size := c.tree(root), len(recv)
	if t.v != 0 {
		if t.below() == 1 {
			return c.recv(t.parent(), recv)
		}
		all := c.scratch(t.below() * size)
		if err := c.recv(t.parent(), all); err != nil {
			return err
		}
		for d := t.reach() / 2; d > 0; d /= 2 {
			if t.has(d) {
				c.isend(t.child(d), all[d*size:][:t.belowChild(d)*size])
			}
		}
		copy(recv, all)
		return c.wait()
	}
	for d := t.reach() / 2; d > 0; d /= 2 {
		if !t.has(d) {
			continue
		}
		to := t.child(d)
		if end := to + t.belowChild(d); end <= c.size {
			c.isend(to, send.span(to, end))
			continue
		}
		wrapped := c.scratch(t.belowChild(d) * size) // for ranks on both sides of 0
		n := copy(wrapped, send.span(to, c.size))
		copy(wrapped[n:], send.span(0, c.size))
		c.isend(to, wrapped)
	}
	place(recv, send.at(root))
	return c.wait()
}

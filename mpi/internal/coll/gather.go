package coll

// gatherLinear: everyone sends to the root. recv counts at the root only.
func gatherLinear(c *Call, root int, send []byte, recv blocks) error {
	if c.rank != root {
		return c.send(root, send)
	}
	place(recv.at(root), send)
	for i := range c.size {
		if i != root {
			c.irecv(i, recv.at(i))
		}
	}
	return c.wait()
}

// gatherBinomial: up a binomial tree in ceil(log2 n) rounds, each node sends what
// is below it in one message. Pieces have one size, which everyone knows.
//
// Thakur, Rabenseifner and Gropp 2005; Chan and others, "Collective
// communication: theory, practice, and experience", 2007.
func gatherBinomial(c *Call, root int, send []byte, recv blocks) error {
	t, size := c.tree(root), len(send)
	if t.v != 0 {
		all := send
		if t.below() > 1 {
			all = c.scratch(t.below() * size)
			copy(all, send)
			for d := 1; d < t.reach() && t.has(d); d *= 2 {
				c.irecv(t.child(d), all[d*size:][:t.belowChild(d)*size])
			}
			if err := c.wait(); err != nil {
				return err
			}
		}
		return c.send(t.parent(), all)
	}
	place(recv.at(root), send)
	var wrapped []byte // what comes from a child that has ranks on both sides of 0 below it
	from := 0
	for d := 1; t.has(d); d *= 2 {
		to := t.child(d)
		if end := to + t.belowChild(d); end <= c.size {
			c.irecv(to, recv.span(to, end))
			continue
		}
		from, wrapped = to, c.scratch(t.belowChild(d)*size)
		c.irecv(to, wrapped)
	}
	if err := c.wait(); err != nil {
		return err
	}
	n := copy(recv.span(from, c.size), wrapped)
	copy(recv.span(0, c.size), wrapped[n:])
	return nil
}

// gatherTree gathers dense pieces at rank 0, where all ranks have memory for all.
func gatherTree(c *Call, b blocks) error {
	t := c.tree(0)
	for d := 1; d < t.reach() && t.has(d); d *= 2 {
		c.irecv(t.child(d), b.span(t.v+d, t.v+d+t.belowChild(d)))
	}
	if err := c.wait(); err != nil || t.v == 0 {
		return err
	}
	return c.send(t.parent(), b.span(t.v, t.v+t.below()))
}

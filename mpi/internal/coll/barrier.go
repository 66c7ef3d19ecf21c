package coll

// barrierDissemination: in round k every rank tells the one 2^k further on. After
// ceil(log2 n) rounds each has heard of all, directly or not.
//
// Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988;
// Mamidala and others 2007, section 2.
func barrierDissemination(c *Call) error {
	for d := 1; d < c.size; d *= 2 {
		c.await((c.rank - d + c.size) % c.size)
		c.signal((c.rank + d) % c.size)
		if err := c.wait(); err != nil {
			return err
		}
	}
	return nil
}

// barrierTree: up a binomial tree and down again. It has the fewest messages,
// 2(n-1), in 2 ceil(log2 n) rounds.
func barrierTree(c *Call) error {
	t := c.tree(0)
	for d := 1; d < t.reach() && t.has(d); d *= 2 {
		c.await(t.child(d))
	}
	if err := c.wait(); err != nil {
		return err
	}
	if t.v != 0 {
		c.signal(t.parent())
		c.await(t.parent())
		if err := c.wait(); err != nil {
			return err
		}
	}
	for d := t.reach() / 2; d > 0; d /= 2 {
		if t.has(d) {
			c.signal(t.child(d))
		}
	}
	return c.wait()
}

// barrierDoubling: in round k ranks whose numbers differ in bit k tell each other.
// Of other numbers than powers of two it has two rounds more, before and after.
//
// Brooks, "The butterfly barrier", 1986.
func barrierDoubling(c *Call) error {
	f := foldOf(c.size)
	partner, paired := f.partner(c.rank)
	if f.out(c.rank) {
		c.signal(partner)
		c.await(partner)
		return c.wait()
	}
	if paired {
		c.await(partner)
		if err := c.wait(); err != nil {
			return err
		}
	}
	for id, mask := f.id(c.rank), 1; mask < f.size; mask *= 2 {
		c.await(f.rank(id ^ mask))
		c.signal(f.rank(id ^ mask))
		if err := c.wait(); err != nil {
			return err
		}
	}
	if paired {
		c.signal(partner)
	}
	return c.wait()
}

// barrierLinear: everyone tells rank 0, which tells everyone. It has the fewest
// messages, 2(n-1), as the tree has, and the fewest turns: two of each rank.
func barrierLinear(c *Call) error {
	if c.rank != 0 {
		c.signal(0)
		c.await(0)
		return c.wait()
	}
	for r := 1; r < c.size; r++ {
		c.await(r)
	}
	if err := c.wait(); err != nil {
		return err
	}
	for r := 1; r < c.size; r++ {
		c.signal(r)
	}
	return c.wait()
}

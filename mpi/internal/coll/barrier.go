package coll

// barrierDissemination sends, in round k, a message to the rank 2^k further on. After
// ceil(log2 n) rounds each rank depends on all others.
//
// Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988;
// Mamidala and others 2007, section 2.
func barrierDissemination(c *Call) error {
	for d := 1; d < c.size; d *= 2 {
		c.recvEmpty((c.rank - d + c.size) % c.size)
		c.sendEmpty((c.rank + d) % c.size)
		if err := c.waitAll(); err != nil {
			return err
		}
	}
	return nil
}

// barrierTree goes up and down a binomial tree: 2(n-1) messages, the minimum, in 2
// ceil(log2 n) rounds.
func barrierTree(c *Call) error {
	t := c.newTree(0)
	for d := 1; d < t.maxDistance() && t.hasChild(d); d *= 2 {
		c.recvEmpty(t.child(d))
	}
	if err := c.waitAll(); err != nil {
		return err
	}
	if t.node != 0 {
		c.sendEmpty(t.parent())
		c.recvEmpty(t.parent())
		if err := c.waitAll(); err != nil {
			return err
		}
	}
	for d := t.maxDistance() / 2; d > 0; d /= 2 {
		if t.hasChild(d) {
			c.sendEmpty(t.child(d))
		}
	}
	return c.waitAll()
}

// barrierDoubling exchanges, in round k, messages between ranks whose numbers differ in
// bit k. If n is no power of two, it takes two more rounds.
//
// Brooks, "The butterfly barrier", 1986.
func barrierDoubling(c *Call) error {
	f := newFold(c.size)
	partner, paired := f.partner(c.rank)
	if f.isFoldedOut(c.rank) {
		c.sendEmpty(partner)
		c.recvEmpty(partner)
		return c.waitAll()
	}
	if paired {
		c.recvEmpty(partner)
		if err := c.waitAll(); err != nil {
			return err
		}
	}
	for id, mask := f.id(c.rank), 1; mask < f.size; mask *= 2 {
		c.recvEmpty(f.rank(id ^ mask))
		c.sendEmpty(f.rank(id ^ mask))
		if err := c.waitAll(); err != nil {
			return err
		}
	}
	if paired {
		c.sendEmpty(partner)
	}
	return c.waitAll()
}

// barrierLinear sends all messages to rank 0, which replies to all. It has the minimum
// of messages, 2(n-1), and of context switches: two per rank.
func barrierLinear(c *Call) error {
	if c.rank != 0 {
		c.sendEmpty(0)
		c.recvEmpty(0)
		return c.waitAll()
	}
	for r := 1; r < c.size; r++ {
		c.recvEmpty(r)
	}
	if err := c.waitAll(); err != nil {
		return err
	}
	for r := 1; r < c.size; r++ {
		c.sendEmpty(r)
	}
	return c.waitAll()
}

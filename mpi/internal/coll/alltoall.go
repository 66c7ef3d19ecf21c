package coll

// alltoallPairwise: n-1 rounds, in each of which every rank exchanges with one
// other: with the one whose number differs in the bits of the round, if there is
// a power of two of them, else it sends so many ranks forward.
//
// Thakur, Rabenseifner and Gropp 2005.
func alltoallPairwise(c *Call, send, recv blocks) error {
	n := c.size
	copyUnlessSame(recv.block(c.rank), send.block(c.rank))
	for i := 1; i < n; i++ {
		to, from := (c.rank+i)%n, (c.rank-i+n)%n
		if n&(n-1) == 0 {
			to, from = c.rank^i, c.rank^i
		}
		if err := c.exchange(to, send.block(to), from, recv.block(from)); err != nil {
			return err
		}
	}
	return nil
}

// alltoallDirect: every rank sends to all others at once, each beginning with the
// one behind it, so that not all send to the same. At most Window messages are
// under way each way.
//
// Sur, Jin and Panda, "Efficient and scalable all-to-all exchange for
// InfiniBand-based clusters", 2004; Mamidala and others 2007, section 2.
func alltoallDirect(c *Call, send, recv blocks) error {
	n, window := c.size, c.Window
	if window <= 0 {
		window = defaultWindow
	}
	for i := 1; i < n; i++ {
		if err := c.waitUntil(2 * (window - 1)); err != nil {
			return err
		}
		to, from := (c.rank+i)%n, (c.rank-i+n)%n
		c.irecv(from, recv.block(from))
		c.isend(to, send.block(to))
	}
	copyUnlessSame(recv.block(c.rank), send.block(c.rank))
	return c.waitAll()
}

// alltoallLinear: every rank sends to all others in their order. It is what the
// others are compared with.
func alltoallLinear(c *Call, send, recv blocks) error {
	for i := range c.size {
		if i != c.rank {
			c.irecv(i, recv.block(i))
		}
	}
	for i := range c.size {
		if i != c.rank {
			c.isend(i, send.block(i))
		}
	}
	copyUnlessSame(recv.block(c.rank), send.block(c.rank))
	return c.waitAll()
}

// alltoallInPlace: pairs of ranks exchange what they have for each other by way of
// one piece of scratch memory. Pairs whose numbers add up to the round meet in it,
// so everyone meets everyone in n rounds.
func alltoallInPlace(c *Call, b blocks) error {
	most := 0
	for i := range b.n {
		most = max(most, len(b.block(i)))
	}
	out := c.scratch(most)
	for i := range c.size {
		peer := (i - c.rank + c.size) % c.size
		if peer == c.rank {
			continue
		}
		n := copy(out, b.block(peer))
		if err := c.exchange(peer, out[:n], peer, b.block(peer)); err != nil {
			return err
		}
	}
	return nil
}

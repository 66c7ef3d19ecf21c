package coll

// alltoallPairwise takes n-1 rounds. In round i a rank exchanges with the rank whose
// number is XORed with i if n is a power of two; otherwise it sends i ranks forward and
// receives from i ranks back.
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

// alltoallDirect sends to all other ranks concurrently, starting with the next rank, so
// that not all send to the same rank. At most Window messages are in flight in each
// direction.
//
// Sur, Jin and Panda, "Efficient and scalable all-to-all exchange for InfiniBand-based
// clusters", 2004; Mamidala and others 2007, section 2.
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

// alltoallLinear sends to all other ranks in order. It is the baseline of the other
// algorithms.
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

// alltoallInPlace exchanges blocks in place through one scratch block. In round i the
// ranks whose numbers add up to i modulo n exchange, so that each pair meets once in n
// rounds.
func alltoallInPlace(c *Call, b blocks) error {
	most := 0
	for i := range b.n {
		most = max(most, len(b.block(i)))
	}
	out := c.allocScratch(most)
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

// alltoallHybrid exchanges, in round k of n, between ranks whose numbers add up to k
// modulo n. If the network connects pairs by the same rule (package
// mpi/internal/fabric/hybrid), each round uses either connections or datagrams. It is a
// pairwise exchange that works for any number of ranks.
//
// Mamidala and others 2007, section 4.3.
func alltoallHybrid(c *Call, send, recv blocks) error {
	copyUnlessSame(recv.block(c.rank), send.block(c.rank))
	for k := range c.size {
		peer := (k - c.rank + c.size) % c.size
		if peer == c.rank {
			continue
		}
		if err := c.exchange(peer, send.block(peer), peer, recv.block(peer)); err != nil {
			return err
		}
	}
	return nil
}

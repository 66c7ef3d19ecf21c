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

// alltoallBruck forwards blocks over other ranks. In round k a rank sends the blocks
// whose remaining distance has bit k set, in one message, 2^k ranks forward: ceil(log2
// n) messages instead of n-1, each of up to n/2 blocks. Blocks have equal size.
//
// Bruck and others 1997: the "index"; Thakur, Rabenseifner and Gropp 2005.
func alltoallBruck(c *Call, send, recv blocks) error {
	n, size := c.size, len(recv.block(0))
	// Position i has a block that must go i ranks forward; at the end, a block that has
	// come i ranks.
	ahead := c.allocScratch(n * size)
	at := func(i int) []byte { return ahead[i*size:][:size] }
	copy(ahead[copy(ahead, send.blockRange(c.rank, n)):], send.blockRange(0, c.rank))
	c.observeCopies(2, n*size)

	half := n / 2 * size
	out, in := c.allocScratch(half), c.allocScratch(half)
	for d := 1; d < n; d *= 2 {
		k := 0
		for i := d; i < n; i++ {
			if i&d != 0 {
				k += copy(out[k:], at(i))
			}
		}
		c.observeCopies(k/max(1, size), k)
		if err := c.exchange((c.rank+d)%n, out[:k], (c.rank-d+n)%n, in[:k]); err != nil {
			return err
		}
		k = 0
		for i := d; i < n; i++ {
			if i&d != 0 {
				k += copy(at(i), in[k:])
			}
		}
		c.observeCopies(k/max(1, size), k)
	}
	for i := range n {
		copy(recv.block((c.rank-i+n)%n), at(i))
	}
	c.observeCopies(n, n*size)
	return nil
}

// alltoallCentral sends all blocks to rank 0, which sends each rank its blocks: 2(n-1)
// messages of n blocks of equal size. Rank 0 needs scratch memory for twice the blocks
// of all ranks. It works in place, because nothing is received before all is sent.
func alltoallCentral(c *Call, send, recv blocks) error {
	n, all := c.size, len(send.mem)
	if c.rank != 0 {
		if err := c.send(0, send.mem); err != nil {
			return err
		}
		return c.recv(0, recv.mem)
	}
	in, out := c.allocScratch(n*all), c.allocScratch(n*all)
	for r := 1; r < n; r++ {
		c.irecv(r, in[r*all:][:all])
	}
	copy(in, send.mem)
	if err := c.waitAll(); err != nil {
		return err
	}
	size := all / n
	for to := range n {
		for from := range n {
			copy(out[to*all+from*size:][:size], in[from*all+to*size:])
		}
	}
	for r := 1; r < n; r++ {
		c.isend(r, out[r*all:][:all])
	}
	copy(recv.mem, out[:all])
	return c.waitAll()
}

// alltoallRTSRTR sends without a copy. A sender announces itself (RTS); the receiver
// posts a receive for the target block and replies (RTR). Since all ranks share one
// receive queue, any message could consume a receive, so that only one may be posted at
// a time: all ranks send RTS at the start and then wait for their RTR.
//
// It is the baseline of alltoallRDMA, which needs no such serialization.
//
// Mamidala and others 2007, section 2 and figure 2.
func alltoallRTSRTR(c *Call, send, recv blocks) error {
	n := c.size
	if len(recv.block(0)) == 0 {
		return nil
	}
	q := c.Net.(SharedQueueNet)
	if err := q.OpenQueue(send.mem, recv.mem); err != nil {
		return err
	}
	copyUnlessSame(recv.block(c.rank), send.block(c.rank))
	rts := make([]Request, n) // RTS is the first message of a rank, RTR the second
	for i := 1; i < n; i++ {
		rts[i] = c.Net.Irecv((c.rank-i+n)%n, nil)
		c.sendEmpty((c.rank + i) % n)
	}
	for i := 1; i < n; i++ {
		to, from := (c.rank+i)%n, (c.rank-i+n)%n
		if err := c.waitFor(rts[i]); err != nil {
			return err
		}
		landing := q.PostShared(recv.block(from))
		c.sendEmpty(from) // RTR
		c.recvEmpty(to)
		if err := c.waitAll(); err != nil {
			return err
		}
		c.pending = append(c.pending, landing, q.SendShared(to, send.block(to)))
		if err := c.waitAll(); err != nil {
			return err
		}
	}
	return nil
}

package coll

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

	half := n / 2 * size
	out, in := c.allocScratch(half), c.allocScratch(half)
	for d := 1; d < n; d *= 2 {
		k := 0
		for i := d; i < n; i++ {
			if i&d != 0 {
				k += copy(out[k:], at(i))
			}
		}
		if err := c.exchange((c.rank+d)%n, out[:k], (c.rank-d+n)%n, in[:k]); err != nil {
			return err
		}
		k = 0
		for i := d; i < n; i++ {
			if i&d != 0 {
				k += copy(at(i), in[k:])
			}
		}
	}
	for i := range n {
		copy(recv.block((c.rank-i+n)%n), at(i))
	}
	return nil
}

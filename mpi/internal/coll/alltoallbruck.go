package coll

// alltoallBruck: pieces go by way of others. In round k every rank sends those that
// have bit k in the distance to go, in one message, 2^k ranks forward. So there are
// ceil(log2 n) messages instead of n-1, each of up to n/2 pieces. Pieces have one size.
//
// Bruck and others 1997: the "index"; Thakur, Rabenseifner and Gropp 2005.
func alltoallBruck(c *Call, send, recv blocks) error {
	n, size := c.size, len(recv.block(0))
	// Place i has a piece that is to go i ranks forward; in the end it is one that has
	// come so far.
	ahead := c.scratch(n * size)
	at := func(i int) []byte { return ahead[i*size:][:size] }
	copy(ahead[copy(ahead, send.blockRange(c.rank, n)):], send.blockRange(0, c.rank))

	half := n / 2 * size
	out, in := c.scratch(half), c.scratch(half)
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

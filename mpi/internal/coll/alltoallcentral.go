package coll

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

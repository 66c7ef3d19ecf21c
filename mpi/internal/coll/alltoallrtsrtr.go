package coll

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

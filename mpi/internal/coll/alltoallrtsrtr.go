package coll

// alltoallRTSRTR: without a copy, by sends and receives. Who has something to send
// says so (RTS); who is to receive it posts a receive for it at the place where it
// belongs, and tells the sender (RTR). With one queue for all ranks nobody knows
// whose message takes a receive, so there can be one at a time: all have said at the
// beginning that they are ready to send, and have to wait their turn.
//
// It is here to be compared with alltoallRDMA, which has the turns out of the way.
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
	rts := make([]Request, n) // of a rank it is the first message, and RTR the second
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

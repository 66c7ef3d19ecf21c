package coll

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

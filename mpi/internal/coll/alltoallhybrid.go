package coll

// alltoallHybrid: in round k, of n, the two ranks exchange whose numbers add up to k
// modulo n. So there are rounds in which all pairs are connected, and rounds in
// which none is, if that is the rule by which the network connects pairs (package
// mpi/internal/fabric/hybrid): of n ranks k rounds go by connections, the rest by datagrams.
// It is the exchange in pairs, for other numbers of ranks than powers of two as well.
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

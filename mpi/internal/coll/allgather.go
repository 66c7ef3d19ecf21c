package coll

// The algorithms of this file work on dense blocks in memory that all ranks have. The own block is
// the input. Algorithms with a root number the ranks from there.

// allgatherRing forwards, n-1 times, the block received from the previous rank to the
// next one. Only neighbors communicate. Blocks need not be dense.
//
// Thakur, Rabenseifner and Gropp 2005.
func allgatherRing(c *Call, root int, b blocks) error {
	t := c.newTree(root)
	right, left := t.rank(t.node+1), t.rank(t.node+t.n-1)
	for i := range t.n - 1 {
		out, in := (t.node-i+t.n)%t.n, (t.node-i-1+t.n)%t.n
		if err := c.exchange(right, b.block(out), left, b.block(in)); err != nil {
			return err
		}
	}
	return nil
}

// allgatherDoubling exchanges, in round k, all blocks present between ranks whose
// numbers differ in bit k: log2 n rounds, and two more if n is no power of two.
//
// Thakur, Rabenseifner and Gropp 2005.
func allgatherDoubling(c *Call, root int, b blocks) error {
	t, f := c.newTree(root), newFold(c.size)
	partner, paired := f.partner(t.node)
	if f.isFoldedOut(t.node) {
		if err := c.send(t.rank(partner), b.block(t.node)); err != nil {
			return err
		}
		return c.recv(t.rank(partner), b.blockRange(0, b.n))
	}
	if paired {
		if err := c.recv(t.rank(partner), b.block(partner)); err != nil {
			return err
		}
	}
	for id, mask := f.id(t.node), 1; mask < f.size; mask *= 2 {
		mine, theirs := id&^(mask-1), (id^mask)&^(mask-1)
		peer := t.rank(f.rank(id ^ mask))
		err := c.exchange(peer, b.blockRange(f.firstRank(mine), f.firstRank(mine+mask)), peer, b.blockRange(f.firstRank(theirs), f.firstRank(theirs+mask)))
		if err != nil {
			return err
		}
	}
	if paired {
		return c.send(t.rank(partner), b.blockRange(0, b.n))
	}
	return nil
}

// allgatherBruck receives, in round k, the blocks of the rank 2^k further on: ceil(log2
// n) rounds for any number of ranks. It needs scratch memory of the size of the result.
//
// Bruck and others, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", 1997: the "concatenation".
func allgatherBruck(c *Call, b blocks) error {
	n := c.size
	begin, ours, end := b.startOf(0), b.startOf(c.rank), b.startOf(n)
	// at returns the offset in scratch memory of the block of the rank i further on. The
	// own block is first.
	at := func(i int) int {
		if c.rank+i <= n {
			return b.startOf(c.rank+i) - ours
		}
		return end - ours + b.startOf(c.rank+i-n) - begin
	}
	all := c.allocScratch(end - begin)
	copy(all, b.block(c.rank))
	for d := 1; d < n; d *= 2 {
		count := min(d, n-d)
		to, from := (c.rank-d+n)%n, (c.rank+d)%n
		if err := c.exchange(to, all[:at(count)], from, all[at(d):at(d+count)]); err != nil {
			return err
		}
	}
	copy(b.blockRange(0, c.rank), all[copy(b.blockRange(c.rank, n), all):])
	return nil
}

// allgatherNeighbour exchanges the two most recent blocks with the two neighbors
// alternately: n/2 rounds, for even numbers of ranks.
//
// Chen and others, "Performance evaluation of allgather algorithms on terascale Linux
// cluster with Fast Ethernet", 2005.
func allgatherNeighbour(c *Call, b blocks) error {
	n, pair := c.size, c.rank&^1
	// Even ranks start with the next rank and then get the preceding pairs from the other
	// side; odd ranks do the reverse.
	peer, step := [2]int{c.rank + 1, (c.rank - 1 + n) % n}, [2]int{2, -2}
	if c.rank != pair {
		peer, step = [2]int{c.rank - 1, (c.rank + 1) % n}, [2]int{-2, 2}
	}
	if err := c.exchange(peer[0], b.block(c.rank), peer[0], b.block(c.rank^1)); err != nil {
		return err
	}
	have, get := pair, [2]int{pair, pair}
	for i := 1; i < n/2; i++ {
		k := i % 2
		get[k] = (get[k] + step[k] + n) % n
		if err := c.exchange(peer[k], b.blockRange(have, have+2), peer[k], b.blockRange(get[k], get[k]+2)); err != nil {
			return err
		}
		have = get[k]
	}
	return nil
}

// allgatherGatherBcast gathers at rank 0 and broadcasts, both over binomial trees.
func allgatherGatherBcast(c *Call, b blocks) error {
	if err := gatherTree(c, b); err != nil {
		return err
	}
	return bcastBinomial(c, 0, b.blockRange(0, b.n))
}

// allgatherLinear gathers at rank 0 and broadcasts, both linearly.
func allgatherLinear(c *Call, b blocks) error {
	if err := gatherLinear(c, 0, b.block(c.rank), b); err != nil {
		return err
	}
	return bcastLinear(c, 0, b.blockRange(0, b.n))
}

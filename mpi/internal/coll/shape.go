package coll

// A binomialTree is this rank's node in the binomial tree over all ranks, numbered from
// the root. Node v has the children v+1, v+2, v+4 ... for each trailing zero bit of v.
// The subtree of a node is a contiguous range of ranks that starts with it.
//
//	      0
//	1   2     4
//	    3   5   6
//	            7
type binomialTree struct {
	n, root int
	node    int // this rank's node; 0 is the root
}

func (c *Call) newTree(root int) binomialTree {
	return binomialTree{c.size, root, (c.rank - root + c.size) % c.size}
}

// rank returns the rank of a node.
func (t binomialTree) rank(v int) int { return (v + t.root) % t.n }

// maxDistance returns the power of two that bounds the distances to the children.
func (t binomialTree) maxDistance() int {
	if t.node != 0 {
		return t.node & -t.node
	}
	return nextPowerOfTwo(t.n)
}

// parent returns the rank of the parent.
func (t binomialTree) parent() int { return t.rank(t.node - t.maxDistance()) }

// subtreeSize returns the number of nodes of the subtree, including this one.
func (t binomialTree) subtreeSize() int { return min(t.maxDistance(), t.n-t.node) }

// childSubtreeSize returns the number of nodes of the subtree of the child at distance
// d.
func (t binomialTree) childSubtreeSize(d int) int { return min(d, t.n-t.node-d) }

// hasChild reports whether there is a child at distance d < maxDistance.
func (t binomialTree) hasChild(d int) bool { return t.node+d < t.n }

// child returns the rank of the child at distance d.
func (t binomialTree) child(d int) int { return t.rank(t.node + d) }

// nextPowerOfTwo returns the smallest power of two that is at least n.
func nextPowerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// A powerOfTwoFold reduces any number of ranks to a power of two of IDs: some pairs of
// neighbors share an ID, and one rank of the pair represents both. The other one sends
// it its data before and gets the result after. IDs are in the order of ranks, so that
// neighbors stay neighbors and the order of operands is preserved (Thakur, Rabenseifner
// and Gropp 2005).
type powerOfTwoFold struct {
	n      int // ranks
	size   int // IDs, a power of two
	folded int // IDs of two ranks
	keep   int // a rank that represents its pair; otherwise the even one does
}

func newFold(n int) powerOfTwoFold {
	size := nextPowerOfTwo(n)
	if size > n {
		size /= 2
	}
	return powerOfTwoFold{n: n, size: size, folded: n - size}
}

// firstRank returns the first rank of an ID; the ranks of id end before
// firstRank(id+1).
func (f powerOfTwoFold) firstRank(id int) int { return id + min(id, f.folded) }

// id returns the ID of a rank.
func (f powerOfTwoFold) id(rank int) int {
	if rank < 2*f.folded {
		return rank / 2
	}
	return rank - f.folded
}

// rank returns the rank that represents an ID.
func (f powerOfTwoFold) rank(id int) int {
	r := f.firstRank(id)
	if id < f.folded && f.keep == r+1 {
		return r + 1
	}
	return r
}

// partner returns the other rank of the pair, and whether there is one.
func (f powerOfTwoFold) partner(rank int) (partner int, paired bool) {
	return rank ^ 1, rank < 2*f.folded
}

// isFoldedOut reports whether another rank represents this one.
func (f powerOfTwoFold) isFoldedOut(rank int) bool { return f.rank(f.id(rank)) != rank }

package coll

// binomialTree is a rank's node in the binomial tree over all ranks, counted from the root
// on. The node of v has the nodes v+1, v+2, v+4 ... below it, as far as v ends with
// zeros, and of each the ones up to the next. So what is below a node are the
// ranks right behind it.
//
//	      0
//	1   2     4
//	    3   5   6
//	            7
type binomialTree struct {
	n, root int
	node    int // ours: 0 for the root
}

func (c *Call) newTree(root int) binomialTree {
	return binomialTree{c.size, root, (c.rank - root + c.size) % c.size}
}

// rank is the rank of a node.
func (t binomialTree) rank(v int) int { return (v + t.root) % t.n }

// maxDistance is the power of two that the distances to the nodes below are less than.
func (t binomialTree) maxDistance() int {
	if t.node != 0 {
		return t.node & -t.node
	}
	return nextPowerOfTwo(t.n)
}

// parent is the rank of the node above.
func (t binomialTree) parent() int { return t.rank(t.node - t.maxDistance()) }

// subtreeSize is the number of nodes below, and the node itself.
func (t binomialTree) subtreeSize() int { return min(t.maxDistance(), t.n-t.node) }

// childSubtreeSize is the same of the child at a distance.
func (t binomialTree) childSubtreeSize(d int) int { return min(d, t.n-t.node-d) }

// hasChild reports whether there is a child at a distance, which is less than reach.
func (t binomialTree) hasChild(d int) bool { return t.node+d < t.n }

// child is the rank of the child at a distance.
func (t binomialTree) child(d int) int { return t.rank(t.node + d) }

// nextPowerOfTwo is the smallest power of two that is not less than n.
func nextPowerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// powerOfTwoFold makes any number of ranks a power of two of ids: of the first ranks pairs
// are one id, and one of the two stands for both. The other one gives it what it
// has before, and gets what came out after. Ids are in the order of the ranks, so
// neighbours stay neighbours and no order of operands is lost (Thakur, Rabenseifner
// and Gropp 2005).
type powerOfTwoFold struct {
	n      int // ranks
	size   int // ids, a power of two
	folded int // ids that stand for two ranks
	keep   int // a rank that stands for its pair; of others the even one does
}

func newFold(n int) powerOfTwoFold {
	size := nextPowerOfTwo(n)
	if size > n {
		size /= 2
	}
	return powerOfTwoFold{n: n, size: size, folded: n - size}
}

// firstRank is the first rank that an id stands for; those of id end where id+1
// begins.
func (f powerOfTwoFold) firstRank(id int) int { return id + min(id, f.folded) }

// id is the id of a rank.
func (f powerOfTwoFold) id(rank int) int {
	if rank < 2*f.folded {
		return rank / 2
	}
	return rank - f.folded
}

// rank is the rank that stands for an id.
func (f powerOfTwoFold) rank(id int) int {
	r := f.firstRank(id)
	if id < f.folded && f.keep == r+1 {
		return r + 1
	}
	return r
}

// partner is the other rank of the pair.
func (f powerOfTwoFold) partner(rank int) (partner int, paired bool) {
	return rank ^ 1, rank < 2*f.folded
}

// isFoldedOut reports whether another rank stands for this one.
func (f powerOfTwoFold) isFoldedOut(rank int) bool { return f.rank(f.id(rank)) != rank }

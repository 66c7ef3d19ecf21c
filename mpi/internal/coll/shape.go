package coll

// tree is a rank's node in the binomial tree over all ranks, counted from the root
// on. The node of v has the nodes v+1, v+2, v+4 ... below it, as far as v ends with
// zeros, and of each the ones up to the next. So what is below a node are the
// ranks right behind it.
//
//	      0
//	1   2     4
//	    3   5   6
//	            7
type tree struct {
	n, root int
	v       int // ours: 0 for the root
}

func (c *Call) tree(root int) tree {
	return tree{c.size, root, (c.rank - root + c.size) % c.size}
}

// rank is the rank of a node.
func (t tree) rank(v int) int { return (v + t.root) % t.n }

// reach is the power of two that the distances to the nodes below are less than.
func (t tree) reach() int {
	if t.v != 0 {
		return t.v & -t.v
	}
	return ceilPower(t.n)
}

// parent is the rank of the node above.
func (t tree) parent() int { return t.rank(t.v - t.reach()) }

// below is the number of nodes below, and the node itself.
func (t tree) below() int { return min(t.reach(), t.n-t.v) }

// belowChild is the same of the child at a distance.
func (t tree) belowChild(d int) int { return min(d, t.n-t.v-d) }

// has reports whether there is a child at a distance, which is less than reach.
func (t tree) has(d int) bool { return t.v+d < t.n }

// child is the rank of the child at a distance.
func (t tree) child(d int) int { return t.rank(t.v + d) }

// ceilPower is the smallest power of two that is not less than n.
func ceilPower(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// fold makes any number of ranks a power of two of ids: of the first ranks pairs
// are one id, and one of the two stands for both. The other one gives it what it
// has before, and gets what came out after. Ids are in the order of the ranks, so
// neighbours stay neighbours and no order of operands is lost (Thakur, Rabenseifner
// and Gropp 2005).
type fold struct {
	n     int // ranks
	size  int // ids, a power of two
	pairs int // ids that stand for two ranks
	keep  int // a rank that stands for its pair; of others the even one does
}

func foldOf(n int) fold {
	size := ceilPower(n)
	if size > n {
		size /= 2
	}
	return fold{n: n, size: size, pairs: n - size}
}

// first is the first rank that an id stands for; those of id end where id+1
// begins.
func (f fold) first(id int) int { return id + min(id, f.pairs) }

// id is the id of a rank.
func (f fold) id(rank int) int {
	if rank < 2*f.pairs {
		return rank / 2
	}
	return rank - f.pairs
}

// rank is the rank that stands for an id.
func (f fold) rank(id int) int {
	r := f.first(id)
	if id < f.pairs && f.keep == r+1 {
		return r + 1
	}
	return r
}

// partner is the other rank of the pair.
func (f fold) partner(rank int) (partner int, paired bool) { return rank ^ 1, rank < 2*f.pairs }

// out reports whether another rank stands for this one.
func (f fold) out(rank int) bool { return f.rank(f.id(rank)) != rank }

package coll

// reduceBinomial reduces up a binomial tree in ceil(log2 n) rounds. For a
// non-commutative operation the tree is rooted at rank 0, whose subtrees are in the
// order of ranks, and rank 0 sends the result to the root. recv is significant only at
// the root.
//
// Thakur, Rabenseifner and Gropp 2005.
func reduceBinomial(c *Call, root int, send, recv []byte, op *Reduction) error {
	top := root
	if !op.Commutative {
		top = 0
	}
	t := c.newTree(top)
	acc := send
	switch {
	case t.node == 0 && root == top:
		acc = recv
		copyUnlessSame(acc, send)
	case t.hasChild(1) && t.maxDistance() > 1:
		acc = c.scratchCopy(send)
	}
	var in []byte
	for d := 1; d < t.maxDistance() && t.hasChild(d); d *= 2 {
		if in == nil {
			in = c.allocScratch(len(send))
		}
		if err := c.recv(t.child(d), in); err != nil {
			return err
		}
		if err := op.reduceRight(acc, in); err != nil {
			return err
		}
	}
	if t.node != 0 {
		if err := c.send(t.parent(), acc); err != nil {
			return err
		}
	}
	switch {
	case root == top:
		return nil
	case c.rank == top:
		return c.send(root, acc)
	case c.rank == root:
		return c.recv(top, recv)
	}
	return nil
}

// reduceLinear sends all vectors to the root, which combines them from the last rank to
// the first.
func reduceLinear(c *Call, root int, send, recv []byte, op *Reduction) error {
	if c.rank != root {
		return c.send(root, send)
	}
	own, in := send, c.allocScratch(len(send))
	if sameStart(send, recv) && root != c.size-1 {
		own = c.scratchCopy(send)
	}
	for i := c.size - 1; i >= 0; i-- {
		from := own
		if i != root {
			from = in
			if i == c.size-1 {
				from = recv
			}
			if err := c.recv(i, from); err != nil {
				return err
			}
		}
		if i == c.size-1 {
			copyUnlessSame(recv, from)
			continue
		}
		if err := op.reduceLeft(recv, from); err != nil {
			return err
		}
	}
	return nil
}

// reduceRabenseifner is a reduce-scatter by recursive halving, followed by a gather to
// the root. Each rank sends about twice the vector and combines it once, for any number
// of ranks. It preserves the order of ranks.
//
// Rabenseifner, "Optimization of collective reduction operations", 2004; Thakur,
// Rabenseifner and Gropp 2005.
func reduceRabenseifner(c *Call, root int, send, recv []byte, op *Reduction) error {
	f := newFold(c.size)
	f.keep = root
	if f.isFoldedOut(c.rank) {
		partner, _ := f.partner(c.rank)
		return c.send(partner, send)
	}
	acc := recv
	if c.rank == root {
		copyUnlessSame(acc, send)
	} else {
		acc = c.scratchCopy(send)
	}
	h, err := c.reduceScatterFold(f, acc, op)
	if err != nil {
		return err
	}
	for mask := f.size / 2; mask > 0; mask /= 2 {
		peer := f.rank(h.id ^ mask)
		if (h.id^f.id(root))&mask != 0 {
			return c.send(peer, h.ownRange())
		}
		if err := c.recv(peer, h.sibling(mask)); err != nil {
			return err
		}
		h.mergeSibling(mask)
	}
	return nil
}

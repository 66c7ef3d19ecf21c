package coll

// Reduce combines the send of all ranks, of equal size, at the root. recv is
// significant only at the root (MPI 4.1, section 6.9).
func (c *Call) Reduce(root int, send, recv []byte, op Reduction) error {
	if err := c.start(Reduce, root); err != nil {
		return err
	}
	if c.rank != root {
		recv = nil
	} else if len(recv) != len(send) {
		return c.argumentError(Reduce, "result of %d bytes, buffer of %d", len(send), len(recv))
	}
	return c.runReduction(Reduce, args{root: root, send: blocks{mem: send}, recv: blocks{mem: recv}, op: op})
}

// Allreduce combines the send of all ranks at all ranks (section 6.9.6).
func (c *Call) Allreduce(send, recv []byte, op Reduction) error {
	return c.runVector(Allreduce, send, recv, op)
}

// Scan combines, at each rank, the send of the ranks up to and including itself
// (section 6.11).
func (c *Call) Scan(send, recv []byte, op Reduction) error { return c.runVector(Scan, send, recv, op) }

// Exscan combines, at each rank, the send of the ranks before it. At rank 0 it does not
// change recv.
func (c *Call) Exscan(send, recv []byte, op Reduction) error {
	return c.runVector(Exscan, send, recv, op)
}

// runVector runs a reduction whose result has the same size everywhere.
func (c *Call) runVector(collective Collective, send, recv []byte, op Reduction) error {
	if err := c.start(collective, 0); err != nil {
		return err
	}
	if len(recv) != len(send) {
		return c.argumentError(collective, "result of %d bytes, buffer of %d", len(send), len(recv))
	}
	if collective != Exscan {
		copyUnlessSame(recv, send)
	}
	return c.runReduction(collective, args{send: blocks{mem: send}, recv: blocks{mem: recv}, op: op})
}

// ReduceScatter combines the send of all ranks and distributes the blocks of the
// result: counts has the sizes of all blocks in bytes, the same on all ranks (section
// 6.10). In place, recv is the start of send, the remainder of which is undefined
// afterwards.
func (c *Call) ReduceScatter(send, recv []byte, counts []int, op Reduction) error {
	if err := c.start(ReduceScatter, 0); err != nil {
		return err
	}
	if len(counts) != c.size {
		return c.argumentError(ReduceScatter, "%d counts for %d ranks", len(counts), c.size)
	}
	b := blocks{mem: send, n: c.size, parts: make([]Part, c.size)}
	at := 0
	for i, n := range counts {
		if n < 0 || n > len(send)-at || op.Size > 0 && n%op.Size != 0 {
			return c.argumentError(ReduceScatter, "count of rank %d is %d bytes, vector of %d bytes, elements of %d", i, n, len(send), op.Size)
		}
		b.parts[i] = Part{at, n}
		at += n
	}
	if at != len(send) || len(recv) != counts[c.rank] {
		return c.argumentError(ReduceScatter, "counts of %d bytes, %d for this rank, vector of %d bytes, buffer of %d",
			at, counts[c.rank], len(send), len(recv))
	}
	return c.runReduction(ReduceScatter, args{send: b, recv: blocks{mem: recv}, op: op})
}

// ReduceScatterBlock is ReduceScatter with blocks of equal size.
func (c *Call) ReduceScatterBlock(send, recv []byte, op Reduction) error {
	if err := c.start(ReduceScatterBlock, 0); err != nil {
		return err
	}
	if len(send) != c.size*len(recv) {
		return c.argumentError(ReduceScatterBlock, "vector of %d bytes, want %d for each of %d ranks", len(send), len(recv), c.size)
	}
	if op.Size > 0 && len(recv)%op.Size != 0 {
		return c.argumentError(ReduceScatterBlock, "%d bytes, want a multiple of the element size %d", len(recv), op.Size)
	}
	return c.runReduction(ReduceScatterBlock, args{send: splitUniform(send, c.size), recv: blocks{mem: recv}, op: op})
}

// runReduction checks the operation and runs the call.
func (c *Call) runReduction(collective Collective, a args) error {
	n := len(a.send.mem)
	if a.op.Reduce == nil || a.op.Size <= 0 {
		return c.argumentError(collective, "no operation")
	}
	if n%a.op.Size != 0 {
		return c.argumentError(collective, "%d bytes, want a multiple of the element size %d", n, a.op.Size)
	}
	return c.runAlgorithm(collective, n, a)
}

// A Reduction combines two vectors. It is associative.
type Reduction struct {
	// Size is the size of an element in bytes. Vectors are divided between elements
	// only.
	Size int
	// Commutative says that the order of operands is irrelevant. Otherwise operands are
	// combined in the order of ranks.
	Commutative bool
	// Predefined says that Reduce is fast and does not write to in: in may be shared
	// memory, and Reduce may be called at all ranks for all vectors.
	Predefined bool
	// Reduce replaces each element of inout by in op inout. The two have the same
	// length, are not empty and do not overlap.
	Reduce func(inout, in []byte) error
}

// reduceLeft sets acc to other op acc.
func (r *Reduction) reduceLeft(acc, other []byte) error {
	if len(acc) == 0 {
		return nil
	}
	return r.Reduce(acc, other)
}

// reduceRight sets acc to acc op other. It may overwrite other.
func (r *Reduction) reduceRight(acc, other []byte) error {
	if r.Commutative || len(acc) == 0 {
		return r.reduceLeft(acc, other)
	}
	err := r.Reduce(other, acc)
	copy(acc, other)
	return err
}

// reduceOrdered is reduceLeft if other comes from lower ranks, and reduceRight
// otherwise.
func (r *Reduction) reduceOrdered(acc, other []byte, lower bool) error {
	if lower {
		return r.reduceLeft(acc, other)
	}
	return r.reduceRight(acc, other)
}

package coll

// Reduction is how two vectors become one. It is associative.
type Reduction struct {
	// Size is the bytes of an element. Vectors are cut between elements only.
	Size int
	// Commutative says that the order of operands does not matter. If it does they
	// are combined in the order of the ranks.
	Commutative bool
	// Predefined says that Reduce is quick and does not write to in: it may be memory at
	// which others look, and be called at all ranks for all vectors.
	Predefined bool
	// Reduce makes each element of inout that of in, on the left, combined with
	// itself. The two are of one length, not empty, and do not overlap.
	Reduce func(inout, in []byte) error
}

// reduceLeft makes acc the combination of other, on the left, and itself.
func (r *Reduction) reduceLeft(acc, other []byte) error {
	if len(acc) == 0 {
		return nil
	}
	return r.Reduce(acc, other)
}

// reduceRight makes acc the combination of itself and other, on the right, whose memory
// may be used for it.
func (r *Reduction) reduceRight(acc, other []byte) error {
	if r.Commutative || len(acc) == 0 {
		return r.reduceLeft(acc, other)
	}
	err := r.Reduce(other, acc)
	copy(acc, other)
	return err
}

// reduceOrdered is left if the other operand is of lower ranks, and right if not.
func (r *Reduction) reduceOrdered(acc, other []byte, lower bool) error {
	if lower {
		return r.reduceLeft(acc, other)
	}
	return r.reduceRight(acc, other)
}

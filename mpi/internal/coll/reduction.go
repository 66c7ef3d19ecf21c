package coll

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

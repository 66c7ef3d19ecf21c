package coll

// Decide returns the default algorithm of a call, or the zero Algorithm for an unknown
// collective.
func Decide(what Collective, c Case) Algorithm {
	if int(what) >= len(algorithms) {
		return Algorithm{}
	}
	return *decideAlgorithm(what, c)
}

// Supports reports whether an algorithm can do a call.
func Supports(a Algorithm, c Case) bool { return a.supports(c) }

package coll

import (
	"errors"
	"fmt"
	"math/bits"
)

// ErrAlgorithm is a name that is none, and an algorithm that cannot do a call.
var ErrAlgorithm = errors.New("coll: algorithm")

// Algorithm is a way to do a collective.
type Algorithm struct {
	Name   string
	Source string // who described it, and where
	Needs  Needs

	run func(c *Call, a *args) error
}

// Needs is what an algorithm cannot do without.
type Needs struct {
	Even        bool // an even number of ranks
	Commutative bool // a reduction for which order does not matter
	Predefined  bool // a reduction by no function of the program

	// Network is nil, or reports whether a network has what the algorithm needs
	// besides the methods of Net. It has to be the same on all ranks.
	//
	// This is how algorithms say that they are more than messages. Such a one asserts
	// that its Net is an interface that extends Net, as Placer does.
	Network func(Net) bool

	// SharedBytes is nil, or how many bytes each rank has to show at most: the algorithm
	// needs a Board with room for them.
	SharedBytes func(Case) int
}

// Case is what is known of a call when its algorithm is chosen. It is the same on
// all ranks, so all choose the same.
type Case struct {
	Ranks int
	// Bytes is the size of the call: of Bcast, Reduce, Allreduce, Scan and Exscan the
	// vector's, of ReduceScatter and ReduceScatterBlock that of what is reduced, of
	// Allgather and Allgatherv that of what everyone gets, of Gather, Scatter and
	// Alltoall that of what one rank has for another. Of the others no rank knows
	// what the others have, and it is 0.
	Bytes       int
	Commutative bool // the reduction, if there is one
	Predefined  bool // so is this
	Processors  int  // of all ranks together; 0: one each
	Net         Net
}

// isCrowded reports whether ranks that take turns on few processors are done sooner
// if one of them is told everything and tells the others. That takes 2(n-1) messages,
// half of them, of n-1, one after the other at that one. By doubling n ranks send n lg n,
// which p processors share.
func (c Case) isCrowded() bool {
	return c.Processors > 0 && (c.Ranks-1)*c.Processors < c.Ranks*bits.Len(uint(c.Ranks-1))
}

// need is what an algorithm needs and a call has not.
type need uint8

const (
	needNone need = iota
	needEven
	needCommutative
	needPredefined
	needNetwork
	needBoard
	needSharedBytes
)

func (a *Algorithm) missing(c Case) need {
	n := &a.Needs
	switch {
	case n.Even && c.Ranks%2 != 0:
		return needEven
	case n.Commutative && !c.Commutative:
		return needCommutative
	case n.Network != nil && !n.Network(c.Net):
		return needNetwork
	case n.SharedBytes == nil:
		return needNone
	}
	switch most := sharedBytes(c.Net); {
	case n.Predefined && !c.Predefined:
		return needPredefined
	case most == 0:
		return needBoard
	case n.SharedBytes(c) > most:
		return needSharedBytes
	case c.Net.(SharedMemoryNet).Board() == nil:
		return needBoard
	}
	return needNone
}

// Validate is nil if the algorithm can do a call, and an ErrAlgorithm that says what it
// needs if not.
func (a *Algorithm) Validate(c Case) error {
	if a == nil {
		return fmt.Errorf("%w: nil", ErrAlgorithm)
	}
	switch a.missing(c) {
	case needEven:
		return fmt.Errorf("%w: %s needs an even number of ranks, not %d", ErrAlgorithm, a.Name, c.Ranks)
	case needCommutative:
		return fmt.Errorf("%w: %s needs an operation that is commutative", ErrAlgorithm, a.Name)
	case needPredefined:
		return fmt.Errorf("%w: %s needs an operation of MPI's, not one of the program", ErrAlgorithm, a.Name)
	case needNetwork:
		return fmt.Errorf("%w: %s needs more of the network than %T has", ErrAlgorithm, a.Name, c.Net)
	case needBoard:
		return fmt.Errorf("%w: %s needs memory that the ranks have in common", ErrAlgorithm, a.Name)
	case needSharedBytes:
		return fmt.Errorf("%w: %s has room for %d bytes of each rank, not %d", ErrAlgorithm, a.Name, sharedBytes(c.Net), a.Needs.SharedBytes(c))
	}
	return nil
}

// Algorithms lists the algorithms of a collective. The first can do every call.
func Algorithms(c Collective) []Algorithm {
	if c >= numCollectives {
		return nil
	}
	return append([]Algorithm(nil), algorithms[c]...)
}

// findAlgorithm is the algorithm of a name.
func findAlgorithm(what Collective, name string) (*Algorithm, error) {
	for i := range algorithms[what] {
		if a := &algorithms[what][i]; a.Name == name {
			return a, nil
		}
	}
	var choices []string
	for _, a := range algorithms[what] {
		choices = append(choices, a.Name)
	}
	return nil, fmt.Errorf("%w: there is no %q of %v: it is %s", ErrAlgorithm, name, what, joinChoices(choices))
}

package coll

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/softrnic/softrnic/internal/spelling"
)

// ErrAlgorithm is wrapped by the errors of an unknown algorithm.
var ErrAlgorithm = errors.New("coll: algorithm")

// An Algorithm is an implementation of a collective.
type Algorithm struct {
	Name   string
	Source string // publication that describes it
	Needs  Needs

	run func(c *Call, a *args) error
}

// Needs are the requirements of an algorithm.
type Needs struct {
	Even        bool // an even number of ranks
	Commutative bool // a commutative reduction
	Predefined  bool // a predefined reduction, not the program's function

	// Network, if not nil, reports whether a network has the extensions of Net that the
	// algorithm requires. The result must be the same on all ranks. The algorithm
	// asserts that its Net implements the extension, for example RDMANet.
	Network func(Net) bool

	// SharedBytes, if not nil, returns the maximum number of bytes that each rank
	// shows: the algorithm requires a Board with that capacity.
	SharedBytes func(Case) int
}

// A Case is the input of the selection of an algorithm. It is the same on all ranks, so
// that all select the same.
type Case struct {
	Ranks int
	// Bytes is the size of the call: of Bcast, Reduce, Allreduce, Scan and Exscan, of
	// the vector; of ReduceScatter and ReduceScatterBlock, of the input vector; of
	// Allgather and Allgatherv, of the result; of Gather, Scatter and Alltoall, of the
	// block that one rank has for another. It is 0 for the others, because no rank
	// knows the sizes of all blocks.
	Bytes       int
	Commutative bool // the reduction, if any
	Predefined  bool // the reduction, if any
	Processors  int  // of all ranks together; 0 is one per rank
	Net         Net
}

// isCrowded reports whether ranks that share processors are faster with a central rank:
// that takes 2(n-1) messages, half of them serialized at the central rank, against n
// log2 n messages of recursive doubling, which p processors share.
func (c Case) isCrowded() bool {
	return c.Processors > 0 && (c.Ranks-1)*c.Processors < c.Ranks*bits.Len(uint(c.Ranks-1))
}

// supports reports whether the algorithm can do a call.
func (a *Algorithm) supports(c Case) bool {
	n := &a.Needs
	switch {
	case n.Even && c.Ranks%2 != 0, n.Commutative && !c.Commutative, n.Predefined && !c.Predefined, n.Network != nil && !n.Network(c.Net):
		return false
	case n.SharedBytes == nil:
		return true
	}
	most := sharedBytes(c.Net)
	return most > 0 && n.SharedBytes(c) <= most && c.Net.(SharedMemoryNet).Board() != nil
}

// Algorithms returns the algorithms of a collective. The first can do every call.
func Algorithms(c Collective) []Algorithm {
	if c >= numCollectives {
		return nil
	}
	return append([]Algorithm(nil), algorithms[c]...)
}

// findAlgorithm returns the algorithm of a name.
func findAlgorithm(collective Collective, name string) (*Algorithm, error) {
	for i := range algorithms[collective] {
		if a := &algorithms[collective][i]; a.Name == name {
			return a, nil
		}
	}
	var choices []string
	for _, a := range algorithms[collective] {
		choices = append(choices, a.Name)
	}
	return nil, fmt.Errorf("%w: unknown algorithm %q of %v: want %s%s", ErrAlgorithm, name, collective, joinChoices(choices), spelling.Hint(name, choices...))
}

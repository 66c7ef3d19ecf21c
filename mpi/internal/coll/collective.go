package coll

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/spelling"
)

// A Collective is a collective operation (MPI 4.1, chapter 6).
type Collective uint8

// The collectives. Each is a method of Call.
const (
	Barrier Collective = iota
	Bcast
	Gather
	Gatherv
	Scatter
	Scatterv
	Allgather
	Allgatherv
	Alltoall
	Alltoallv
	Alltoallw
	Reduce
	Allreduce
	ReduceScatter
	ReduceScatterBlock
	Scan
	Exscan
	numCollectives
)

var collectiveNames = [numCollectives]string{
	"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
	"alltoall", "alltoallv", "alltoallw", "reduce", "allreduce", "reduce-scatter", "reduce-scatter-block", "scan", "exscan",
}

// String returns the collective's name in lower case.
func (c Collective) String() string {
	if c < numCollectives {
		return collectiveNames[c]
	}
	return fmt.Sprintf("Collective(%d)", uint8(c))
}

// ParseCollective returns the collective of a name as of String, or in MPI's spelling,
// for example reduce_scatter_block.
func ParseCollective(name string) (Collective, error) {
	plain := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	for c, n := range collectiveNames {
		if n == plain {
			return Collective(c), nil
		}
	}
	return 0, fmt.Errorf("%w: unknown collective %q: want %s%s", ErrAlgorithm, name, joinChoices(collectiveNames[:]), spelling.Hint(name, collectiveNames[:]...))
}

// Collectives returns all collectives.
func Collectives() []Collective {
	all := make([]Collective, numCollectives)
	for i := range all {
		all[i] = Collective(i)
	}
	return all
}

// joinChoices joins names with commas and "or".
func joinChoices(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

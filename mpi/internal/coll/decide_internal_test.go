package coll

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecisionsAreAlgorithms checks that every name in the table is an algorithm, and that the last
// rule matches all calls.
func TestDecisionsAreAlgorithms(t *testing.T) {
	for what, rules := range decisions {
		for _, r := range rules {
			_, err := findAlgorithm(Collective(what), r.name)
			require.NoError(t, err)
		}
		last := rules[len(rules)-1]
		require.Equal(t, decisionRule{name: last.name}, last, Collective(what))
	}
}

// TestDecisionsOnFewProcessors checks that the algorithms with the fewest messages are chosen if
// ranks share a processor, unless all ranks would wait for one that sends half of them.
func TestDecisionsOnFewProcessors(t *testing.T) {
	barrier := func(ranks, processors int) string {
		return Decide(Barrier, Case{Ranks: ranks, Processors: processors}).Name
	}
	for ranks, most := range map[int]int{2: 1, 3: 2, 4: 2, 8: 3, 16: 4, 64: 6, 1000: 10} {
		require.Equal(t, "linear", barrier(ranks, most), "%d ranks on %d", ranks, most)
		require.Equal(t, "dissemination", barrier(ranks, most+1), "%d ranks on %d", ranks, most+1)
	}
	require.Equal(t, "dissemination", barrier(16, 0), "one processor each")
	require.Equal(t, "dissemination", barrier(1, 1))

	few := Case{Ranks: 16, Processors: 2, Bytes: 64}
	many := Case{Ranks: 16, Processors: 16, Bytes: 64}
	for what, names := range map[Collective][2]string{
		Allgather:          {"linear", "recursive-doubling"},
		Allreduce:          {"linear", "recursive-doubling"},
		Alltoall:           {"gather-scatter", "bruck"},
		ReduceScatterBlock: {"linear", "pairwise"}, // the operation is not commutative
		Bcast:              {"binomial", "binomial"},
	} {
		require.Equal(t, names, [2]string{Decide(what, few).Name, Decide(what, many).Name}, what)
	}
	few.Bytes = 1 << 10
	require.Equal(t, "bruck", Decide(Alltoall, few).Name, "rank 0 would have much for all")
	few.Bytes = 1 << 20
	require.Equal(t, "rabenseifner", Decide(Allreduce, few).Name, "bytes are dearer than messages")
}

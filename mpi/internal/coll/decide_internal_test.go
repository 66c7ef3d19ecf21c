package coll

import (
	"math"
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

// TestLengths checks that lengths that a peer announces are limited to possible ones.
func TestLengths(t *testing.T) {
	l := make(blockLengths, 3*lengthSize)
	l.set(0, 1)
	l.set(1, math.MaxInt-3)
	l.set(2, 2)
	require.NoError(t, l.validate())
	require.Equal(t, math.MaxInt, l.sum(0, 3))
	require.Equal(t, 2, l.sum(2, 1))
	require.Equal(t, []byte(l[8:16]), l.sub(1, 1))
	l.set(2, 3)
	require.ErrorIs(t, l.validate(), ErrArgument)
	l.set(1, 0)
	l.set(2, -1)
	require.ErrorContains(t, l.validate(), "block of 18446744073709551615 bytes after 1 bytes overflows int")
}

package coll_test

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// ceilLog returns the logarithm to base 2, rounded up.
func ceilLog(n int) int { return bits.Len(uint(n - 1)) }

// floorLog returns the logarithm to base 2, rounded down.
func floorLog(n int) int { return bits.Len(uint(n)) - 1 }

// doubling returns the number of rounds of an algorithm for powers of two: two more, before and
// after, if n is none.
func doubling(n int) int {
	if n&(n-1) == 0 {
		return floorLog(n)
	}
	return floorLog(n) + 2
}

const (
	costSize     = 24 // bytes of a block, or of a vector for each rank
	costSegments = 7
)

// costs are the costs of algorithms according to the papers. A round is the time of a message of
// any length; a rank sends one at a time and receives one at a time. A count of 0 is not stated.
var costs = map[string]func(n int) (rounds, messages int){
	"barrier/dissemination": func(n int) (int, int) { return ceilLog(n), n * ceilLog(n) },
	"barrier/tree":          func(n int) (int, int) { return 2 * ceilLog(n), 2 * (n - 1) },
	"barrier/linear":        func(n int) (int, int) { return 2 * (n - 1), 2 * (n - 1) },
	"barrier/recursive-doubling": func(n int) (int, int) {
		p := 1 << floorLog(n)
		return doubling(n), p*floorLog(n) + 2*(n-p)
	},
	"bcast/binomial":         func(n int) (int, int) { return ceilLog(n), n - 1 },
	"bcast/linear":           func(n int) (int, int) { return n - 1, n - 1 },
	"bcast/scatter-ring":     func(n int) (int, int) { return ceilLog(n) + n - 1, n - 1 + n*(n-1) },
	"bcast/scatter-doubling": func(n int) (int, int) { return ceilLog(n) + doubling(n), 0 },
	"bcast/chain":            func(n int) (int, int) { return n - 2 + costSegments, (n - 1) * costSegments },
	"gather/linear":          func(n int) (int, int) { return n - 1, n - 1 },
	"gather/binomial":        func(n int) (int, int) { return ceilLog(n), n - 1 },
	"scatter/linear":         func(n int) (int, int) { return n - 1, n - 1 },
	"scatter/binomial":       func(n int) (int, int) { return ceilLog(n), n - 1 },
	"allgather/ring":         func(n int) (int, int) { return n - 1, n * (n - 1) },
	"allgather/recursive-doubling": func(n int) (int, int) {
		p := 1 << floorLog(n)
		return doubling(n), p*floorLog(n) + 2*(n-p)
	},
	"allgather/bruck":         func(n int) (int, int) { return ceilLog(n), n * ceilLog(n) },
	"allgather/neighbour":     func(n int) (int, int) { return n / 2, n * n / 2 },
	"allgather/gather-bcast":  func(n int) (int, int) { return 2 * ceilLog(n), 2 * (n - 1) },
	"allgather/linear":        func(n int) (int, int) { return 2 * (n - 1), 2 * (n - 1) },
	"alltoall/gather-scatter": func(n int) (int, int) { return 2 * (n - 1), 2 * (n - 1) },
	"alltoall/bruck":          func(n int) (int, int) { return ceilLog(n), n * ceilLog(n) },
	"alltoall/pairwise":       func(n int) (int, int) { return n - 1, n * (n - 1) },
	"alltoall/direct":         func(n int) (int, int) { return n - 1, n * (n - 1) },
	"alltoall/rdma":           func(n int) (int, int) { return 0, n*(n-1) + 2*n*ceilLog(n) },
	"alltoall/ud":             func(n int) (int, int) { return n - 1, n * (n - 1) },
	"alltoall/hybrid":         func(n int) (int, int) { return 0, n * (n - 1) },
	"alltoall/linear":         func(n int) (int, int) { return 0, n * (n - 1) },
	"reduce/binomial":         func(n int) (int, int) { return ceilLog(n), n - 1 },
	"reduce/linear":           func(n int) (int, int) { return n - 1, n - 1 },
	"reduce/rabenseifner": func(n int) (int, int) {
		p := 1 << floorLog(n)
		return doubling(n) + floorLog(n) - min(1, n-p), n - p + p*floorLog(n) + p - 1
	},
	"allreduce/recursive-doubling": func(n int) (int, int) {
		p := 1 << floorLog(n)
		return doubling(n), p*floorLog(n) + 2*(n-p)
	},
	"allreduce/rabenseifner": func(n int) (int, int) {
		p := 1 << floorLog(n)
		return doubling(n) + floorLog(n), 2*p*floorLog(n) + 2*(n-p)
	},
	"allreduce/ring":         func(n int) (int, int) { return 2 * (n - 1), 2 * n * (n - 1) },
	"allreduce/linear":       func(n int) (int, int) { return 2 * (n - 1), 2 * (n - 1) },
	"allreduce/reduce-bcast": func(n int) (int, int) { return 2 * ceilLog(n), 2 * (n - 1) },
	"reduce-scatter-block/recursive-halving": func(n int) (int, int) {
		p := 1 << floorLog(n)
		return doubling(n), p*floorLog(n) + 2*(n-p)
	},
	"reduce-scatter-block/pairwise":       func(n int) (int, int) { return n - 1, n * (n - 1) },
	"reduce-scatter-block/reduce-scatter": func(n int) (int, int) { return 2 * ceilLog(n), 2 * (n - 1) },
	"reduce-scatter-block/linear":         func(n int) (int, int) { return 2 * (n - 1), 2 * (n - 1) },
	"scan/linear":                         func(n int) (int, int) { return n - 1, n - 1 },
	"scan/recursive-doubling":             func(n int) (int, int) { return ceilLog(n), 0 },
	"exscan/linear":                       func(n int) (int, int) { return n - 1, n - 1 },
	"exscan/recursive-doubling":           func(n int) (int, int) { return ceilLog(n), 0 },
}

// measure runs an algorithm with the clock.
func measure(t *testing.T, what coll.Collective, name string, n int) *world {
	s := scenario{what: what, algorithm: name, n: n, size: costSize, window: n, segment: costSize / costSegments, op: sum}
	switch what {
	case coll.Bcast, coll.Reduce, coll.Allreduce: // one vector for all ranks
		s.size = costSize * n
		s.segment = (s.size + costSegments - 1) / costSegments
	}
	if !s.possible() {
		return nil
	}
	w := newWorld(n, nil)
	require.NoError(t, s.run(w), "%v", s)
	return w
}

// TestCosts compares the numbers of rounds and messages with the papers.
func TestCosts(t *testing.T) {
	seen := 0
	for _, what := range coll.Collectives() {
		for _, a := range coll.Algorithms(what) {
			cost, ok := costs[what.String()+"/"+a.Name]
			if !ok {
				continue
			}
			seen++
			for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 11, 16, 17} {
				w := measure(t, what, a.Name, n)
				if w == nil {
					continue
				}
				rounds, messages := cost(n)
				if rounds > 0 {
					require.Equal(t, rounds, w.rounds(), "rounds of %v by %s, %d ranks", what, a.Name, n)
				}
				if messages > 0 {
					require.Equal(t, messages, w.messages, "messages of %v by %s, %d ranks", what, a.Name, n)
				}
			}
		}
	}
	require.Equal(t, len(costs), seen)
}

// TestBytes checks the bytes that every rank sends, of a vector of m bytes and for a power of two
// of ranks.
func TestBytes(t *testing.T) {
	for _, n := range []int{2, 4, 8, 16} {
		for _, c := range []struct {
			what coll.Collective
			name string
			each int // bytes
		}{
			{coll.Allgather, "ring", (n - 1) * costSize},
			{coll.Allgather, "bruck", (n - 1) * costSize},
			{coll.Allgather, "recursive-doubling", (n - 1) * costSize},
			{coll.Allgather, "neighbour", (n - 1) * costSize},
			{coll.Alltoall, "pairwise", (n - 1) * costSize},
			{coll.Alltoall, "direct", (n - 1) * costSize},
			{coll.Alltoall, "rdma", (n-1)*costSize + floorLog(n)*8 + (n-1)*(4+len(coll.Address{}))},
			{coll.Alltoall, "bruck", n / 2 * floorLog(n) * costSize},
			{coll.Allreduce, "recursive-doubling", floorLog(n) * n * costSize * sum.Size},
			{coll.Allreduce, "rabenseifner", 2 * (n - 1) * costSize * sum.Size},
			{coll.Allreduce, "ring", 2 * (n - 1) * costSize * sum.Size},
			{coll.ReduceScatterBlock, "recursive-halving", (n - 1) * costSize * sum.Size},
			{coll.ReduceScatterBlock, "pairwise", (n - 1) * costSize * sum.Size},
		} {
			for _, r := range measure(t, c.what, c.name, n).ranks {
				require.Equal(t, c.each, r.sent, "rank %d of %d, %v by %s", r.id, n, c.what, c.name)
			}
		}
	}
}

// TestScratch checks that the scratch memory is bounded by the sizes of the call: a few vectors.
func TestScratch(t *testing.T) {
	for _, what := range coll.Collectives() {
		for _, a := range coll.Algorithms(what) {
			for _, n := range []int{5, 8, 16} {
				w := measure(t, what, a.Name, n)
				if w == nil {
					continue
				}
				vector := costSize * n
				if reducing(what) {
					vector *= sum.Size
				}
				for _, r := range w.ranks {
					if a.Name == "gather-scatter" && r.id == 0 { // holds the blocks of all ranks for all ranks, twice
						require.LessOrEqual(t, r.memory.most, 2*n*vector)
						continue
					}
					require.LessOrEqual(t, r.memory.most, 3*vector+8*n, "rank %d of %d, %v by %s", r.id, n, what, a.Name)
				}
			}
		}
	}
}

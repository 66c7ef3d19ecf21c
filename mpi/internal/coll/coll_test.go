package coll_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// reducing reports whether a collective has an operation.
func reducing(c coll.Collective) bool { return c >= coll.Reduce }

// rooted reports whether a collective has a root.
func rooted(c coll.Collective) bool {
	return c >= coll.Bcast && c <= coll.Scatterv || c == coll.Reduce
}

// TestAlgorithms checks the result of every algorithm against the definition of its collective, for
// any number of ranks, size, root and operation, and any order of messages.
func TestAlgorithms(t *testing.T) {
	few := rapid.IntRange(1, 17)
	for _, what := range coll.Collectives() {
		names := []string{""}
		for _, a := range coll.Algorithms(what) {
			names = append(names, a.Name)
		}
		for _, name := range names {
			t.Run(what.String()+"/"+name, rapid.MakeCheck(func(t *rapid.T) {
				s := scenario{
					what: what, algorithm: name,
					n:       rapid.OneOf(few, few, few, few, few, few, rapid.SampledFrom([]int{24, 31, 32, 33})).Draw(t, "n"),
					size:    rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 40)).Draw(t, "size"),
					inPlace: rapid.Bool().Draw(t, "inPlace"),
					window:  rapid.IntRange(0, 4).Draw(t, "window"),
					segment: rapid.IntRange(0, 20).Draw(t, "segment"),
					seed:    rapid.Uint64().Draw(t, "seed"),
				}
				if rooted(what) {
					s.root = rapid.IntRange(0, s.n-1).Draw(t, "root")
				}
				if reducing(what) {
					s.op = rapid.SampledFrom(operations).Draw(t, "op")
				}
				if !s.possible() {
					return
				}
				if err := s.run(newWorld(s.n, rand.New(rand.NewPCG(s.seed, 2)))); err != nil {
					t.Fatalf("%v: %v", s, err)
				}
			}))
		}
	}
}

// TestAllRanksAndRoots checks one size with all roots and several kinds of numbers of ranks.
func TestAllRanksAndRoots(t *testing.T) {
	ran := map[coll.Collective]int{}
	for _, what := range coll.Collectives() {
		for _, a := range coll.Algorithms(what) {
			for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17} {
				for root := range n {
					if root > 0 && !rooted(what) {
						break
					}
					s := scenario{what: what, algorithm: a.Name, n: n, root: root, size: n + 1, inPlace: root%2 == 1, segment: 5, seed: uint64(n)}
					ops := []operation{{}}
					if reducing(what) {
						ops = []operation{interval, sum}
					}
					for _, s.op = range ops {
						if !s.possible() {
							continue
						}
						ran[what]++
						require.NoError(t, s.run(newWorld(n, nil)), "%v", s)
					}
				}
			}
		}
	}
	for _, what := range coll.Collectives() {
		require.GreaterOrEqual(t, ran[what], 12*2, "%v", what)
	}
}

// TestManyRanks has many ranks.
func TestManyRanks(t *testing.T) {
	const n = 50
	for _, what := range coll.Collectives() {
		for _, a := range coll.Algorithms(what) {
			s := scenario{what: what, algorithm: a.Name, n: n, size: 3, segment: 2, seed: 1}
			if rooted(what) {
				s.root = 37
			}
			if reducing(what) {
				s.op = sum
			}
			require.True(t, s.possible())
			require.NoError(t, s.run(newWorld(n, rand.New(rand.NewPCG(3, 4)))), "%v", s)
		}
	}
}

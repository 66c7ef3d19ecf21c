package coll_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

func TestCollectiveNames(t *testing.T) {
	for _, c := range coll.Collectives() {
		again, err := coll.ParseCollective(c.String())
		require.NoError(t, err)
		require.Equal(t, c, again)
	}
	c, err := coll.ParseCollective("Reduce_scatter_block")
	require.NoError(t, err)
	require.Equal(t, coll.ReduceScatterBlock, c)
	_, err = coll.ParseCollective("allredce")
	require.ErrorIs(t, err, coll.ErrAlgorithm)
	require.ErrorContains(t, err, `unknown collective "allredce": want barrier, bcast, gather,`)
	require.ErrorContains(t, err, "scan or exscan")
	require.Equal(t, "Collective(99)", coll.Collective(99).String())
	require.Empty(t, coll.Algorithms(99))
}

// TestAlgorithmNames checks that names are unique, and that the first algorithm of each collective
// supports all calls.
func TestAlgorithmNames(t *testing.T) {
	for _, what := range coll.Collectives() {
		all := coll.Algorithms(what)
		require.NotEmpty(t, all, what)
		names := map[string]bool{}
		for _, a := range all {
			require.False(t, names[a.Name], "%v %s", what, a.Name)
			names[a.Name] = true
		}
		require.Zero(t, all[0].Needs.Even || all[0].Needs.Commutative || all[0].Needs.Network != nil, what)
		all[0].Name = "changed"
		require.NotEqual(t, "changed", coll.Algorithms(what)[0].Name)
	}
}

func TestChoices(t *testing.T) {
	ch, err := coll.ParseChoices(" allreduce=ring, reduce_scatter=pairwise,,bcast=chain")
	require.NoError(t, err)
	require.Equal(t, coll.Choices{coll.Allreduce: "ring", coll.ReduceScatter: "pairwise", coll.Bcast: "chain"}, ch)
	require.Equal(t, "bcast=chain,allreduce=ring,reduce-scatter=pairwise", ch.String())
	ch, err = coll.ParseChoices("")
	require.NoError(t, err)
	require.Empty(t, ch.String())

	for list, want := range map[string]string{
		"allreduce":      `malformed choice "allreduce": want COLLECTIVE=ALGORITHM`,
		"allredce=ring":  `unknown collective "allredce"`,
		"allreduce=rign": `unknown algorithm "rign" of allreduce: want recursive-doubling, rabenseifner, ring, reduce-bcast, linear, shared or shared-parts`,
	} {
		_, err := coll.ParseChoices(list)
		require.ErrorIs(t, err, coll.ErrAlgorithm)
		require.ErrorContains(t, err, want)
	}

	w := newWorld(1, nil)
	err = w.run(func(r *rank) error { return r.call(coll.Choices{coll.Barrier: "tee"}).Barrier() })
	require.ErrorContains(t, err, `unknown algorithm "tee" of barrier: want dissemination, tree, recursive-doubling, linear or shared`)
}

// TestChosenAlgorithms checks that the chosen algorithm is used unless it does not support the call.
func TestChosenAlgorithms(t *testing.T) {
	const n = 6
	messages := func(what coll.Collective, name string, n int, op operation) int {
		w := newWorld(n, nil)
		require.NoError(t, scenario{what: what, algorithm: name, n: n, size: 60, op: op}.run(w))
		return w.messages
	}
	require.Equal(t, n*(n-1)*2, messages(coll.Allreduce, "ring", n, sum))
	require.Equal(t, 2*(n-1), messages(coll.Allreduce, "reduce-bcast", n, sum))
	require.Equal(t, messages(coll.Allreduce, "", n, product), messages(coll.Allreduce, "ring", n, product), "not commutative")
	require.Equal(t, n*n/2, messages(coll.Allgather, "neighbour", n, operation{}))
	require.Equal(t, messages(coll.Allgather, "", 5, operation{}), messages(coll.Allgather, "neighbour", 5, operation{}), "odd")
}

// TestAlgorithmNeeds checks the requirements of algorithms.
func TestAlgorithmNeeds(t *testing.T) {
	type writer interface {
		coll.Net
		Write(to int, b []byte) coll.Request
	}
	extended := func(n coll.Net) bool { _, ok := n.(writer); return ok }
	for _, x := range []struct {
		needs   coll.Needs
		yes, no coll.Case
	}{
		{coll.Needs{Even: true}, coll.Case{Ranks: 4}, coll.Case{Ranks: 5}},
		{coll.Needs{Commutative: true}, coll.Case{Commutative: true}, coll.Case{}},
		{coll.Needs{Predefined: true}, coll.Case{Predefined: true}, coll.Case{}},
		{coll.Needs{Network: extended}, coll.Case{Net: writes{}}, coll.Case{Net: &rank{}}},
	} {
		a := coll.Algorithm{Needs: x.needs}
		require.True(t, coll.Supports(a, x.yes))
		require.False(t, coll.Supports(a, x.no))
	}
}

type writes struct{ coll.Net }

func (writes) Write(int, []byte) coll.Request { return nil }

// TestDecide checks the default algorithms at the limits of the table.
func TestDecide(t *testing.T) {
	const commutative = true
	for _, c := range []struct {
		what        coll.Collective
		ranks, size int
		commutative bool
		want        string
	}{
		{coll.Barrier, 9, 0, false, "dissemination"},
		{coll.Bcast, 64, 12 << 10, false, "binomial"},
		{coll.Bcast, 64, 12<<10 + 1, false, "scatter-doubling"},
		{coll.Bcast, 63, 12<<10 + 1, false, "scatter-ring"},
		{coll.Bcast, 64, 512<<10 + 1, false, "scatter-ring"},
		{coll.Bcast, 7, 512<<10 + 1, false, "binomial"},
		{coll.Alltoall, 64, 256, false, "bruck"},
		{coll.Alltoall, 64, 257, false, "direct"},
		{coll.Alltoall, 7, 1, false, "direct"},
		{coll.Alltoall, 64, 64<<10 + 1, false, "pairwise"},
		{coll.Alltoallw, 64, 0, false, "direct"},
		{coll.Allgather, 64, 1, false, "recursive-doubling"},
		{coll.Allgatherv, 63, 80 << 10, false, "bruck"},
		{coll.Allgather, 63, 80<<10 + 1, false, "ring"},
		{coll.Allreduce, 5, 2 << 10, commutative, "recursive-doubling"},
		{coll.Allreduce, 5, 2<<10 + 1, false, "rabenseifner"},
		{coll.ReduceScatter, 5, 100, commutative, "recursive-halving"},
		{coll.ReduceScatter, 5, 100, false, "pairwise"},
		{coll.Scan, 5, 100, false, "recursive-doubling"},
	} {
		got := coll.Decide(c.what, coll.Case{Ranks: c.ranks, Bytes: c.size, Commutative: c.commutative})
		require.Equal(t, c.want, got.Name, "%v, %d ranks, %d bytes", c.what, c.ranks, c.size)
	}
	// The default algorithm supports every case.
	for _, what := range coll.Collectives() {
		for ranks := 1; ranks < 20; ranks++ {
			for size := 0; size < 22; size++ {
				for _, comm := range []bool{false, true} {
					c := coll.Case{Ranks: ranks, Bytes: 1 << size, Commutative: comm}
					a := coll.Decide(what, c)
					require.True(t, coll.Supports(a, c))
				}
			}
		}
	}
}

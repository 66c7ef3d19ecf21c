package mpi_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// datagrams are options with Check over UD.
var datagrams = mpi.Options{Net: mpi.UD, Check: true, NoShared: true}

func TestPingPongUD(t *testing.T) { pingPong(t, mpi.Options{Net: mpi.UD}) }

func TestCollectivesUD(t *testing.T) {
	for _, n := range []int{2, 5} {
		job(t, n, datagrams, func(w mpi.World) error {
			require.NoError(t, everyCollective(w.Comm, w.Rank(), n, trials(n)))
			require.NotZero(t, w.Stats().Datagrams, "they went by datagrams")
			return nil
		})
	}
}

// programOfAllCalls is a program with all calls.
func programOfAllCalls(n int) (list []step) {
	for i, name := range append(slices.Clone(everyName), "messages", "split", "messages") {
		list = append(list, step{name: name, form: i % 3, on: i, t: trial{n: []int{3, 2000}[i%2], strided: i%3 == 1, root: i % n}, colors: []int{0, 1, 1, 0}})
	}
	return list
}

// TestImpairedUD drops 5 % of the datagrams, duplicates and delays others, by a seed.
func TestImpairedUD(t *testing.T) {
	const n, seed = 4, 5
	t.Logf("seed %d", seed)
	open, faults := impaired(fmt.Sprintf("loss 5%% duplicate 2%% delay 200us reorder 95%% seed %d", seed))
	var sum sync.Map
	jobOn(t, open, n, datagrams, func(w mpi.World) error {
		for range 2 {
			require.NoError(t, run(w, programOfAllCalls(n)))
		}
		for what, n := range w.Stats().All() {
			if n > 0 {
				sum.Store(what, n)
			}
		}
		return w.Barrier()
	})
	for _, what := range []string{"retransmitted", "probes", "nacks", "out_of_order", "dropped_duplicate"} {
		_, some := sum.Load(what)
		require.True(t, some, "no rank has: %s", what)
	}
	require.NotZero(t, faults().Lost)
	require.NotZero(t, faults().Delayed)
}

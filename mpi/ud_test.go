package mpi_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
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

// TestDatagramMemory checks that an idle rank over datagrams takes little memory, and that
// receive buffers are added in a burst.
func TestDatagramMemory(t *testing.T) {
	const n, burst = 8, 16
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var sent sync.WaitGroup
	check := func(w mpi.World, stage string, most uint64) {
		require.NoError(t, w.Barrier())
		if w.Rank() == 0 {
			now := heap()
			now = (now - min(now, before)) / n
			t.Logf("%s: %d bytes a rank, %d receives", stage, now, w.Stats().ReceiveBuffers)
			if !racesync.Enabled {
				require.LessOrEqual(t, now, most, stage)
			}
		}
		require.NoError(t, w.Barrier())
	}
	job(t, n, mpi.Options{Net: mpi.UD, NoShared: true}, func(w mpi.World) error {
		check(w, "idle", 3<<19+n<<10)
		b := make([]byte, n)
		require.NoError(t, w.Alltoall(mpi.Bytes(b), mpi.Bytes(make([]byte, n))))
		check(w, "after an alltoall of 1 byte", 3<<19+n<<10)
		require.EqualValues(t, 64, w.Stats().ReceiveBuffers)
		// A burst is repeated if rank 0 received it with its first buffers.
		for grown := []byte{0}; grown[0] == 0; {
			if w.Rank() == 0 {
				sent.Add(n - 1)
			}
			require.NoError(t, w.Barrier())
			if w.Rank() > 0 {
				for range burst {
					require.NoError(t, w.Send(mpi.Bytes(make([]byte, 7000)), 0, 1))
				}
				sent.Done()
			} else {
				sent.Wait() // it computes
				for range burst * (n - 1) {
					_, err := w.Recv(mpi.Bytes(make([]byte, 7000)), mpi.AnySource, 1)
					require.NoError(t, err)
				}
				if w.Stats().ReceiveBuffers > 64 {
					grown[0] = 1
				}
			}
			require.NoError(t, w.Bcast(mpi.Bytes(grown), 0))
		}
		check(w, "after a burst", 12<<20)
		return nil
	})
}

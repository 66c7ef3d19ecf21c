package cluster_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi"
)

// runRanks runs a program on the ranks of a job and returns the virtual times that it reports.
func runRanks(t *testing.T, o cluster.Options, m mpi.Options, program func(w mpi.World) error) *cluster.Cluster {
	t.Helper()
	c := cluster.New(o)
	require.NoError(t, c.Run(func(h *cluster.Host) error {
		m := m
		m.Manager = h.Manager()
		w, err := mpi.Init(h.OpenDevice, m)
		if err != nil {
			return err
		}
		if err := program(w); err != nil {
			return err
		}
		return w.Finalize()
	}))
	return c
}

// pingPong returns the time of a message of 8 bytes between two ranks.
func pingPong(t *testing.T, seed uint64, net mpi.Net, costs cluster.Costs) (took time.Duration) {
	const rounds = 10
	runRanks(t, cluster.Options{Seed: seed, Hosts: 2, Costs: costs}, mpi.Options{Net: net}, func(w mpi.World) error {
		if err := w.Barrier(); err != nil {
			return err
		}
		b := mpi.Of(make([]byte, 8))
		began := vtime.Now()
		for range rounds {
			for sender := range 2 {
				var err error
				if w.Rank() == sender {
					err = w.Send(b, 1-sender, 0)
				} else {
					_, err = w.Recv(b, sender, 0)
				}
				if err != nil {
					return err
				}
			}
		}
		if w.Rank() == 0 {
			took = vtime.Since(began) / (2 * rounds)
		}
		return nil
	})
	return took
}

// TestPingPong checks that a message takes the latency of the network, and that a seed reproduces
// a run.
func TestPingPong(t *testing.T) {
	for _, net := range []mpi.Net{mpi.UD, mpi.RDMA, mpi.Hybrid} {
		took := pingPong(t, 1, net, cluster.Costs{})
		require.Equal(t, time.Microsecond, took, "net %v", net)
		require.Equal(t, took, pingPong(t, 1, net, cluster.Costs{}))
	}
}

// TestTestBeds checks that a message of MPI takes the times that the papers publish, within 8 %,
// which headers take.
func TestTestBeds(t *testing.T) {
	// RCUD's nodes by Liu and others 2005, ACP's network and twice Match, MVAPICH2-SR over iWARP.
	published := map[string]time.Duration{"ppopp2007": 4100, "acp": 1500 + 200, "iwarp2007": 8430}
	for _, bed := range cluster.TestBeds {
		took := pingPong(t, 1, mpi.RDMA, bed.Costs)
		require.InEpsilon(t, published[bed.Name], took, 0.08, "%s: %v", bed.Name, took)
	}
	require.Len(t, cluster.TestBeds, len(published))
}

// TestSeed checks that a seed reproduces a run of 100 ranks to the nanosecond and in the number of
// its steps, with one and with several processors.
func TestSeed(t *testing.T) {
	run := func(processors int, net mpi.Net) (end time.Duration, turns uint64) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		o := mpi.Options{Net: net, UD: mpi.UDOptions{Receives: 64, Packets: 64}, RDMA: mpi.RDMAOptions{Receives: 8, Sends: 8}}
		c := runRanks(t, cluster.Options{Seed: 1, Hosts: 100, Costs: cluster.ChelsioT3}, o, func(w mpi.World) error {
			sum := []int64{0}
			for range 2 {
				if err := w.Allreduce(mpi.Of([]int64{int64(w.Rank())}), mpi.Of(sum), mpi.Sum); err != nil {
					return err
				}
			}
			require.EqualValues(t, 99*100/2, sum[0])
			return nil
		})
		return c.Now(), c.RunCount()
	}
	for _, net := range []mpi.Net{mpi.UD, mpi.RDMA} {
		end, turns := run(1, net)
		for _, processors := range []int{1, 4} {
			again, count := run(processors, net)
			require.Equal(t, end, again, "net %v", net)
			require.Equal(t, turns, count, "net %v", net)
		}
	}
}

// TestMemory checks that a rank over UD, with its adapter and its simulation, takes less than
// 128 KiB after barriers. The race detector takes a tenth more.
func TestMemory(t *testing.T) {
	const ranks = 512
	most := uint64(128 << 10)
	if racesync.Enabled {
		most += most / 8
	}
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before, after, arrived := memory(), uint64(0), 0
	o := mpi.Options{Net: mpi.UD, UD: mpi.UDOptions{Receives: 64, Packets: 64}}
	runRanks(t, cluster.Options{Seed: 1, Hosts: ranks, Costs: cluster.InfiniHost}, o, func(w mpi.World) error {
		for range 3 {
			if err := w.Barrier(); err != nil {
				return err
			}
		}
		if arrived++; arrived == ranks {
			after = memory()
		}
		return w.Barrier()
	})
	t.Logf("%d bytes a rank", (after-before)/ranks)
	require.Less(t, (after-before)/ranks, most)
}

// TestBarrierGrows checks that a barrier takes a message for each doubling of the ranks
// (dissemination), and no connection or lookup after the first.
func TestBarrierGrows(t *testing.T) {
	sizes := map[int]time.Duration{2: 1, 3: 2, 16: 4, 61: 6, 256: 8, 1024: 10}
	for ranks, rounds := range sizes {
		if ranks > 256 && testing.Short() {
			continue
		}
		var took time.Duration
		o := mpi.Options{Net: mpi.UD, UD: mpi.UDOptions{Receives: 64, Packets: 64}}
		runRanks(t, cluster.Options{Seed: 1, Hosts: ranks}, o, func(w mpi.World) error {
			if err := w.Barrier(); err != nil {
				return err
			}
			began := vtime.Now()
			err := w.Barrier()
			took = max(took, vtime.Since(began))
			return err
		})
		require.Equal(t, rounds*time.Microsecond, took, "%d ranks", ranks)
	}
}

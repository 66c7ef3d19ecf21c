package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cluster"
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
func pingPong(t *testing.T, seed uint64, net mpi.Net) (took time.Duration) {
	const rounds = 10
	runRanks(t, cluster.Options{Seed: seed, Hosts: 2}, mpi.Options{Net: net}, func(w mpi.World) error {
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
		took := pingPong(t, 1, net)
		require.Equal(t, time.Microsecond, took, "net %v", net)
		require.Equal(t, took, pingPong(t, 1, net))
	}
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

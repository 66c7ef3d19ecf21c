package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi"
)

// alltoallTime returns the virtual time of an alltoall of blocks of 8 bytes, and checks its result.
func alltoallTime(t *testing.T, ranks int, costs cluster.Costs, net mpi.Net, algorithm string) (took time.Duration) {
	const size, warmUp, calls = 8, 2, 4
	o := mpi.Options{Net: net, RCLimit: ranks / 4, Algorithms: map[string]string{"alltoall": algorithm}}
	runRanks(t, cluster.Options{Seed: 1, Hosts: ranks, Costs: costs}, o, func(w mpi.World) error {
		send, recv := make([]byte, ranks*size), make([]byte, ranks*size)
		for to := range ranks {
			send[to*size], send[to*size+1] = byte(w.Rank()), byte(to)
		}
		var began time.Time
		for i := range warmUp + calls {
			if i == warmUp {
				if err := w.Barrier(); err != nil {
					return err
				}
				began = vtime.Now()
			}
			if err := w.Alltoall(mpi.Bytes(send), mpi.Bytes(recv)); err != nil {
				return err
			}
		}
		took = max(took, vtime.Since(began)/calls)
		for from := range ranks {
			require.Equal(t, []byte{byte(from), byte(w.Rank())}, recv[from*size:][:2])
		}
		return nil
	})
	return took
}

// TestPaperAlltoall checks the ratios of figure 9 of the PPoPP 2007 paper with the costs of its
// hosts, and that each goes without its cause.
func TestPaperAlltoall(t *testing.T) {
	ratios := func(ranks int, costs cluster.Costs) (overBruck, overRC float64) {
		ud := alltoallTime(t, ranks, costs, mpi.UD, "ud")
		bruck := alltoallTime(t, ranks, costs, mpi.RDMA, "bruck")
		direct := alltoallTime(t, ranks, costs, mpi.RDMA, "direct")
		t.Logf("%d ranks: UD %v, Bruck %v, direct over RC %v", ranks, ud, bruck, direct)
		return float64(ud) / float64(bruck), float64(ud) / float64(direct)
	}
	counts := []int{32, 61}
	if testing.Short() {
		counts = counts[:1]
	}
	for _, ranks := range counts {
		overBruck, overRC := ratios(ranks, cluster.InfiniHost)
		require.InDelta(t, 0.62, overBruck, 0.1, "%d ranks", ranks)
		require.InDelta(t, 0.5, overRC, 0.1, "%d ranks", ranks)
	}
	cached := cluster.InfiniHost
	cached.Contexts, cached.ContextMiss = 0, 0
	_, overRC := ratios(32, cached)
	require.Greater(t, overRC, 0.75, "contexts are all cached")
	plain := cluster.InfiniHost
	plain.CopyBlock = 0
	overBruck, _ := ratios(32, plain)
	require.Greater(t, overBruck, 1.0, "blocks are copied as one")
}

// TestAlltoalls runs the algorithms that need connections, writes or both transports.
func TestAlltoalls(t *testing.T) {
	for _, v := range []struct {
		net       mpi.Net
		algorithm string
	}{{mpi.RDMA, "rdma"}, {mpi.RDMA, "pairwise"}, {mpi.RDMA, "rtsrtr"}, {mpi.Hybrid, "hybrid"}} {
		took := alltoallTime(t, 16, cluster.InfiniHost, v.net, v.algorithm)
		require.NotZero(t, took)
		require.Equal(t, took, alltoallTime(t, 16, cluster.InfiniHost, v.net, v.algorithm), "%s: a seed is one run", v.algorithm)
	}
}

package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi"
)

// ringTime returns the virtual time of a message from each rank to the next, one after the other, of
// ranks that share a processor.
func ringTime(t *testing.T, ranks int, spin time.Duration, costs cluster.Costs) (took time.Duration) {
	const calls = 10
	costs.Latency, costs.Software = 1, true
	runRanks(t, cluster.Options{Seed: 1, Hosts: ranks, Costs: costs, Processors: 1, Spin: spin}, mpi.Options{Net: mpi.RDMA}, func(w mpi.World) error {
		b := mpi.Of(make([]byte, 8))
		var began time.Time
		for i := range calls + 2 {
			if i == 2 {
				began = vtime.Now()
			}
			if w.Rank() == 0 {
				if err := w.Send(b, 1, 0); err != nil {
					return err
				}
			}
			if _, err := w.Recv(b, (w.Rank()+ranks-1)%ranks, 0); err != nil {
				return err
			}
			if w.Rank() > 0 {
				if err := w.Send(b, (w.Rank()+1)%ranks, 0); err != nil {
					return err
				}
			}
		}
		if w.Rank() == 0 {
			took = vtime.Since(began) / calls
		}
		return nil
	})
	return took
}

// TestSharedProcessor checks that the scheduling of hosts that share a processor has its costs.
func TestSharedProcessor(t *testing.T) {
	const us = time.Microsecond
	for _, ranks := range []int{2, 8} {
		switched := ringTime(t, ranks, 0, cluster.Costs{Switch: 3 * us}) // sched.AnotherRan
		require.GreaterOrEqual(t, switched, time.Duration(ranks)*3*us, "%d ranks: each message continues a host", ranks)
		require.Less(t, ringTime(t, ranks, -1, cluster.Costs{Switch: 3 * us}), us, "%d ranks: sleepers do not yield", ranks)
		woken := ringTime(t, ranks, -1, cluster.Costs{Wake: us})
		require.GreaterOrEqual(t, woken, time.Duration(ranks)*us, "%d ranks: each message wakes a host", ranks)
		require.Equal(t, woken, ringTime(t, ranks, -1, cluster.Costs{Wake: us}), "%d ranks: a seed is one run", ranks)
	}
	cold := ringTime(t, 8, -1, cluster.Costs{Wake: us, Cold: us})
	require.Greater(t, cold, ringTime(t, 8, -1, cluster.Costs{Wake: us}), "other hosts have run since")
	long := cluster.Costs{Wake: us, LongSleep: 3 * us, Reacquire: us}
	reacquired := ringTime(t, 8, -1, long)
	require.Greater(t, reacquired, ringTime(t, 8, -1, cluster.Costs{Wake: us}), "hosts sleep for 7 us")
	long.MonitorTick = us / 10
	require.Greater(t, ringTime(t, 8, -1, long), reacquired, "monitors run")
}

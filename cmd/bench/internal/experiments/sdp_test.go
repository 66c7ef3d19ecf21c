package experiments

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

func TestProgressVerdict(t *testing.T) {
	good, bad := progressRun{run: &run{}}, progressRun{run: &run{}}
	for _, c := range []struct{ nic, rdma, credit float64 }{{1, 1, 1}, {1, 1.5, 1.2}} {
		amount := time.Duration(len(good.amounts)) * 2 * time.Millisecond
		good.addAmount(amount, []float64{c.nic}, []float64{c.rdma}, []float64{c.credit})
		bad.addAmount(amount, []float64{c.rdma}, []float64{c.nic}, []float64{c.credit})
	}
	good.compareModes()
	bad.compareModes()
	requireVerdict(t, bench.Verdict{Holds: true, Reason: "sdp-rdma over sdp-credit at 2ms 1.25 (at least 1.00), " +
		"sdp-nic over the better of the others at 0s 1.00 (at most 1.10), " +
		"sdp-rdma over sdp-nic changes from 1.00 at 0s to 1.50 at 2ms"}, good.makeVerdict())
	require.False(t, bad.makeVerdict().Holds)
}

func TestZeroCopyThreshold(t *testing.T) {
	sizes := []int{1, 2, 4, 8}
	for _, c := range []struct {
		gains []float64
		from  int
		pays  bool
	}{
		{[]float64{0.5, 0.9, 1, 2}, 4, true},
		{[]float64{2, 2, 2, 2}, 1, true},
		{[]float64{2, 0.99, 2, 2}, 4, true},
		{[]float64{2, 2, 2, 0.9}, 0, false},
	} {
		from, pays := zeroCopyThreshold(sizes, c.gains)
		require.Equal(t, c.pays, pays, "%v", c.gains)
		require.Equal(t, c.from, from, "%v", c.gains)
	}
}

func TestExtreme(t *testing.T) {
	var most, least extreme
	for i, v := range []float64{-3, 5, -7} {
		most.keepMax(v, "at %d", i)
		least.keepMin(v, "at %d", i)
	}
	require.Equal(t, extreme{5, "at 1", true}, most)
	require.Equal(t, extreme{-7, "at 2", true}, least)
}

func TestLargerOverSmaller(t *testing.T) {
	require.InDelta(t, 2, largerOverSmaller([]float64{1, 1}, []float64{2, 2}), 1e-9)
	require.InDelta(t, 2, largerOverSmaller([]float64{2, 2}, []float64{1, 1}), 1e-9)
}

func TestZeroCopyShare(t *testing.T) {
	require.Zero(t, sdpbench.Flow{}.ZeroCopyPercent())
	require.InDelta(t, 50, sdpbench.Flow{Bytes: 10, ZeroCopy: 5}.ZeroCopyPercent(), 1e-9)
}

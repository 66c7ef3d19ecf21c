package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// The application experiments include all flow control modes, and TCP as the baseline.
func TestApplicationExperiments(t *testing.T) {
	for _, name := range []string{"dc-microscope", "dc-isosurface"} {
		t.Run(name, func(t *testing.T) {
			smallRun{
				name: name,
				long: true,
				set:  bench.Settings{"sizes": "100000,256KiB", "rounds": "2"},
				units: map[string][]string{
					milliseconds:    {"tcp", "sdp-nic", "sdp-rdma", "sdp-credit"},
					unitsPerMessage: {"sdp-nic", "sdp-rdma", "sdp-credit"},
				},
			}.check(t)
		})
	}
}

func TestApplicationVerdict(t *testing.T) {
	good, slow, apart := appEvaluation{limit: 0.9}, appEvaluation{limit: 0.9}, appEvaluation{limit: 0.9}
	for i, size := range []int{100000, 2 << 20} {
		credit := []float64{100 + float64(i)}
		good.addSize(size, []float64{80 + float64(5*i)}, []float64{84}, credit)
		slow.addSize(size, []float64{80 + float64(15*i)}, []float64{80 + float64(15*i)}, credit)
		apart.addSize(size, []float64{60 + float64(10*i)}, []float64{70}, credit)
	}
	requireVerdict(t, bench.Verdict{Holds: true, Reason: "sdp-nic over sdp-credit at worst with 2 MiB 0.84 (at most 0.90), " +
		"sdp-rdma over sdp-credit at worst with 97.66 KiB 0.84 (at most 0.90), " +
		"the slower of sdp-nic and sdp-rdma over the other at worst with 97.66 KiB 1.05 (at most 1.10)"}, good.makeVerdict())
	requireVerdict(t, bench.Verdict{Reason: "NOT sdp-nic over sdp-credit at worst with 2 MiB 0.94 (at most 0.90), " +
		"NOT sdp-rdma over sdp-credit at worst with 2 MiB 0.94 (at most 0.90), " +
		"the slower of sdp-nic and sdp-rdma over the other at worst with 97.66 KiB 1.00 (at most 1.10)"}, slow.makeVerdict())
	require.False(t, apart.makeVerdict().Holds)
}

package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/measure"
	"github.com/softrnic/softrnic/internal/bench/mpibench"
)

// MPI over TCP stands beside MPI over RDMA in every experiment.
func TestMPIExperiments(t *testing.T) {
	for _, c := range []smallRun{
		{
			name:  "mpi-latency",
			set:   bench.Settings{"sizes": "8,5000", "iters": "30", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"mpi-tcp", "mpi-fast", "mpi-rdma", "rc-write", "tcp"}},
		},
		{
			name:  "mpi-bandwidth",
			set:   bench.Settings{"sizes": "1KiB,64KiB", "windows": "2", "rounds": "2", "time": "5ms"},
			units: map[string][]string{measure.MegabytesPerSec: {"mpi-tcp", "mpi-fast", "mpi-rdma", "rc-write", "tcp"}},
		},
		{
			name:  "imb-allreduce",
			set:   bench.Settings{"ranks": "4,2", "iters": "10", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"mpi-tcp", "mpi-rdma"}},
		},
		{
			name:  "imb-allgather",
			set:   bench.Settings{"ranks": "3", "iters": "10", "rounds": "2", "size": "1000"},
			units: map[string][]string{measure.Microseconds: {"mpi-tcp", "mpi-rdma"}},
		},
		{
			name:  "imb-barrier",
			set:   bench.Settings{"ranks": "4", "iters": "10", "rounds": "2", "over": "rdma,fast"},
			units: map[string][]string{measure.Microseconds: {"mpi-tcp", "mpi-rdma", "mpi-fast"}},
		},
		{
			name:  "nas-is",
			set:   bench.Settings{"ranks": "2", "class": "S", "rounds": "2"},
			units: map[string][]string{operations: {"mpi-tcp", "mpi-rdma"}},
		},
		{
			name:  "nas-cg",
			set:   bench.Settings{"ranks": "2", "class": "S", "rounds": "2"},
			units: map[string][]string{operations: {"mpi-tcp", "mpi-rdma"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.long = c.name != "mpi-latency" && c.name != "nas-is"
			c.check(t)
		})
	}
}

func TestJudgePeaks(t *testing.T) {
	all := jobs{{Config: mpibench.Config{Over: mpibench.TCP}}, {Config: mpibench.Config{Over: mpibench.Fast}}, {Config: mpibench.Config{Over: mpibench.RDMA}}}
	require.Equal(t, bench.Verdict{Holds: true, Why: "the peak of mpi-fast over that of mpi-tcp 1.40 (at least 1.37), " +
		"the peak of mpi-rdma over that of mpi-tcp 1.50 (at least 1.37), the two peaks are apart by 1.07 (at most 1.10)"}, judgePeaks(all, []float64{100, 140, 150}))
	require.False(t, judgePeaks(all, []float64{100, 140, 190}).Holds)
	require.False(t, judgePeaks(all[:2], []float64{100, 136}).Holds)
}

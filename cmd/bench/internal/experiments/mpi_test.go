package experiments

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
)

func TestEvaluatePeaks(t *testing.T) {
	all := jobs{{Config: mpibench.Config{Transport: mpibench.TCP}}, {Config: mpibench.Config{Transport: mpibench.Fast}}, {Config: mpibench.Config{Transport: mpibench.RDMA}}}
	verdict := func(all jobs, peaks ...float64) bench.Verdict {
		var j evaluation
		evaluatePeaks(&j, all, peaks)
		return j.makeVerdict()
	}
	requireVerdict(t, bench.Verdict{Holds: true, Reason: "peak of mpi-fast over that of mpi-tcp 1.40 (at least 1.37), " +
		"peak of mpi-rdma over that of mpi-tcp 1.50 (at least 1.37), larger peak over the smaller 1.07 (at most 1.10)"}, verdict(all, 100, 140, 150))
	require.False(t, verdict(all, 100, 140, 190).Holds)
	require.False(t, verdict(all[:2], 100, 136).Holds)
}

// figures returns samples of one round.
func figures(of map[string]float64) (samples []bench.Sample) {
	for series, y := range of {
		samples = append(samples, bench.Sample{Series: series, Figures: []float64{y}})
	}
	return samples
}

func TestEvaluateLatency(t *testing.T) {
	good := map[string]float64{"mpi-tcp": 20, "mpi-fast": 4.4, "mpi-rdma": 5.6, "rc-write": 4, "openmpi-tcp": 5.6}
	verdict := func() bench.Verdict {
		var j evaluation
		evaluateLatency(&j, figures(good))
		return j.makeVerdict()
	}
	requireVerdict(t, bench.Verdict{Holds: true, Reason: "mpi-fast over openmpi-tcp 0.79 (at most 1.00), mpi-rdma over openmpi-tcp 1.00 (at most 1.00), " +
		"mpi-fast over rc-write 1.10 (at most 1.15), mpi-rdma over rc-write 1.40 (at most 1.40), mpi-fast over mpi-tcp 0.22 (at most 0.25)"}, verdict())
	for series, y := range map[string]float64{"mpi-fast": 4.7, "mpi-rdma": 5.7, "openmpi-tcp": 5.5, "mpi-tcp": 17} {
		was := good[series]
		good[series] = y
		require.False(t, verdict().Holds, series)
		good[series] = was
	}
	delete(good, "openmpi-tcp")
	require.NotContains(t, verdict().Reason, "openmpi")
	require.True(t, verdict().Holds)
}

func TestEvaluateOneSided(t *testing.T) {
	put := oneSided{latencyOverTCP: 0.26}
	var j evaluation
	put.evaluateLatency(&j, figures(map[string]float64{"mpi-rdma": 2.5, "mpi-rdma-messages": 5, "mpi-tcp": 10, "openmpi-tcp": 2.5}))
	requireVerdict(t, bench.Verdict{Holds: true, Reason: "mpi-rdma over mpi-rdma-messages 0.50 (at most 1.00), " +
		"mpi-rdma over openmpi-tcp 1.00 (at most 1.00), mpi-rdma over mpi-tcp 0.25 (at most 0.26)"}, j.makeVerdict())
	put.evaluateLatency(&j, figures(map[string]float64{"mpi-rdma": 2.7, "mpi-tcp": 10}))
	require.False(t, j.makeVerdict().Holds)
}

func TestEvaluateBandwidth(t *testing.T) {
	for _, c := range []struct {
		size                int
		rdma, write, others float64
		holds               bool
	}{
		{8, 30, 1, 10, true},
		{8, 29, 1, 10, false},
		{64 << 10, 85, 100, 85, true},
		{64 << 10, 84, 100, 80, false},
		{1 << 20, 90, 100, 105, true},
		{1 << 20, 90, 100, 106, false},
		{4096, 90, 100, 50, false}, // a size without a claim
	} {
		var j evaluation
		evaluateBandwidth(&j, figures(map[string]float64{"mpi-rdma": c.rdma, "rc-write": c.write, "openmpi-tcp": c.others}), c.size)
		require.Equal(t, c.holds, j.makeVerdict().Holds, "%+v", c)
	}
	rates := inMessages(figures(map[string]float64{"mpi-rdma": 8}), 8)
	require.Equal(t, []float64{1e6}, rates[0].Figures)
}

// NAS' own program is the baseline if it is installed.
func TestEvaluateKernels(t *testing.T) {
	is := nasExperiment{kernel: "is", over: 1.15, four: 1 / 0.85}
	for _, c := range []struct {
		class          nas.Class
		ranks          int
		rdma, tcp, npb float64
		why            string
	}{
		{nas.A, 4, 118, 100, 0, "class A on 4 ranks, mpi-rdma over mpi-tcp 1.18 (at least 1.18)"},
		{nas.A, 4, 118, 100, 118, "class A on 4 ranks, mpi-rdma over npb-openmpi-tcp 1.00 (at least 1.00)"},
		{nas.A, 2, 118, 100, 118, "no figure of the claim was measured"},
		{nas.S, 4, 118, 100, 118, "no figure of the claim was measured"},
	} {
		of := map[string]float64{"mpi-rdma": c.rdma, "mpi-tcp": c.tcp}
		if c.npb > 0 {
			of[overNPB] = c.npb
		}
		var j evaluation
		is.evaluateKernel(&j, figures(of), c.class, c.ranks, false)
		require.Equal(t, c.why, j.makeVerdict().Reason)
	}
	var j evaluation
	is.evaluateKernel(&j, figures(map[string]float64{"mpi-rdma": 115, "mpi-tcp": 100}), nas.S, 16, true)
	require.True(t, j.makeVerdict().Holds)
	require.Equal(t, "class S on 16 ranks, mpi-rdma over mpi-tcp 1.15 (at least 1.15)", j.makeVerdict().Reason)

	ep := nasExperiment{kernel: "ep", even: 1.05}
	for y, holds := range map[float64]bool{94: false, 97: true, 103: true, 106: false} {
		var j evaluation
		ep.evaluateKernel(&j, figures(map[string]float64{"mpi-rdma": y, "mpi-tcp": 100}), nas.W, 2, true)
		require.Equal(t, holds, j.makeVerdict().Holds, y)
	}
}

// Open MPI is measured if it is installed; otherwise the verdict has the reason.
func TestBesideOpenMPI(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	found, err := bench.Default.Find("imb-barrier")
	require.NoError(t, err)
	res, err := bench.Execute(t.Context(), found[0], bench.Options{Quick: true, Set: bench.Settings{"ranks": "4", "iters": "5", "rounds": "1"}})
	require.NoError(t, err)
	if strings.Contains(res.Verdict.Reason, "Open MPI is not installed") {
		t.Skip(res.Verdict.Reason)
	}
	require.Contains(t, res.Verdict.Reason, "on 4 ranks mpi-rdma over openmpi-tcp")
	require.True(t, slices.ContainsFunc(res.Rows, func(r bench.Row) bool { return r.Series == overOpenMPI && r.Y > 0 && r.Baseline == "mpi-tcp" }))
}

// Without Open MPI an experiment continues, and the verdict says so.
func TestWithoutOpenMPI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	found, err := bench.Default.Find("imb-barrier")
	require.NoError(t, err)
	res, err := bench.Execute(t.Context(), found[0], bench.Options{Quick: true, Set: bench.Settings{"ranks": "2", "iters": "5", "rounds": "1"}})
	require.NoError(t, err)
	require.Contains(t, res.Verdict.Reason, "Open MPI is not installed here")
	require.False(t, slices.ContainsFunc(res.Rows, func(r bench.Row) bool { return r.Series == overOpenMPI }))
}

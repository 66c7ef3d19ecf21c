package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "mpi-latency",
		Source: "IWARP fig. 4a",
		Layer:  bench.LayerMPI,
		Claim: "A message of 8 bytes takes no longer than with Open MPI over TCP. It takes at most 1.15 times as long as a bare RDMA write over the fast path, " +
			"and at most 1.4 times with sends and receives. The fast path takes at most 0.25 times as long as MPI over TCP.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "1,8,64,256,1KiB,4KiB", Quick: "8", Max: maxPing, Doc: "bytes of a message"},
			overParam("fast,rdma"),
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "10000", Quick: "2000", Doc: "round trips in a round"},
		},
		Run: mpiLatency,
	})
}

// maxPing is the maximum message size of bare ping-pongs.
const maxPing = 32 << 10

// Limits for short messages.
const (
	fastOverTCP   = 0.25 // result of the paper
	fastOverWrite = 1.15 // the paper: 1.06
	sendOverWrite = 1.4
	overAnother   = 1.0 // over Open MPI
	claimedAt     = 8   // bytes
)

func mpiLatency(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	m, err := openMPIRun(ctx, r)
	defer m.close()
	if err != nil {
		return bench.Verdict{}, err
	}
	for _, size := range r.Ints("sizes") {
		r.Step("%d B", size)
		samples, err := m.measureLatency(ctx, size)
		if err != nil {
			return bench.Verdict{}, err
		}
		if size == claimedAt {
			evaluateLatency(&m.evaluation, samples)
		}
	}
	m.other.explainAbsence(&m.evaluation)
	return m.makeVerdict(), nil
}

// measureLatency measures one size: MPI, the operations it is built on, and Open MPI.
func (m *mpiRun) measureLatency(ctx context.Context, size int) ([]bench.Sample, error) {
	iters := m.Int("iters")
	write, err := m.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: size})
	if err != nil {
		return nil, err
	}
	defer write.Close(ctx)
	var set seriesSet
	m.all.addTo(&set, func(job *mpibench.Job) measure.Round { return job.Latency(size, iters) })
	set.addMeans(string(verbsbench.RCWrite), func(into *measure.Latency) measure.Round { return write.LatencyRounds(iters, into) })
	set.addMeans(string(sdpbench.TCP), func(into *measure.Latency) measure.Round { return m.sockets.PingRounds(size, iters, into) })
	m.other.addTo(&set, 2, "latency", size, iters)
	samples, err := set.runAlternating(ctx, m.Int("rounds"))
	if err != nil {
		return nil, err
	}
	at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.Microseconds}
	m.EmitAgainst(at, samples[0], samples[1:]...)
	return samples, nil
}

// evaluateLatency compares MPI over RDMA with its baselines.
func evaluateLatency(j *evaluation, samples []bench.Sample) {
	for _, c := range []struct {
		target, baseline string
		limit            float64
	}{
		{string(mpibench.Fast), overOpenMPI, overAnother},
		{string(mpibench.RDMA), overOpenMPI, overAnother},
		{string(mpibench.Fast), string(verbsbench.RCWrite), fastOverWrite},
		{string(mpibench.RDMA), string(verbsbench.RCWrite), sendOverWrite},
		{string(mpibench.Fast), string(mpibench.TCP), fastOverTCP},
	} {
		if ratio, ok := medianRatioOf(samples, c.target, c.baseline); ok {
			j.atMost(c.target+" over "+c.baseline, ratio, c.limit)
		}
	}
}

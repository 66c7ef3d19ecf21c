package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	for _, o := range []oneSided{
		{op: "put", source: "IWARP fig. 5", bare: verbsbench.RCWrite, latencyOverTCP: 0.26, peakOverTCP: 1.4},
		{op: "get", source: "IWARP fig. 6", bare: verbsbench.RCRead, latencyOverTCP: 0.47, peakOverTCP: 3.6},
	} {
		bench.Register(&bench.Experiment{
			Name:   "mpi-" + o.op,
			Source: o.source,
			Layer:  bench.LayerMPI,
			Claim: fmt.Sprintf("A %s of 8 bytes by RDMA takes no longer than by messages or with Open MPI over TCP, and at most %.2f times as long as over TCP. "+
				"Its peak bandwidth is at least %.2f times that over TCP.", o.op, o.latencyOverTCP, o.peakOverTCP),
			Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
			Params: []bench.Param{
				{Name: "latency", Kind: bench.Ints, Default: "8,64,512,4KiB,32KiB", Quick: "8", Max: maxPing, Doc: "operation sizes for latency, in bytes"},
				{Name: "bandwidth", Kind: bench.Ints, Default: "8,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "64KiB,1MiB", Max: 4 << 20, Doc: "operation sizes for bandwidth, in bytes"},
				besideOpenMPI(),
				{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
				{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "300", Doc: "operations in a round, one at a time"},
				{Name: "windows", Kind: bench.Int, Default: "20", Quick: "4", Doc: "windows of 64 operations in a round; ten times as many for operations of up to 8 KiB"},
				{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round of the bare streams"},
			},
			Run: evaluated(o.runExperiment),
		})
	}
}

// A oneSided is the experiment with one operation on windows: by RDMA (1SC of the paper), by
// messages with and without the fast path (R and SR), and over TCP.
type oneSided struct {
	op, source                  string
	bare                        verbsbench.Op
	latencyOverTCP, peakOverTCP float64 // in the paper
}

// overMessages is the series of equivalent two-sided operations: a round trip, or a window of
// messages.
const overMessages = "mpi-two-sided"

// A oneSidedRun is a running experiment.
type oneSidedRun struct {
	*run
	oneSided
	all   jobs
	pair  *verbsbench.Pair
	other openMPI
}

func (o oneSided) runExperiment(ctx context.Context, r *run) error {
	latencies, bandwidths := r.Ints("latency"), r.Ints("bandwidth")
	r.Plan(1 + len(latencies) + len(bandwidths))
	r.Step("opening connections")
	x := oneSidedRun{run: r, oneSided: o}
	var err error
	x.all, err = openTransports(ctx, 2, mpibench.TCP, mpibench.RDMA, mpibench.FastMessages, mpibench.RDMAMessages)
	defer x.all.close()
	if err != nil {
		return err
	}
	if x.pair, err = verbsbench.OpenPair(ctx, verbsbench.Config{}); err != nil {
		return err
	}
	defer x.pair.Close()
	if x.other, err = openOpenMPI(ctx, r); err != nil {
		return err
	}
	defer x.other.close()
	for _, size := range latencies {
		r.Step("latency of %d B", size)
		samples, err := x.measureLatency(ctx, size)
		if err != nil {
			return err
		}
		if size == claimedAt {
			o.evaluateLatency(&r.evaluation, samples)
		}
	}
	best := map[string]float64{}
	for _, size := range bandwidths {
		r.Step("bandwidth of %d B", size)
		samples, err := x.measureBandwidth(ctx, size)
		if err != nil {
			return err
		}
		for _, s := range samples {
			best[s.Series] = max(best[s.Series], measure.Median(s.Figures))
		}
	}
	direct, tcp := string(mpibench.RDMA), string(mpibench.TCP)
	r.atLeast("peak of "+direct+" over that of "+tcp, best[direct]/best[tcp], o.peakOverTCP)
	x.other.explainAbsence(&r.evaluation)
	return nil
}

// measureLatency measures the time until an operation is complete at the target, and that of
// equivalent operations.
func (x *oneSidedRun) measureLatency(ctx context.Context, size int) ([]bench.Sample, error) {
	iters := x.Int("iters")
	ping, err := x.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: x.bare, Size: size})
	if err != nil {
		return nil, err
	}
	defer ping.Close(ctx)
	var set seriesSet
	x.all.addTo(&set, func(job *mpibench.Job) measure.Round { return job.OneSidedLatency(x.op, size, iters) })
	set.addSeries(overMessages, fullRoundTrip(x.all.jobFor(mpibench.RDMA).Latency(size, iters)))
	bare := func(into *measure.Latency) measure.Round { return ping.LatencyRounds(iters, into) }
	if x.bare == verbsbench.RCRead { // a whole round trip
		set.addMeans(string(x.bare), bare)
	} else {
		set.addSeries(string(x.bare)+"-round-trip", fullRoundTrip(meanRounds(bare, nil)))
	}
	x.other.addTo(&set, 2, x.op, size, iters)
	samples, _, err := x.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	return samples, err
}

// measureBandwidth measures windows of operations.
func (x *oneSidedRun) measureBandwidth(ctx context.Context, size int) ([]bench.Sample, error) {
	windows := x.Int("windows")
	if size <= shortMessage {
		windows *= 10
	}
	stream, err := x.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: x.bare, Size: size})
	if err != nil {
		return nil, err
	}
	defer stream.Close(ctx)
	var set seriesSet
	x.all.addTo(&set, func(job *mpibench.Job) measure.Round { return job.OneSidedBandwidth(x.op, size, windows) })
	set.addSeries(overMessages, x.all.jobFor(mpibench.RDMA).Bandwidth(size, windows))
	set.addSeries(string(x.bare), stream.Rounds(x.Duration("time"), verbsbench.Flow.MBps))
	x.other.addTo(&set, 2, x.op+"-bandwidth", size, windows)
	samples, _, err := x.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
	return samples, err
}

// fullRoundTrip returns a round whose figure is that of half, doubled.
func fullRoundTrip(half measure.Round) measure.Round {
	return func(ctx context.Context) (float64, error) {
		us, err := half(ctx)
		return 2 * us, err
	}
}

// evaluateLatency compares the operation by RDMA with its baselines.
func (o oneSided) evaluateLatency(j *evaluation, samples []bench.Sample) {
	for _, c := range []struct {
		baseline string
		limit    float64
	}{
		{string(mpibench.RDMAMessages), 1},
		{overOpenMPI, overAnother},
		{string(mpibench.TCP), o.latencyOverTCP},
	} {
		if ratio, ok := medianRatioOf(samples, string(mpibench.RDMA), c.baseline); ok {
			j.atMost(fmt.Sprintf("%s over %s", mpibench.RDMA, c.baseline), ratio, c.limit)
		}
	}
}

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
		{op: "put", source: "IWARP fig. 5", bare: verbsbench.RCWrite, latencyOverTCP: 0.26, messagesOverTCP: 0.28, peakOverTCP: 1.39,
			latency: "74 % below MPI over TCP (9.41 us and 36.5 us)", peak: "40 % above MPI over TCP (1231 MB/s and 880 MB/s)",
			alike: "about the same, 9.41 us and 9.32 us", slower: "10.09 us and 9.32 us"},
		{op: "get", source: "IWARP fig. 6", bare: verbsbench.RCRead, latencyOverTCP: 0.47, messagesOverTCP: 0.53, peakOverTCP: 3.5,
			latency: "30.03 us and 64.21 us over TCP", peak: "3.6 times MPI over TCP (1142 MB/s and 319 MB/s)",
			alike: "30.03 us each", slower: "33.95 us and 30.03 us"},
	} {
		register(&bench.Experiment{
			Name:   "mpi-" + o.op,
			Source: o.source,
			Layer:  bench.LayerMPI,
			Claims: o.claimList(),
			Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
			Params: []bench.Param{
				{Name: "latency", Kind: bench.Ints, Default: "8,64,512,4KiB,32KiB", Quick: "8", Max: maxPing, Doc: "operation sizes for latency, in bytes"},
				{Name: "bandwidth", Kind: bench.Ints, Default: "8,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "64KiB,1MiB", Max: 4 << 20, Doc: "operation sizes for bandwidth, in bytes"},
				besideOpenMPI(),
				{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
				{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "300", Doc: "operations in a round, one at a time"},
				{Name: "windows", Kind: bench.Int, Default: "20", Quick: "4", Doc: "windows of 64 operations in a round; ten times as many for operations of up to 8 KiB"},
				{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round of the bare streams"},
			},
			Run: runFunc(o.runExperiment),
		})
	}
}

// A oneSided is the experiment with one operation on windows: by RDMA (1SC of the paper), by
// messages with and without the fast path (R and SR), and over TCP.
type oneSided struct {
	op, source                  string
	bare                        verbsbench.Op
	latencyOverTCP, peakOverTCP float64 // in the paper
	messagesOverTCP             float64 // by messages without the fast path
	latency, peak               string  // results of the paper
	alike, slower               string  // and those of the fast path beside RDMA, and beside messages without it
}

// peakBecause has the causes of refuted peaks.
var peakBecause = map[string]string{
	"put": "TCP on one machine moves up to 64 KiB a segment and leaves checksums out",
	"get": "the paper's MPI over TCP, its opponent, reaches only 319 of the 1034 MB/s of its own sockets",
}

func (o oneSided) claimList() []bench.Statement {
	direct := []string{string(mpibench.RDMA)}
	messages := []string{string(mpibench.FastMessages), string(mpibench.RDMAMessages)}
	latency := func(of, over []string, most float64) bench.Comparison {
		return bench.Ratio{Of: of, Over: over, Unit: measure.Microseconds, At: bench.At(claimedAt, measure.Bytes), Limit: bench.AtMost(most)}
	}
	peak := func(of []string) bench.Comparison {
		return bench.Ratio{Of: of, Over: overTCP, Unit: measure.MegabytesPerSec, At: bench.Everywhere(measure.Bytes), Peak: true, Limit: bench.AtLeast(o.peakOverTCP)}
	}
	claims := []bench.Statement{
		{
			Sentence: fmt.Sprintf("A %s of 8 bytes by RDMA takes at most %.2f times as long as MPI over TCP.", o.op, o.latencyOverTCP),
			Paper:    o.latency, Number: o.latencyOverTCP,
			Compare: latency(direct, overTCP, o.latencyOverTCP), Because: polledTCP,
		},
		{
			Sentence: fmt.Sprintf("By messages it takes at most %.2f times as long with the fast path, and %.2f times without.", o.latencyOverTCP, o.messagesOverTCP),
			Paper:    o.latency + "; without the fast path " + o.slower,
			Compare:  bench.All{latency(messages[:1], overTCP, o.latencyOverTCP), latency(messages[1:], overTCP, o.messagesOverTCP)}, Because: polledTCP,
		},
		{
			Sentence: fmt.Sprintf("The peak bandwidth of a %s by RDMA is at least %.2f times that of MPI over TCP.", o.op, o.peakOverTCP),
			Paper:    o.peak, Number: o.peakOverTCP,
			Compare: peak(direct), Because: peakBecause[o.op],
		},
		{
			Sentence: "The peak by messages, with and without the fast path, is, too.",
			Paper:    o.peak, Number: o.peakOverTCP,
			Compare: peak(messages), Because: peakBecause[o.op],
		},
		{
			Sentence: fmt.Sprintf("A %s of 8 bytes by RDMA and one by messages over the fast path take the same time (within 10 %%).", o.op),
			Paper:    o.alike,
			Compare:  bench.Alike{Series: []string{direct[0], messages[0]}, Unit: measure.Microseconds, At: bench.At(claimedAt, measure.Bytes), Limit: bench.AtMost(1.1)},
			Because:  "the paper's implementation sends short operations as messages, and ours executes them by RDMA",
		},
		{
			Sentence: "Without the fast path it takes longer by messages.",
			Paper:    o.slower,
			Compare:  latency([]string{messages[0]}, []string{messages[1]}, 1),
		},
	}
	if o.op == "put" {
		claims = append(claims, bench.Statement{
			Sentence: "A put by RDMA has at least the bandwidth of puts by messages, at each size.",
			Paper:    "performs the best in all cases",
			Compare: bench.Ratio{Of: direct, Over: messages, Unit: measure.MegabytesPerSec,
				At: bench.Everywhere(measure.Bytes), Limit: bench.AtLeast(1)},
		}, bench.Statement{
			Sentence: "From 4 KB to 64 KB a put by RDMA has at least 1.1 times the bandwidth of puts by messages.",
			Paper:    "significantly better from 4 KB to 64 KB",
			Compare: bench.Ratio{Of: direct, Over: messages, Unit: measure.MegabytesPerSec,
				At: bench.Between(4<<10, 64<<10, measure.Bytes), Limit: bench.AtLeast(1.1)},
		})
	}
	return append(claims,
		bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("A %s of 8 bytes by RDMA takes no longer than by messages.", o.op),
			Compare:  latency(direct, []string{string(mpibench.RDMAMessages)}, 1),
		},
		bench.Statement{
			Source:   bench.Adapter,
			Sentence: "It takes no longer than with Open MPI over TCP.",
			Compare:  latency(direct, []string{overOpenMPI}, 1),
		})
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
		if err := x.measureLatency(ctx, size); err != nil {
			return err
		}
	}
	for _, size := range bandwidths {
		r.Step("bandwidth of %d B", size)
		if err := x.measureBandwidth(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// measureLatency measures the time until an operation is complete at the target, and that of
// equivalent operations.
func (x *oneSidedRun) measureLatency(ctx context.Context, size int) error {
	iters := x.Int("iters")
	ping, err := x.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: x.bare, Size: size})
	if err != nil {
		return err
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
	_, err = x.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	return err
}

// measureBandwidth measures windows of operations.
func (x *oneSidedRun) measureBandwidth(ctx context.Context, size int) error {
	windows := x.Int("windows")
	if size <= shortMessage {
		windows *= 10
	}
	stream, err := x.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: x.bare, Size: size})
	if err != nil {
		return err
	}
	defer stream.Close(ctx)
	var set seriesSet
	x.all.addTo(&set, func(job *mpibench.Job) measure.Round { return job.OneSidedBandwidth(x.op, size, windows) })
	set.addSeries(overMessages, x.all.jobFor(mpibench.RDMA).Bandwidth(size, windows))
	set.addSeries(string(x.bare), stream.Rounds(x.Duration("time"), verbsbench.Flow.MBps))
	x.other.addTo(&set, 2, x.op+"-bandwidth", size, windows)
	_, err = x.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
	return err
}

// fullRoundTrip returns a round whose figure is that of half, doubled.
func fullRoundTrip(half measure.Round) measure.Round {
	return func(ctx context.Context) (float64, error) {
		us, err := half(ctx)
		return 2 * us, err
	}
}

package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "ib-transports",
		Source: "RCUD fig. 8",
		Layer:  bench.LayerVerbs,
		Claim: "UD is as fast as RC for messages of up to one MTU and slower above, where software fragments and reassembles them. " +
			"RC has at most half the latency of libfabric's udp;ofi_rxd, and 10 times its bandwidth at 64 KiB.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "latency", Kind: bench.Ints, Default: "8,64,512,1KiB,2KiB,4KiB,8KiB,16KiB,64KiB", Quick: "8,4KiB,64KiB", Doc: "message sizes for latency, at most 128 KiB"},
			{Name: "bandwidth", Kind: bench.Ints, Default: "64,512,1KiB,2KiB,4KiB,8KiB,16KiB,64KiB,1MiB", Quick: "4KiB,64KiB", Doc: "message sizes for bandwidth"},
			{Name: "beside", Kind: bench.Words, Default: "libfabric", Choices: []string{"libfabric", "nothing"}, Doc: "other implementation to run at 8 B and 64 KiB, if installed"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "300", Doc: "round trips in a round"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a bandwidth round"},
		},
		Run: ibTransports,
	})
}

const (
	// evenWithin is the ratio up to which UD counts as equal to RC.
	evenWithin = 1.25

	fabricSmall, fabricLarge = 8, 64 << 10 // message sizes of the comparison with libfabric
	fabricLatency            = 0.5         // limits: RC over libfabric
	fabricBandwidth          = 10
)

// A transportRun is a running experiment.
type transportRun struct {
	*run
	pair   *verbsbench.Pair
	fabric bool // run libfabric too

	// UD over RC, by message size.
	latencies, bandwidths map[int]float64
}

func ibTransports(ctx context.Context, b *bench.Run) (bench.Verdict, error) {
	v, err := evaluated(measureTransports)(ctx, b)
	if err == nil && !v.Holds {
		v.Reason += ". Here the adapter is software and segments RC messages too; above one MTU, UD has only an additional copy and credits"
	}
	return v, err
}

func measureTransports(ctx context.Context, r *run) error {
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	t := &transportRun{
		run: r, pair: pair,
		fabric:    slices.Contains(r.Words("beside"), "libfabric") && peers.HasLibfabric(),
		latencies: map[int]float64{}, bandwidths: map[int]float64{},
	}
	if err := r.measureSizes(ctx, t.measureLatency, t.measureBandwidth); err != nil {
		return err
	}
	t.compareUDWithRC()
	return nil
}

// measureLatency measures half round trips of one size.
func (t *transportRun) measureLatency(ctx context.Context, size int) error {
	set, end, err := newPingSet(ctx, t.pair, size, t.Int("iters"), verbsbench.RCSend, verbsbench.UDSend)
	defer end()
	if err != nil {
		return err
	}
	compared := t.fabric && size == fabricSmall
	if compared {
		set.addSeries(peers.RXD, func(ctx context.Context) (float64, error) {
			f, err := peers.FabricPingPong(ctx, peers.RXD, size, t.Int("iters"))
			return f.Micros, err
		})
	}
	samples, _, err := t.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	if err != nil {
		return err
	}
	rc, ud := samples[1].Figures, samples[2].Figures
	t.latencies[size] = measure.MedianRatio(ud, rc)
	if compared {
		t.atMost("RC latency over libfabric's", measure.MedianRatio(rc, samples[3].Figures), fabricLatency)
	}
	return nil
}

// measureBandwidth measures streams of one size. libfabric's program has one message in flight,
// so it is compared with an RC ping-pong.
func (t *transportRun) measureBandwidth(ctx context.Context, size int) error {
	set, end, err := newStreamSet(ctx, t.pair, size, t.Duration("time"), verbsbench.RCSend, verbsbench.UDSend)
	defer end()
	if err != nil {
		return err
	}
	compared := t.fabric && size == fabricLarge
	if compared {
		ping, err := t.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCSend, Size: size})
		if err != nil {
			return err
		}
		defer ping.Close(ctx)
		half := ping.LatencyRounds(t.Int("iters"), nil)
		set.addSeries("rc-send-ping-pong", func(ctx context.Context) (float64, error) {
			us, err := half(ctx)
			return float64(size) / us, err
		})
		set.addSeries(peers.RXD+"-ping-pong", func(ctx context.Context) (float64, error) {
			f, err := peers.FabricPingPong(ctx, peers.RXD, size, t.Int("iters"))
			return f.MBps, err
		})
	}
	samples, _, err := t.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
	if err != nil {
		return err
	}
	rc, ud := samples[1].Figures, samples[2].Figures
	t.bandwidths[size] = measure.MedianRatio(ud, rc)
	if compared {
		rxd := samples[4].Figures
		t.atLeast("RC bandwidth over libfabric's", measure.MedianRatio(rc, rxd), fabricBandwidth)
		t.addNote(true, "with one message in flight %.2f", measure.MedianRatio(samples[3].Figures, rxd))
	}
	return nil
}

// compareUDWithRC checks that UD has the latency of RC up to one MTU and its bandwidth with
// full packets, and is slower above.
func (t *transportRun) compareUDWithRC() {
	for _, c := range []struct {
		desc   string
		ratios map[int]float64
		in     func(size int) bool
		worst  func(a, b float64) float64
		check  func(desc string, ratio, limit float64)
		limit  float64
	}{
		{"UD latency over RC's up to one MTU", t.latencies, func(n int) bool { return n <= maxMTU }, math.Max, t.atMost, evenWithin},
		{"UD bandwidth over RC's with one MTU", t.bandwidths, func(n int) bool { return n == maxMTU }, math.Min, t.atLeast, 1 / evenWithin},
		{"UD latency over RC's above one MTU", t.latencies, func(n int) bool { return n > maxMTU }, math.Min, t.atLeast, 1},
		{"UD bandwidth over RC's above one MTU", t.bandwidths, func(n int) bool { return n > maxMTU }, math.Max, t.atMost, 1},
	} {
		worst := math.NaN()
		for size, ratio := range c.ratios {
			if c.in(size) && math.IsNaN(worst) {
				worst = ratio
			} else if c.in(size) {
				worst = c.worst(worst, ratio)
			}
		}
		if !math.IsNaN(worst) {
			c.check(c.desc, worst, c.limit)
		}
	}
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "ib-concurrency",
		Source: "RCUD fig. 6c",
		Layer:  bench.LayerVerbs,
		Claim: "With many senders to one root over a shared receive queue, concurrent sends with a copy at the root " +
			"are faster than zero-copy placement of one message after the other.",
		Axes: []bench.Axis{{Name: "senders", Unit: senders}},
		Params: []bench.Param{
			{Name: "senders", Kind: bench.Ints, Default: "2,4,8", Quick: "2,4", Doc: "sending processes"},
			{Name: "size", Kind: bench.Int, Default: "16KiB", Min: 8, Doc: "bytes of a message, at least 8"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "500", Quick: "150", Doc: "messages of each sender in a round"},
		},
		Run: evaluated(ibConcurrency),
	})
}

const senders = "senders" // unit of the number of senders

func ibConcurrency(ctx context.Context, r *run) error {
	counts := r.Ints("senders")
	r.Plan(len(counts))
	base, err := openPing(ctx, udpraw.Block, r.Int("size"))
	if err != nil {
		return err
	}
	defer base.Close()
	for _, n := range counts {
		r.Step("%d senders", n)
		ratio, err := concurrencyPoint(ctx, r, n, base)
		if err != nil {
			return err
		}
		r.addCheck(ratio, 1, ratio > 1, "with %d senders zero-copy takes %s times as long as copy", n, formatFigure(ratio, 1, 2, ratio > 1))
	}
	return nil
}

// concurrencyPoint gathers from n senders with both schemes, with half a round trip of a
// datagram of the same size as the baseline, and returns the ratio of zero-copy to copy.
func concurrencyPoint(ctx context.Context, r *run, n int, base *udpraw.PingPong) (float64, error) {
	var set seriesSet
	set.addPing("udp-block", base, r.Int("iters"))
	for _, scheme := range []verbsbench.Scheme{verbsbench.Copy, verbsbench.ZeroCopy} {
		g, err := verbsbench.OpenGather(ctx, verbsbench.GatherOptions{Scheme: scheme, Senders: n, Size: r.Int("size")})
		if err != nil {
			return 0, fmt.Errorf("%s: %w", scheme, err)
		}
		defer g.Close()
		set.addPing(string(scheme), g, r.Int("iters"))
	}
	samples, _, err := r.measurePoint(ctx, &set, bench.Point{X: float64(n), XUnit: senders, YUnit: measure.Microseconds})
	if err != nil {
		return 0, err
	}
	return measure.MedianRatio(samples[2].Figures, samples[1].Figures), nil
}

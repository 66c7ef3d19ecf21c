package experiments

import (
	"context"
	"math"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
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
	*bench.Run
	evaluation
	pair   *verbsbench.Pair
	fabric bool // run libfabric too

	// UD over RC, by message size.
	latencies, bandwidths map[int]float64
}

func ibTransports(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	r.Plan(len(r.Ints("latency")) + len(r.Ints("bandwidth")))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer pair.Close()
	t := &transportRun{
		Run: r, pair: pair,
		fabric:    slices.Contains(r.Words("beside"), "libfabric") && peers.HasLibfabric(),
		latencies: map[int]float64{}, bandwidths: map[int]float64{},
	}
	for _, size := range r.Ints("latency") {
		r.Step("latency of %d B", size)
		if err := t.measureLatency(ctx, size); err != nil {
			return bench.Verdict{}, err
		}
	}
	for _, size := range r.Ints("bandwidth") {
		r.Step("bandwidth of %d B", size)
		if err := t.measureBandwidth(ctx, size); err != nil {
			return bench.Verdict{}, err
		}
	}
	t.compareUDWithRC()
	v := t.makeVerdict()
	if !v.Holds {
		v.Reason += ". Here the adapter is software and segments RC messages too; above one MTU, UD has only an additional copy and credits"
	}
	return v, nil
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
	samples, err := set.runAlternating(ctx, t.Int("rounds"))
	if err != nil {
		return err
	}
	t.EmitAgainst(bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.Microseconds}, samples[0], samples[1:]...)
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
	samples, err := set.runAlternating(ctx, t.Int("rounds"))
	if err != nil {
		return err
	}
	t.EmitAgainst(bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.MegabytesPerSec}, samples[0], samples[1:]...)
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

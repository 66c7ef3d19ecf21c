package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "ib-qp-latency",
		Source: "RCUD fig. 6b",
		Layer:  bench.LayerVerbs,
		Claim: "With a model of the context cache of hardware adapters, the latency of a round-robin ping-pong " +
			"increases once there are more queue pairs than cache entries (32). Without the model it does not increase.",
		Axes: []bench.Axis{{Name: "queue pairs used round-robin", Unit: queuePairs}},
		Params: []bench.Param{
			{Name: "qps", Kind: bench.Ints, Default: "1,2,4,8,16,32,64,128,256,512,1024", Quick: "1,32,128", Doc: "queue pairs used round-robin"},
			{Name: "entries", Kind: bench.Int, Default: "32", Doc: "entries of the model's context cache"},
			{Name: "penalty", Kind: bench.Duration, Default: "1us", Doc: "penalty of a cache miss in the model"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "3000", Quick: "500", Doc: "round trips in a round"},
		},
		Run: ibQPLatency,
	})
}

// flatWithin is the ratio up to which the latency counts as constant, and above which it counts
// as increasing.
const flatWithin = 1.2

func ibQPLatency(ctx context.Context, b *bench.Run) (bench.Verdict, error) {
	r := &run{Run: b}
	entries := r.Int("entries")
	r.Plan(len(r.Ints("qps")))
	base, err := openPing(ctx, udpraw.Spin, smallSize)
	if err != nil {
		return bench.Verdict{}, err
	}
	defer base.Close()
	plain, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer plain.Close()
	cached, err := verbsbench.OpenPair(ctx, verbsbench.Config{ICMEntries: entries, ICMMissPenalty: r.Duration("penalty")})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer cached.Close()

	// Ratios to the UDP ping-pong: the largest within the cache, and beyond.
	var within, beyond struct{ plain, cached float64 }
	for _, n := range r.Ints("qps") {
		r.Step("%d queue pairs", n)
		ratios, err := measureRoundRobin(ctx, r, n, base, plain, cached)
		if err != nil {
			return bench.Verdict{}, err
		}
		at := &within
		if n > entries {
			at = &beyond
		}
		at.plain, at.cached = max(at.plain, ratios[0]), max(at.cached, ratios[1])
	}
	if within.plain == 0 || beyond.plain == 0 {
		return bench.Verdict{Reason: fmt.Sprintf("the claim needs numbers of queue pairs both up to %[1]d and above %[1]d", entries)}, nil
	}
	climb, drift := beyond.cached/within.cached, beyond.plain/within.plain
	return bench.Verdict{
		Holds: climb > flatWithin && drift <= flatWithin,
		Reason: fmt.Sprintf("above %d queue pairs the latency increases %.2f times with the cache model (%v for a miss) and %.2f times without",
			entries, climb, r.Duration("penalty"), drift),
		Checks: []bench.Check{
			{Description: fmt.Sprintf("with the cache %.2f (above %.2f)", climb, flatWithin), Figure: climb, Limit: flatWithin, Holds: climb > flatWithin},
			{Description: fmt.Sprintf("without %.2f (at most %.2f)", drift, flatWithin), Figure: drift, Limit: flatWithin, Holds: drift <= flatWithin},
		},
	}, nil
}

// measureRoundRobin measures n queue pairs used round-robin, without and with the model.
func measureRoundRobin(ctx context.Context, r *run, n int, base *udpraw.PingPong, plain, cached *verbsbench.Pair) ([]float64, error) {
	iters := r.Int("iters")
	var set seriesSet
	set.addPing("udp-spin", base, iters)
	for _, s := range []struct {
		series string
		pair   *verbsbench.Pair
	}{{"rc-write", plain}, {"rc-write-icm", cached}} {
		ping, err := s.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: smallSize, QPs: n})
		if err != nil {
			return nil, err
		}
		defer ping.Close(ctx)
		set.addPing(s.series, ping, iters)
	}
	_, ratios, err := r.measurePoint(ctx, &set, bench.Point{X: float64(n), XUnit: queuePairs, YUnit: measure.Microseconds})
	return ratios, err
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "ib-qp-memory",
		Source: "RCUD fig. 6a",
		Layer:  bench.LayerVerbs,
		Claim:  "Memory grows linearly with the number of RC connections, while one UD queue pair reaches all peers.",
		Axes:   []bench.Axis{{Name: "peers", Unit: peersUnit}},
		Params: []bench.Param{
			{Name: "peers", Kind: bench.Ints, Default: "1,16,64,256,1024,4096,16384", Quick: "1,16,256,4096", Doc: "number of connected peers"},
		},
		Run: ibQPMemory,
	})
}

const peersUnit = "peers" // unit of the number of peers

// linearWithin is the ratio up to which the memory of one RC connection may differ between
// numbers of connections, so that growth counts as linear. Below linearFrom connections the
// constant part dominates.
const (
	linearWithin = 1.5
	linearFrom   = 16
)

func ibQPMemory(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	counts := slices.Sorted(slices.Values(r.Ints("peers")))
	r.Plan(len(counts))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer pair.Close()
	var each []float64 // bytes of one RC connection
	var last, lastUD float64
	for _, n := range counts {
		r.Step("%d peers", n)
		rc, err := idleConnMemory(ctx, pair, verbs.RC, n)
		if err != nil {
			return bench.Verdict{}, err
		}
		ud, err := idleConnMemory(ctx, pair, verbs.UD, n)
		if err != nil {
			return bench.Verdict{}, err
		}
		at := bench.Row{X: float64(n), XUnit: peersUnit, YUnit: measure.Bytes}
		at.Series, at.Y = "ud", ud
		r.Emit(at)
		at.Series, at.Y, at.Against = "rc", rc, &bench.Against{Baseline: "ud", Ratio: rc / ud}
		r.Emit(at)
		if n >= linearFrom {
			each = append(each, rc/float64(n))
		}
		last, lastUD = rc, ud
	}
	if len(each) < 2 {
		return bench.Verdict{Reason: fmt.Sprintf("the claim needs two numbers of peers of at least %d", linearFrom)}, nil
	}
	low, high := slices.Min(each), slices.Max(each)
	return bench.Verdict{
		Holds: high/low <= linearWithin && last > lastUD,
		Reason: fmt.Sprintf("an RC connection takes %.0f to %.0f bytes; for %d peers RC takes %.1f times the memory of one UD queue pair with its address handles",
			low, high, counts[len(counts)-1], last/lastUD),
	}, nil
}

// idleConnMemory returns the memory of n idle peers in one process.
func idleConnMemory(ctx context.Context, pair *verbsbench.Pair, transport verbs.QPType, n int) (float64, error) {
	c, err := pair.OpenIdleConns(ctx, verbsbench.IdleConnsOptions{Transport: transport, Peers: n})
	if err != nil {
		return 0, fmt.Errorf("%v with %d peers: %w", transport, n, err)
	}
	return float64(max(c.HeapBytes[0], 1)), c.Close(ctx)
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "verbs-qps",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claim: "With 10,000 idle connected RC queue pairs, each takes at most 4 KiB of memory on each side, " +
			"and the latency of one of them is at most 1.2 times that of a single queue pair.",
		Axes: []bench.Axis{{Name: "connected queue pairs", Unit: queuePairs}},
		Params: []bench.Param{
			{Name: "qps", Kind: bench.Ints, Default: "1,10,100,1000,10000", Quick: "100,10000", Doc: "connected queue pairs"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "3000", Quick: "500", Doc: "round trips in a round"},
		},
		Tour: bench.Settings{"qps": "10000"},
		Run:  evaluated(verbsQPs),
	})
}

const (
	queuePairs  = "queue pairs" // unit of the number of queue pairs
	smallSize   = 8             // message size of latency measurements
	qpMemory    = 4 << 10       // limit in bytes
	qpLatency   = 1.2           // limit over a single queue pair
	manyQPs     = 10000         // number of queue pairs of the limits
	perQPSeries = "memory-per-qp"
)

func verbsQPs(ctx context.Context, r *run) error {
	r.Plan(len(r.Ints("qps")))
	alone, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer alone.Close()
	base, err := openPing(ctx, udpraw.Spin, smallSize)
	if err != nil {
		return err
	}
	defer base.Close()
	one, err := alone.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: smallSize})
	if err != nil {
		return err
	}
	for _, n := range r.Ints("qps") {
		r.Step("%d queue pairs", n)
		if err := qpsPoint(ctx, r, n, base, one); err != nil {
			return err
		}
	}
	return nil
}

// qpsPoint connects n queue pairs, measures their memory, the latency of one of them with the
// others idle, and that of all used round-robin.
func qpsPoint(ctx context.Context, r *run, n int, base *udpraw.PingPong, one *verbsbench.PingPong) error {
	many, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer many.Close()
	idle, err := many.OpenIdleConns(ctx, verbsbench.IdleConnsOptions{Transport: verbs.RC, Peers: n})
	if err != nil {
		return err
	}
	for i, end := range []string{"", "-peer"} {
		r.Emit(bench.Row{
			Series: perQPSeries + end, X: float64(n), XUnit: queuePairs,
			Y: float64(idle.HeapBytes[i]) / float64(n), YUnit: measure.Bytes,
		})
	}
	iters := r.Int("iters")
	var set seriesSet
	set.addPing("udp-spin", base, iters)
	set.addPing("rc-write-alone", one, iters)
	for _, s := range []struct {
		series string
		qps    int
	}{{"rc-write", 1}, {"rc-write-round-robin", n}} {
		ping, err := many.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: smallSize, QPs: s.qps})
		if err != nil {
			return err
		}
		set.addPing(s.series, ping, iters)
	}
	at := bench.Point{X: float64(n), XUnit: queuePairs, YUnit: measure.Microseconds}
	samples, _, err := r.measurePoint(ctx, &set, at)
	if err != nil {
		return err
	}
	if n == manyQPs {
		perQP := math.Ceil(float64(max(idle.HeapBytes[0], idle.HeapBytes[1])) / float64(n))
		r.addCheck(perQP, qpMemory, perQP <= qpMemory, "memory of a queue pair %.0f bytes (at most %d)", perQP, qpMemory)
		r.checks[len(r.checks)-1].Exact = true
		r.atMost("latency over that of a single queue pair", measure.MedianRatio(samples[2].Figures, samples[1].Figures), qpLatency)
	}
	return nil
}

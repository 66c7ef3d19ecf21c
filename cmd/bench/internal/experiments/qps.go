package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	register(&bench.Experiment{
		Name:   "ib-qp-latency",
		Source: "RCUD fig. 6b",
		Layer:  bench.LayerVerbs,
		Claims: []bench.Statement{
			{
				Sentence: "The latency of a round-robin ping-pong increases with the number of queue pairs beyond 32, by at least 20 %.",
				Paper:    "increases from 32 queue pairs on",
				Compare:  contextGrowth("rc-write", bench.From(cacheEntries, queuePairs), bench.AtLeast(flatWithin)),
				Because:  "the contexts of a software adapter are in memory, and there is no cache of few entries that could miss",
			},
			{
				Sentence: "It does with a model of the paper's context cache: 32 entries, and 1 us for a miss. The model's size and penalty are assumptions.",
				Paper:    "increases from 32 queue pairs on, about 1 us for a miss",
				Compare:  contextGrowth("rc-write-icm", bench.From(cacheEntries, queuePairs), bench.AtLeast(flatWithin)),
			},
			{
				Sentence: "With the model it does not increase up to 32 queue pairs (within 20 %).",
				Paper:    "increases from 32 queue pairs on",
				Compare:  contextGrowth("rc-write-icm", bench.Between(1, cacheEntries, queuePairs), bench.AtMost(flatWithin)),
			},
		},
		Axes: []bench.Axis{{Name: "queue pairs used round-robin", Unit: queuePairs}},
		Params: []bench.Param{
			{Name: "qps", Kind: bench.Ints, Default: "1,2,4,8,16,32,64,128,256,512,1024", Quick: "1,32,128", Max: 16384, Doc: "queue pairs used round-robin"},
			{Name: "entries", Kind: bench.Int, Default: "32", OfClaim: true, Doc: "entries of the model's context cache"},
			{Name: "penalty", Kind: bench.Duration, Default: "1us", OfClaim: true, Doc: "penalty of a cache miss in the model"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "3000", Quick: "500", Doc: "round trips in a round"},
		},
		Run: runFunc(ibQPLatency),
	})
}

const (
	cacheEntries = 32  // of the paper's context cache
	flatWithin   = 1.2 // ratio up to which the latency counts as constant
)

// contextGrowth returns the comparison of the latency with more queue pairs to that with fewer,
// each over that of UDP.
func contextGrowth(series string, at bench.Points, limit bench.Limit) bench.Comparison {
	return bench.Growth{Of: []string{series}, Over: "udp-spin", Unit: measure.Microseconds, At: at, Limit: limit}
}

func ibQPLatency(ctx context.Context, r *run) error {
	r.Plan(len(r.Ints("qps")))
	base, err := openPing(ctx, udpraw.Spin, smallSize)
	if err != nil {
		return err
	}
	defer base.Close()
	plain, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer plain.Close()
	cached, err := verbsbench.OpenPair(ctx, verbsbench.Config{ICMEntries: r.Int("entries"), ICMMissPenalty: r.Duration("penalty")})
	if err != nil {
		return err
	}
	defer cached.Close()
	for _, n := range r.Ints("qps") {
		r.Step("%d queue pairs", n)
		if err := measureRoundRobin(ctx, r, n, base, plain, cached); err != nil {
			return err
		}
	}
	return nil
}

// measureRoundRobin measures n queue pairs used round-robin, without and with the model.
func measureRoundRobin(ctx context.Context, r *run, n int, base *udpraw.PingPong, plain, cached *verbsbench.Pair) error {
	iters := r.Int("iters")
	var set seriesSet
	set.addPing("udp-spin", base, iters)
	for _, s := range []struct {
		series string
		pair   *verbsbench.Pair
	}{{"rc-write", plain}, {"rc-write-icm", cached}} {
		ping, err := s.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: smallSize, QPs: n})
		if err != nil {
			return err
		}
		defer ping.Close(ctx)
		set.addPing(s.series, ping, iters)
	}
	_, err := r.measurePoint(ctx, &set, bench.Point{X: float64(n), XUnit: queuePairs, YUnit: measure.Microseconds})
	return err
}

func init() {
	register(&bench.Experiment{
		Name:   "ib-qp-memory",
		Source: "RCUD fig. 6a",
		Layer:  bench.LayerVerbs,
		Claims: []bench.Statement{
			{
				Sentence: "Memory grows linearly with the number of RC connections: from 16 on, one takes the same in any number (within a factor of 1.5).",
				Paper:    "an upward linear trend",
				Compare:  bench.Flat{Of: []string{eachSeries}, Unit: eachUnit, At: bench.From(16, peersUnit), Limit: bench.AtMost(1.5)},
				Exact:    true,
			},
			{
				Sentence: "RC takes more memory than one UD queue pair, which reaches all peers.",
				Paper:    "the principal drawback of RC",
				Compare: bench.Ratio{Of: []string{"rc"}, Over: []string{"ud"}, Unit: measure.Bytes, At: bench.From(16, peersUnit),
					Limit: bench.AtLeast(1)},
				Exact: true,
			},
		},
		Axes: []bench.Axis{{Name: "peers", Unit: peersUnit}},
		Params: []bench.Param{
			{Name: "peers", Kind: bench.Ints, Default: "1,16,64,256,1024,4096,16384", Quick: "1,16,256,4096", Max: 65536, Doc: "number of connected peers"},
		},
		Run: runFunc(ibQPMemory),
	})
}

const (
	peersUnit  = "peers" // unit of the number of peers
	eachSeries = "rc-connection"
	eachUnit   = "B per connection"
)

func ibQPMemory(ctx context.Context, r *run) error {
	counts := slices.Sorted(slices.Values(r.Ints("peers")))
	r.Plan(len(counts))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	for _, n := range counts {
		r.Step("%d peers", n)
		rc, err := idleConnMemory(ctx, pair, verbs.RC, n)
		if err != nil {
			return err
		}
		ud, err := idleConnMemory(ctx, pair, verbs.UD, n)
		if err != nil {
			return err
		}
		at := bench.Row{X: float64(n), XUnit: peersUnit, YUnit: measure.Bytes}
		at.Series, at.Y = "ud", ud
		r.Emit(at)
		at.Series, at.Y, at.Against = "rc", rc, &bench.Against{Baseline: "ud", Ratio: rc / ud}
		r.Emit(at)
		r.Emit(bench.Row{Series: eachSeries, X: at.X, XUnit: peersUnit, Y: rc / float64(n), YUnit: eachUnit})
	}
	return nil
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
	register(&bench.Experiment{
		Name:   "verbs-qps",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: []bench.Statement{
			{
				Sentence: "With 10,000 idle connected RC queue pairs, each takes at most 4 KiB of memory on each side.",
				Compare: bench.Value{Of: []string{perQPSeries, perQPSeries + "-peer"}, Unit: measure.Bytes, At: bench.At(10000, queuePairs),
					Limit: bench.AtMost(4 << 10)},
				Exact: true,
			},
			{
				Sentence: "The latency of one of them is at most 1.2 times that of a single queue pair.",
				Compare: bench.Ratio{Of: []string{"rc-write"}, Over: []string{"rc-write-alone"}, Unit: measure.Microseconds,
					At: bench.At(10000, queuePairs), Limit: bench.AtMost(1.2)},
			},
		},
		Axes: []bench.Axis{{Name: "connected queue pairs", Unit: queuePairs}},
		Params: []bench.Param{
			{Name: "qps", Kind: bench.Ints, Default: "1,10,100,1000,10000", Quick: "100,10000", Max: 65536, Doc: "connected queue pairs"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "3000", Quick: "500", Doc: "round trips in a round"},
		},
		Tour: bench.Settings{"qps": "10000"},
		Run:  runFunc(verbsQPs),
	})
}

const (
	queuePairs  = "queue pairs" // unit of the number of queue pairs
	smallSize   = 8             // message size of latency measurements
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
	_, err = r.measurePoint(ctx, &set, at)
	return err
}

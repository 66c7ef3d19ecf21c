package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
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

func ibQPLatency(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
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
func measureRoundRobin(ctx context.Context, r *bench.Run, n int, base *udpraw.PingPong, plain, cached *verbsbench.Pair) ([]float64, error) {
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
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return nil, err
	}
	at := bench.Point{X: float64(n), XUnit: queuePairs, YUnit: measure.Microseconds}
	return r.EmitAgainst(at, samples[0], samples[1:]...), nil
}

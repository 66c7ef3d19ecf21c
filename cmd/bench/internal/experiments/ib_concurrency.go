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
		Run: ibConcurrency,
	})
}

const senders = "senders" // unit of the number of senders

func ibConcurrency(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	counts := r.Ints("senders")
	r.Plan(len(counts))
	base, err := openPing(ctx, udpraw.Block, r.Int("size"))
	if err != nil {
		return bench.Verdict{}, err
	}
	defer base.Close()
	var j evaluation
	for _, n := range counts {
		r.Step("%d senders", n)
		ratio, err := concurrencyPoint(ctx, r, n, base)
		if err != nil {
			return bench.Verdict{}, err
		}
		j.addCheck(ratio, 1, ratio > 1, "with %d senders zero-copy takes %s times as long as copy", n, formatFigure(ratio, 1, 2, ratio > 1))
	}
	return j.makeVerdict(), nil
}

// concurrencyPoint gathers from n senders with both schemes, with half a round trip of a
// datagram of the same size as the baseline, and returns the ratio of zero-copy to copy.
func concurrencyPoint(ctx context.Context, r *bench.Run, n int, base *udpraw.PingPong) (float64, error) {
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
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return 0, err
	}
	r.EmitAgainst(bench.Point{X: float64(n), XUnit: senders, YUnit: measure.Microseconds}, samples[0], samples[1:]...)
	return measure.MedianRatio(samples[2].Figures, samples[1].Figures), nil
}

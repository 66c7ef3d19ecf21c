package experiments

import (
	"context"
	"math"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/verbs"
)

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
		Run:  verbsQPs,
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

func verbsQPs(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	r.Plan(len(r.Ints("qps")))
	alone, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer alone.Close()
	base, err := openPing(ctx, udpraw.Spin, smallSize)
	if err != nil {
		return bench.Verdict{}, err
	}
	defer base.Close()
	one, err := alone.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: smallSize})
	if err != nil {
		return bench.Verdict{}, err
	}
	var j evaluation
	for _, n := range r.Ints("qps") {
		r.Step("%d queue pairs", n)
		if err := qpsPoint(ctx, r, n, base, one, &j); err != nil {
			return bench.Verdict{}, err
		}
	}
	return j.makeVerdict(), nil
}

// qpsPoint connects n queue pairs, measures their memory, the latency of one of them with the
// others idle, and that of all used round-robin.
func qpsPoint(ctx context.Context, r *bench.Run, n int, base *udpraw.PingPong, one *verbsbench.PingPong, j *evaluation) error {
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
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	at := bench.Point{X: float64(n), XUnit: queuePairs, YUnit: measure.Microseconds}
	r.EmitAgainst(at, samples[0], samples[1:]...)
	if n == manyQPs {
		perQP := math.Ceil(float64(max(idle.HeapBytes[0], idle.HeapBytes[1])) / float64(n))
		j.addCheck(perQP, qpMemory, perQP <= qpMemory, "memory of a queue pair %.0f bytes (at most %d)", perQP, qpMemory)
		j.checks[len(j.checks)-1].Exact = true
		j.atMost("latency over that of a single queue pair", measure.MedianRatio(samples[2].Figures, samples[1].Figures), qpLatency)
	}
	return nil
}

package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/measure"
	"github.com/softrnic/softrnic/internal/bench/mpibench"
)

func init() {
	for _, c := range []struct {
		benchmark, name, figure string
		over                    float64 // TCP, in the paper, at 32 ranks
	}{
		{"Allreduce", "imb-allreduce", "7a", 0.2},
		{"Allgather", "imb-allgather", "7b", 0.16},
		{"Barrier", "imb-barrier", "8a", 0.2},
	} {
		params := []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "2,4,8,16,32", Quick: "2,8", Min: 2, Max: 64, Doc: "ranks, each a process"},
			overParam("rdma"),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "300", Quick: "50", Doc: "calls in a round"},
		}
		if c.benchmark != "Barrier" {
			params = append(params, bench.Param{Name: "size", Kind: bench.Int, Default: "4", Doc: "bytes that a rank brings; a number has 4"})
		}
		bench.Register(&bench.Experiment{
			Name:   c.name,
			Source: "IWARP fig. " + c.figure,
			Layer:  bench.LayerMPI,
			Claim:  fmt.Sprintf("On the most ranks %s over RDMA takes at most %.2f times as long as over TCP.", c.benchmark, c.over),
			Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}},
			Params: params,
			Run: func(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
				return collectives(ctx, r, c.benchmark, c.over)
			},
		})
	}
}

const ranksUnit = "ranks"

// collectives measures a call on more and more ranks, and judges it on the most.
func collectives(ctx context.Context, r *bench.Run, benchmark string, over float64) (bench.Verdict, error) {
	size := 0
	if benchmark != "Barrier" {
		size = r.Int("size")
	}
	counts := r.Ints("ranks")
	r.Plan(len(counts))
	var last judge
	most := 0
	for _, ranks := range counts {
		r.Step("%d ranks", ranks)
		samples, ratios, err := rankPoint(ctx, r, ranks, measure.Microseconds, func(j *mpibench.Job) measure.Round {
			return j.Collective(benchmark, size, r.Int("iters"))
		})
		if err != nil {
			return bench.Verdict{}, err
		}
		if ranks < most {
			continue
		}
		most, last = ranks, judge{}
		for i, ratio := range ratios {
			last.atMost(fmt.Sprintf("on %d ranks %s over %s", ranks, samples[1+i].Series, samples[0].Series), ratio, over)
		}
	}
	return last.verdict(), nil
}

// rankPoint opens jobs of so many ranks, lets them take turns and emits what they
// measure, with the ratios to the first.
func rankPoint(ctx context.Context, r *bench.Run, ranks int, unit string, round func(*mpibench.Job) measure.Round) ([]bench.Sample, []float64, error) {
	all, err := openJobs(ctx, r, ranks)
	defer all.close()
	if err != nil {
		return nil, nil, err
	}
	var turns lineup
	all.lineUp(&turns, round)
	samples, err := turns.run(ctx, r.Int("rounds"))
	if err != nil {
		return nil, nil, err
	}
	at := bench.Point{X: float64(ranks), XUnit: ranksUnit, YUnit: unit}
	return samples, r.EmitAgainst(at, samples[0], samples[1:]...), nil
}

package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/measure"
	"github.com/softrnic/softrnic/internal/bench/mpibench"
	"github.com/softrnic/softrnic/mpi/nas"
)

func init() {
	for _, k := range []struct {
		kernel, what string
		over         float64 // TCP, in the paper, at 16 ranks
	}{
		{"is", "The integer sort", 1.15},
		{"cg", "The conjugate gradient method", 1.04},
	} {
		bench.Register(&bench.Experiment{
			Name:   "nas-" + k.kernel,
			Source: "IWARP fig. 8b",
			Layer:  bench.LayerMPI,
			Claim:  fmt.Sprintf("%s of NAS on 16 ranks does at least %.2f times as many operations a second over RDMA as over TCP; its result is that published.", k.what, k.over),
			Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}},
			Params: []bench.Param{
				{Name: "ranks", Kind: bench.Ints, Default: "4,16", Quick: "4", Max: 64, Doc: "ranks, each a process: a power of two"},
				{Name: "class", Kind: bench.Words, Default: "A", Quick: "S", Choices: []string{"S", "W", "A", "B", "C"}, Doc: "size of the problem"},
				overParam("rdma"),
				{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
			},
			Run: func(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
				return kernel(ctx, r, k.kernel, k.over)
			},
		})
	}
}

// operations is the unit of the kernels' figures: those of NPB's report.
const operations = "Mop/s"

// kernel measures a kernel, whose ranks verify its result, and judges it on the
// most ranks.
func kernel(ctx context.Context, r *bench.Run, name string, over float64) (bench.Verdict, error) {
	words := r.Words("class")
	class, err := nas.ParseClass(words[len(words)-1])
	if err != nil {
		return bench.Verdict{}, err
	}
	counts := r.Ints("ranks")
	r.Plan(len(counts))
	var last judge
	most := 0
	for _, ranks := range counts {
		r.Step("class %v on %d ranks", class, ranks)
		samples, ratios, err := rankPoint(ctx, r, ranks, operations, func(j *mpibench.Job) measure.Round { return j.Kernel(name, class) })
		if err != nil {
			return bench.Verdict{}, err
		}
		if ranks < most {
			continue
		}
		most, last = ranks, judge{}
		for i, ratio := range ratios {
			last.atLeast(fmt.Sprintf("class %v on %d ranks, %s over %s", class, ranks, samples[1+i].Series, samples[0].Series), ratio, over)
		}
	}
	return last.verdict(), nil
}

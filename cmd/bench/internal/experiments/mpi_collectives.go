package experiments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
)

func init() {
	for _, c := range []imbExperiment{
		{benchmark: "Allreduce", figure: "7a", overTCP: 0.2, overAnother: 0.5, size: "8"},
		{benchmark: "Allgather", figure: "7b", overTCP: 0.16, size: "4"},
		{benchmark: "Barrier", figure: "8a", overTCP: 0.2, overAnother: 0.5},
	} {
		claim := fmt.Sprintf("On the largest number of ranks %s takes at most %.2f times as long as over TCP.", c.benchmark, c.overTCP)
		if c.overAnother > 0 {
			claim = fmt.Sprintf("On 4 and on 16 ranks %s takes at most %.2f times as long as Open MPI over TCP. %s", c.benchmark, c.overAnother, claim)
		}
		claim += " This applies to messages (mpi-rdma) and to shared memory (mpi-shared), the default within a machine."
		params := []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "2,4,8,16,32", Quick: "4,16", Min: 2, Max: 64, Doc: "ranks, each a process"},
			overParam("rdma,shared"),
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "1000", Quick: "50", Doc: "calls in a round"},
		}
		if c.size != "" {
			params = append(params, bench.Param{Name: "size", Kind: bench.Int, Default: c.size, Doc: "bytes of a rank's contribution, in elements of 4 bytes"})
		}
		var tour bench.Settings
		if c.benchmark == "Barrier" {
			tour = bench.Settings{"ranks": "4", "over": "shared"}
		}
		bench.Register(&bench.Experiment{
			Name:   "imb-" + strings.ToLower(c.benchmark),
			Source: "IWARP fig. " + c.figure,
			Layer:  bench.LayerMPI,
			Claim:  claim,
			Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}},
			Params: params, Tour: tour,
			Run: evaluated(c.runExperiment),
		})
	}
}

// An imbExperiment measures one collective of the Intel benchmarks.
type imbExperiment struct {
	benchmark, figure string
	overTCP           float64 // limit over TCP: the paper's at 32 ranks
	overAnother       float64 // limit over Open MPI; 0 means no claim
	size              string  // default size in bytes; empty for calls without data
}

const ranksUnit = "ranks"

// comparedOn has the numbers of ranks for the comparison with Open MPI.
var comparedOn = []int{4, 16}

// runExperiment measures a call on increasing numbers of ranks. The largest is compared with
// TCP.
func (c imbExperiment) runExperiment(ctx context.Context, r *run) error {
	size := 0
	if c.size != "" {
		size = r.Int("size")
	}
	counts := r.Ints("ranks")
	r.Plan(len(counts))
	other, err := openOpenMPI(ctx, r)
	if err != nil {
		return err
	}
	defer other.close()
	for _, ranks := range counts {
		r.Step("%d ranks", ranks)
		samples, err := rankPoint(ctx, r, ranks, measure.Microseconds, func(all jobs, set *seriesSet) {
			all.addTo(set, func(j *mpibench.Job) measure.Round { return j.Collective(c.benchmark, size, r.Int("iters")) })
			other.addTo(set, ranks, strings.ToLower(c.benchmark), size, r.Int("iters"))
		})
		if err != nil {
			return err
		}
		against := func(baseline string, limit float64) {
			eachRatioOver(samples, baseline, func(series string, ratio float64) {
				r.atMost(fmt.Sprintf("on %d ranks %s over %s", ranks, series, baseline), ratio, limit)
			})
		}
		if c.overAnother > 0 && slices.Contains(comparedOn, ranks) {
			against(overOpenMPI, c.overAnother)
		}
		if ranks == slices.Max(counts) {
			against(string(mpibench.TCP), c.overTCP)
		}
	}
	other.explainAbsence(&r.evaluation)
	return nil
}

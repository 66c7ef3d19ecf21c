package experiments

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
)

func init() {
	for _, k := range []nasExperiment{
		{kernel: "is", subject: "The integer sort", source: "IWARP fig. 8b", class: "A", ranks: "4,16", over: 1.15, four: 1 / 0.85},
		{kernel: "cg", subject: "The conjugate gradient method", source: "IWARP fig. 8b", class: "A", ranks: "4,16", over: 1.04, four: 1 / 0.96},
		{kernel: "ep", subject: "The embarrassingly parallel kernel", source: bench.Adapter, class: "W", ranks: "1,2,4", even: 1.05},
	} {
		bench.Register(&bench.Experiment{
			Name:   "nas-" + k.kernel,
			Source: k.source,
			Layer:  bench.LayerMPI,
			Claim:  k.claimText(),
			Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}},
			Params: []bench.Param{
				{Name: "ranks", Kind: bench.Ints, Default: k.ranks, Quick: "4", Max: 64, Doc: "ranks, each a process: a power of two"},
				{Name: "class", Kind: bench.Words, Default: k.class, Quick: "S", Choices: []string{"S", "W", "A", "B", "C"}, Doc: "problem size"},
				overParam("rdma"),
				{Name: "beside", Kind: bench.Words, Default: "npb", Choices: []string{"npb", "nothing"}, Doc: "other implementation to run: NAS' own programs, such as is.A.x in PATH, with Open MPI over TCP"},
				{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
			},
			Run: evaluated(k.runExperiment),
		})
	}
}

// A nasExperiment measures one NAS kernel.
type nasExperiment struct {
	kernel, subject, source string
	class, ranks            string  // defaults
	over                    float64 // limit over TCP on the largest number of ranks: the paper's on 16
	four                    float64 // limit over TCP on 4 ranks in class A
	even                    float64 // or the maximum ratio in either direction
}

const (
	// overNPB is the series of NAS' own programs, which are built with Open MPI.
	overNPB    = "npb-" + overOpenMPI
	npbAtLeast = 1.0
	npbRanks   = 4
	npbClass   = nas.A
	operations = "Mop/s" // unit of NPB's report
)

func (k nasExperiment) claimText() string {
	if k.even > 0 {
		return fmt.Sprintf("%s of NAS has the same rate over RDMA as over TCP (within %.0f %%), because it hardly communicates. "+
			"Its result is the published one.", k.subject, 100*(k.even-1))
	}
	return fmt.Sprintf("%s of NAS in class A on 4 ranks has at least the rate of NAS' own program with Open MPI over TCP or, if that is not installed, "+
		"at least %.2f times the rate over TCP; on 16 ranks it has at least %.2f times the rate over TCP. Its result is the published one.", k.subject, k.four, k.over)
}

// runExperiment measures a kernel. The ranks verify its result.
func (k nasExperiment) runExperiment(ctx context.Context, r *run) error {
	words := r.Words("class")
	class, err := nas.ParseClass(words[len(words)-1])
	if err != nil {
		return err
	}
	npb, err := k.findNPB(ctx, r, class)
	if err != nil {
		return err
	}
	counts := r.Ints("ranks")
	r.Plan(len(counts))
	for _, ranks := range counts {
		r.Step("class %v on %d ranks", class, ranks)
		samples, err := rankPoint(ctx, r, ranks, operations, func(all jobs, set *seriesSet) {
			all.addTo(set, func(j *mpibench.Job) measure.Round { return j.Kernel(k.kernel, class) })
			if npb != nil {
				set.addSeries(overNPB, func(ctx context.Context) (float64, error) { return npb.Mops(ctx, ranks) })
			}
		})
		if err != nil {
			return err
		}
		k.evaluateKernel(&r.evaluation, samples, class, ranks, ranks == slices.Max(counts))
	}
	return nil
}

// findNPB returns NAS' own program, or nil if it is not selected or not installed.
func (k nasExperiment) findNPB(ctx context.Context, r *run, class nas.Class) (*peers.NPB, error) {
	if !slices.Contains(r.Words("beside"), "npb") {
		r.addRemark("NAS' own program was not selected")
		return nil, nil
	}
	npb, err := peers.FindNPB(ctx, k.kernel, class.String())
	if errors.Is(err, exec.ErrNotFound) {
		r.addRemark("no comparison with NAS' own program: %v", err)
		return nil, nil
	}
	return npb, err
}

// evaluateKernel compares the kernel over RDMA with its baselines.
func (k nasExperiment) evaluateKernel(j *evaluation, samples []bench.Sample, class nas.Class, ranks int, largest bool) {
	against := func(baseline string, check func(desc string, ratio, limit float64), limit float64) (compared bool) {
		eachRatioOver(samples, baseline, func(series string, ratio float64) {
			compared = true
			check(fmt.Sprintf("class %v on %d ranks, %s over %s", class, ranks, series, baseline), ratio, limit)
		})
		return compared
	}
	tcp := string(mpibench.TCP)
	if k.even > 0 {
		against(tcp, func(desc string, ratio, limit float64) { j.atMost(desc+" or the inverse", max(ratio, 1/ratio), limit) }, k.even)
		return
	}
	if ranks == npbRanks && class == npbClass && !against(overNPB, j.atLeast, npbAtLeast) {
		against(tcp, j.atLeast, k.four)
	}
	if largest {
		against(tcp, j.atLeast, k.over)
	}
}

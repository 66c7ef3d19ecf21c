package experiments

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
)

func init() {
	for _, k := range []nasExperiment{
		{kernel: "is", subject: "The integer sort", source: "IWARP fig. 8b", class: "A", ranks: "2,4,16,32", over: 1.15, four: 1 / 0.85},
		{kernel: "cg", subject: "The conjugate gradient method", source: "IWARP fig. 8b", class: "A", ranks: "2,4,16,32", over: 1.04, four: 1 / 0.96},
		{kernel: "ep", subject: "The embarrassingly parallel kernel", source: bench.Adapter, class: "W", ranks: "1,2,4", even: 1.05},
	} {
		nets := overParam("fast,rdma")
		if k.even == 0 {
			nets.Default += "," + udWord + "," + hybridWord
		}
		nets.Choices = append(nets.Choices, udWord, hybridWord)
		nets.Doc += ", datagrams, or RC connections to some ranks and datagrams to the others"
		register(&bench.Experiment{
			Name:   "nas-" + k.kernel,
			Source: k.source,
			Layer:  bench.LayerMPI,
			Claims: k.claimList(),
			Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}, {Name: "rc-limit", Unit: limitUnit}},
			Params: []bench.Param{
				{Name: "ranks", Kind: bench.Ints, Default: k.ranks, Quick: "4", Max: 64, Check: bench.IsPowerOfTwo, Doc: "ranks, each a process: a power of two"},
				{Name: "class", Kind: bench.Words, Default: k.class, Quick: "S", Choices: []string{"S", "W", "A", "B", "C"}, OfClaim: true, Doc: "problem size"},
				nets,
				rcLimitParam(),
				{Name: "beside", Kind: bench.Words, Default: "npb", Choices: []string{"npb", "nothing"}, Doc: "other implementation to run: NAS' own programs, such as is.A.x in PATH, with Open MPI over TCP"},
				{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
			},
			Run: runFunc(k.runExperiment),
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
	operations = "Mop/s" // unit of NPB's report

	npbPackages = "no Debian package: build NPB 3.4 with mpicc of libopenmpi-dev"
)

// claimList returns the statements. They are about class A, or W of a kernel that hardly
// communicates. The ranks verify each result: a wrong one fails the experiment.
func (k nasExperiment) claimList() []bench.Statement {
	fast, sends := string(mpibench.Fast), string(mpibench.RDMA)
	over := func(of string, over []string, at bench.Points, limit bench.Limit) bench.Comparison {
		return bench.Ratio{Of: []string{of}, Over: over, Unit: operations, At: at, Limit: limit}
	}
	if k.even > 0 {
		return []bench.Statement{{
			Sentence: fmt.Sprintf("%s of NAS has the same rate over RDMA as over TCP (within %.0f %%), because it hardly communicates.", k.subject, 100*(k.even-1)),
			Compare:  bench.Alike{Series: []string{sends, string(mpibench.TCP)}, Unit: operations, At: bench.Everywhere(ranksUnit), Limit: bench.AtMost(k.even)},
		}}
	}
	four, sixteen := bench.At(4, ranksUnit), bench.At(16, ranksUnit)
	paper := fmt.Sprintf("%.0f %% faster than MPI over TCP", 100*(k.over-1))
	two := bench.At(2, ranksUnit)
	return append([]bench.Statement{
		{
			Sentence: fmt.Sprintf("%s of NAS on 16 ranks has at least %.2f times the rate over TCP, over the RDMA fast path.", k.subject, k.over),
			Paper:    paper, Number: k.over,
			Compare: over(fast, []string{string(mpibench.TCP)}, sixteen, bench.AtLeast(k.over)), Because: shareProcessors,
			Evidence: over(fast, []string{string(mpibench.TCP)}, two, bench.AtLeast(k.over)),
		},
		{
			Sentence: "It does by sends and receives.",
			Paper:    paper, Number: k.over,
			Compare: over(sends, []string{string(mpibench.TCP)}, sixteen, bench.AtLeast(k.over)), Because: shareProcessors,
			Evidence: over(sends, []string{string(mpibench.TCP)}, two, bench.AtLeast(k.over)),
		},
		{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("On 4 ranks it has at least %.2f times the rate over TCP.", k.four),
			Compare:  over(sends, []string{string(mpibench.TCP)}, four, bench.AtLeast(k.four)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "On 4 and on 16 ranks it has at least the rate of NAS' own program with Open MPI over TCP.",
			Compare: bench.All{over(sends, []string{overNPB}, four, bench.AtLeast(1)),
				over(sends, []string{overNPB}, sixteen, bench.AtLeast(1))},
		},
	}, k.netClaims()...)
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
		if err := k.measureRanks(ctx, r, class, ranks, npb); err != nil {
			return err
		}
	}
	return nil
}

// measureRanks measures one number of ranks. npb may be nil.
func (k nasExperiment) measureRanks(ctx context.Context, r *run, class nas.Class, ranks int, npb *peers.NPB) error {
	point, err := openNASPoint(ctx, r, ranks)
	defer point.close()
	if err != nil {
		return err
	}
	return point.measureKernel(ctx, r, k.kernel, class, func(set *seriesSet) {
		if npb != nil {
			set.addOpponent(overNPB, npbPackages, func(ctx context.Context) (float64, error) { return npb.Mops(ctx, ranks) })
		}
	})
}

// findNPB returns NAS' own program, or nil if it is not selected or not installed.
func (k nasExperiment) findNPB(ctx context.Context, r *run, class nas.Class) (*peers.NPB, error) {
	if !slices.Contains(r.Words("beside"), "npb") {
		r.EmitAbsent(overNPB, "not selected (--set beside=npb)")
		return nil, nil
	}
	npb, err := peers.FindNPB(ctx, k.kernel, class.String())
	if errors.Is(err, exec.ErrNotFound) {
		r.EmitAbsent(overNPB, "not installed here (%s): %v", npbPackages, err)
		return nil, nil
	}
	return npb, err
}

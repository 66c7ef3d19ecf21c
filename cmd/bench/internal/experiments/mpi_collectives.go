package experiments

import (
	"context"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
)

func init() {
	for _, c := range []imbExperiment{
		{benchmark: "Allreduce", figure: "7a", paper: "80 % below MPI over TCP (48.47 us and 264.0 us)", overTCP: 0.2, overAnother: 0.5, size: "8"},
		{benchmark: "Allgather", figure: "7b", paper: "84 % below MPI over TCP (47.92 us and 302.48 us)", overTCP: 0.16, size: "4"},
		{benchmark: "Barrier", figure: "8a", paper: "80 % below MPI over TCP", overTCP: 0.2, overAnother: 0.5},
	} {
		params := []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "2,4,8,16,32", Quick: "4,16", Min: 2, Max: 64, Doc: "ranks, each a process"},
			overParam("fast,rdma,shared"),
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "1000", Quick: "50", Doc: "calls in a round"},
		}
		if c.size != "" {
			params = append(params, bench.Param{Name: "size", Kind: bench.Int, Default: c.size, OfClaim: true, Doc: "bytes of a rank's contribution, in elements of 4 bytes"})
		}
		var tour bench.Settings
		if c.benchmark == "Barrier" {
			tour = bench.Settings{"ranks": "4", "over": "shared"}
		}
		bench.Register(&bench.Experiment{
			Name:   "imb-" + strings.ToLower(c.benchmark),
			Source: "IWARP fig. " + c.figure,
			Layer:  bench.LayerMPI,
			Claims: c.claimList(),
			Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}},
			Params: params, Tour: tour,
			Run: runFunc(c.runExperiment),
		})
	}
}

// An imbExperiment measures one collective of the Intel benchmarks.
type imbExperiment struct {
	benchmark, figure string
	paper             string  // result of the paper on paperRanks ranks
	overTCP           float64 // limit over TCP: the paper's
	overAnother       float64 // limit over Open MPI; 0 means no claim
	size              string  // default size in bytes; empty for calls without data
}

// paperRanks is the number of processes of the paper's collectives.
const paperRanks = 32

func (c imbExperiment) claimList() []bench.Statement {
	over := func(ranks int, of mpibench.Transport, over []string, most float64) bench.Ratio {
		return bench.Ratio{Of: []string{string(of)}, Over: over, Unit: measure.Microseconds, At: bench.At(float64(ranks), ranksUnit), Limit: bench.AtMost(most)}
	}
	const shareProcessors = "the ranks share processors, so that the time is that of their processing one after the other, and not that of the network"
	claims := []bench.Statement{
		{
			Sentence: fmt.Sprintf("On 32 ranks %s over the RDMA fast path takes at most %.2f times as long as MPI over TCP.", c.benchmark, c.overTCP),
			Paper:    c.paper, Number: c.overTCP,
			Compare: over(paperRanks, mpibench.Fast, overTCP, c.overTCP), Because: shareProcessors,
		},
		{
			Sentence: "By sends and receives it does, too.",
			Paper:    c.paper, Number: c.overTCP,
			Compare: over(paperRanks, mpibench.RDMA, overTCP, c.overTCP), Because: shareProcessors,
		},
		{
			Source:   bench.Adapter,
			Sentence: "With shared memory, the default within a machine, it does, too.",
			Compare:  over(paperRanks, mpibench.Shared, overTCP, c.overTCP),
		},
	}
	claims = append(claims, bench.Statement{
		Source:   bench.Adapter,
		Sentence: "On 4, 16 and 32 ranks shared memory takes no longer than Open MPI's own.",
		Compare: bench.All{over(4, mpibench.Shared, []string{sharedOpenMPI}, 1), over(16, mpibench.Shared, []string{sharedOpenMPI}, 1),
			over(paperRanks, mpibench.Shared, []string{sharedOpenMPI}, 1)},
	})
	if c.overAnother > 0 {
		for _, of := range []mpibench.Transport{mpibench.RDMA, mpibench.Shared} {
			claims = append(claims, bench.Statement{
				Source:   bench.Adapter,
				Sentence: fmt.Sprintf("On 4 and on 16 ranks %s takes at most %.2f times as long as Open MPI over TCP.", of, c.overAnother),
				Compare:  bench.All{over(4, of, []string{overOpenMPI}, c.overAnother), over(16, of, []string{overOpenMPI}, c.overAnother)},
			})
		}
	}
	return claims
}

const ranksUnit = "ranks"

// runExperiment measures a call on increasing numbers of ranks.
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
		err := rankPoint(ctx, r, ranks, measure.Microseconds, func(all jobs, set *seriesSet) {
			all.addTo(set, func(j *mpibench.Job) measure.Round { return j.Collective(c.benchmark, size, r.Int("iters")) })
			other.addTo(set, ranks, strings.ToLower(c.benchmark), size, r.Int("iters"))
			other.addSharedTo(set, ranks, strings.ToLower(c.benchmark), size, r.Int("iters"))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

package experiments

import (
	"context"
	"fmt"
	"strconv"
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
			params = append(params, bench.Param{Name: "sizes", Kind: bench.Ints, Default: c.size + otherSizes, Quick: c.size + ",4KiB", Min: 4, Max: 1 << 20, Check: bench.MultipleOf(4), Doc: "bytes of a rank's contribution, in elements of 4 bytes"})
		}
		var tour bench.Settings
		if c.benchmark == "Barrier" {
			tour = bench.Settings{"ranks": "4", "over": "shared"}
		}
		register(&bench.Experiment{
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
	size              string  // the paper's size in bytes; empty for calls without data
}

// otherSizes are the sizes besides the paper's.
const otherSizes = ",64,1KiB,4KiB,64KiB"

// usOfSize returns the unit of a time with a number of bytes: plain microseconds for the paper's.
func (c imbExperiment) usOfSize(size int) string {
	if c.size == "" || strconv.Itoa(size) == c.size {
		return measure.Microseconds
	}
	return fmt.Sprintf("%s of %s", measure.Microseconds, formatBytes(size))
}

// paperRanks is the number of processes of the paper's collectives.
const paperRanks = 32

// shareProcessors is the cause of small gains over TCP on many ranks, if two ranks, with a processor each,
// gain as in the paper.
const shareProcessors = "the ranks share processors, so that the time is that of their processing one after the other, and not that of the network"

func (c imbExperiment) claimList() []bench.Statement {
	over := func(ranks int, of mpibench.Transport, over []string, most float64) bench.Ratio {
		return bench.Ratio{Of: []string{string(of)}, Over: over, Unit: measure.Microseconds, At: bench.At(float64(ranks), ranksUnit), Limit: bench.AtMost(most)}
	}
	claims := []bench.Statement{
		{
			Sentence: fmt.Sprintf("On 32 ranks %s over the RDMA fast path takes at most %.2f times as long as MPI over TCP.", c.benchmark, c.overTCP),
			Paper:    c.paper, Number: c.overTCP,
			Compare: over(paperRanks, mpibench.Fast, overTCP, c.overTCP), Because: shareProcessors, Evidence: over(2, mpibench.Fast, overTCP, c.overTCP),
		},
		{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("By sends and receives it takes at most %.2f times as long, too.", c.overTCP),
			Compare:  over(paperRanks, mpibench.RDMA, overTCP, c.overTCP), Because: shareProcessors, Evidence: over(2, mpibench.RDMA, overTCP, c.overTCP),
		},
		{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("With shared memory, the default within a machine, it takes at most %.2f times as long, too.", c.overTCP),
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
	if c.size != "" {
		claims = append(claims, c.sizeClaims()...)
	}
	return claims
}

// sizeClaims returns the statements about longer contributions.
func (c imbExperiment) sizeClaims() []bench.Statement {
	over := func(ranks int, of, over string) bench.Comparison {
		var all bench.All
		for _, size := range []int{64, 1 << 10, 4 << 10, 64 << 10} {
			all = append(all, bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: c.usOfSize(size), At: bench.At(float64(ranks), ranksUnit), Limit: bench.AtMost(1)})
		}
		return all
	}
	return []bench.Statement{
		{
			Sentence: fmt.Sprintf("On 32 ranks %s of 64 B, 1, 4 and 64 KiB takes no longer over the RDMA fast path than over TCP.", c.benchmark),
			Paper:    "the curve over RDMA is below that over TCP at each size",
			Compare:  over(paperRanks, string(mpibench.Fast), string(mpibench.TCP)), Because: shareProcessors,
			Evidence: over(2, string(mpibench.Fast), string(mpibench.TCP)),
		},
		{
			Sentence: "By sends and receives it does not, either.",
			Paper:    "the curve over RDMA is below that over TCP at each size",
			Compare:  over(paperRanks, string(mpibench.RDMA), string(mpibench.TCP)), Because: shareProcessors,
			Evidence: over(2, string(mpibench.RDMA), string(mpibench.TCP)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "With shared memory it takes no longer than with Open MPI's own at these sizes.",
			Compare:  over(paperRanks, string(mpibench.Shared), sharedOpenMPI),
		},
	}
}

const ranksUnit = "ranks"

// runExperiment measures a call on increasing numbers of ranks, with each size.
func (c imbExperiment) runExperiment(ctx context.Context, r *run) error {
	sizes := []int{0}
	if c.size != "" {
		sizes = r.Ints("sizes")
	}
	counts := r.Ints("ranks")
	r.Plan(len(counts) * len(sizes))
	other, err := openOpenMPI(ctx, r)
	if err != nil {
		return err
	}
	defer other.close()
	for _, ranks := range counts {
		if err := c.measureRanks(ctx, r, ranks, sizes, other); err != nil {
			return err
		}
	}
	return nil
}

// measureRanks measures all sizes on a number of ranks.
func (c imbExperiment) measureRanks(ctx context.Context, r *run, ranks int, sizes []int, other openMPI) error {
	all, err := openJobs(ctx, r, ranks)
	defer all.close()
	if err != nil {
		return err
	}
	for _, size := range sizes {
		r.Step("%d ranks, %d B", ranks, size)
		var set seriesSet
		all.addTo(&set, func(j *mpibench.Job) measure.Round { return j.Collective(c.benchmark, size, r.Int("iters")) })
		other.addTo(&set, ranks, strings.ToLower(c.benchmark), size, r.Int("iters"))
		other.addSharedTo(&set, ranks, strings.ToLower(c.benchmark), size, r.Int("iters"))
		if _, err := r.measurePoint(ctx, &set, bench.Point{X: float64(ranks), XUnit: ranksUnit, YUnit: c.usOfSize(size)}); err != nil {
			return err
		}
	}
	return nil
}

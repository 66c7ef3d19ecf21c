package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/mpi"
)

// An a2aVariant is an implementation of alltoall and its series.
type a2aVariant struct {
	series string
	how    mpibench.Alltoall
}

// a2aParams returns the parameters of a2aSizes.
func a2aParams(ranks, sizes bench.Param, icm string) []bench.Param {
	ranks.Name, ranks.Kind, ranks.Min, ranks.Max = "ranks", bench.Ints, 2, 64
	ranks.Doc = "ranks, each a process" + ranks.Doc
	sizes.Name, sizes.Kind, sizes.Min, sizes.Max, sizes.Doc = "sizes", bench.Ints, 1, 1<<20, "bytes that a rank sends to each other rank"
	return []bench.Param{
		ranks, sizes,
		icmParam(icm, "off,"+icmSmall),
		besideOpenMPI(),
		{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
		{Name: "iters", Kind: bench.Int, Default: "40", Quick: "20", Doc: "calls in a round"},
	}
}

// a2aJobs are jobs that differ in the implementation of alltoall.
type a2aJobs []struct {
	a2aVariant
	job *mpibench.Job
}

// openA2A opens a job for each variant, with the given value of SOFTRNIC_ICM. The caller must close
// them, also after an error.
func openA2A(ctx context.Context, ranks int, icm string, variants []a2aVariant) (all a2aJobs, err error) {
	for _, s := range variants {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: ranks, Alltoall: &s.how, ICM: icm})
		if err != nil {
			return all, fmt.Errorf("%d ranks, %s: %w", ranks, s.series, err)
		}
		all = append(all, struct {
			a2aVariant
			job *mpibench.Job
		}{s, job})
	}
	return all, nil
}

func (all a2aJobs) close() {
	for _, s := range all {
		s.job.Close()
	}
}

// usOnRanks returns the unit of a time on the given number of ranks.
func usOnRanks(ranks int) string { return fmt.Sprintf("%s on %d ranks", measure.Microseconds, ranks) }

// a2aRanks measures variants on each number of ranks of the parameters.
func a2aRanks(ctx context.Context, r *run, variants []a2aVariant) error {
	r.Plan(len(r.Ints("ranks")) * r.a2aSteps())
	for _, ranks := range r.Ints("ranks") {
		if err := a2aSizes(ctx, r, ranks, variants); err != nil {
			return err
		}
	}
	return nil
}

// a2aSteps returns the number of steps of a2aSizes.
func (r *run) a2aSteps() int { return 1 + len(r.Ints("sizes"))*len(r.Words("icm")) }

// a2aSizes measures variants on the given number of ranks, of which the first is the baseline,
// with each model of the context cache. Those that no model slows down are measured without.
func a2aSizes(ctx context.Context, r *run, ranks int, variants []a2aVariant) error {
	r.Step("%d ranks", ranks)
	other, err := openOpenMPI(ctx, r)
	if err != nil {
		return err
	}
	defer other.close()
	for _, c := range r.contextCaches() {
		measured := variants
		if c.word != icmOff {
			measured = slices.DeleteFunc(slices.Clone(variants), func(s a2aVariant) bool { return s.series == a2aTable || s.series == a2aShared })
		}
		if err := a2aModel(ctx, r, ranks, c, measured, other); err != nil {
			return err
		}
	}
	return nil
}

func init() {
	register(&bench.Experiment{
		Name:   "a2a-rdma",
		Source: "RCUD fig. 7a",
		Layer:  bench.LayerMPI,
		Claims: a2aRDMAClaims(),
		Axes:   []bench.Axis{{Name: "block size", Unit: measure.Bytes}},
		Params: a2aParams(bench.Param{Default: "32", Quick: "8", Doc: "; the statements about 61 ranks need 61, which takes several times as long"},
			bench.Param{Default: "64,256,1KiB,4KiB,16KiB,64KiB", Quick: "1KiB,16KiB"}, "off,"+icmPaper),
		Run: runFunc(a2aRDMA),
	})
}

// Series of alltoalls over RC connections.
const (
	a2aDirect = "direct-srq"
	a2aWrites = "rdma"
	a2aSends  = "rtsrtr"
)

// Ranges of block sizes.
var (
	smallBlocks  = bench.Between(1, 256, measure.Bytes)
	mediumBlocks = bench.Between(257, 4<<10, measure.Bytes)
	largeBlocks  = bench.Between(4<<10+1, 64<<10, measure.Bytes)
)

// a2aOver returns the comparison of alltoalls on the given number of ranks.
func a2aOver(of, over string, ranks int, at bench.Points, limit bench.Limit) bench.Comparison {
	return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: usOnRanks(ranks), At: at, Limit: limit}
}

func a2aRDMAClaims() (claims []bench.Statement) {
	const sameCosts = "the adapter's own copy in software is the same for both, and a write with immediate data costs as much processor time as a send"
	for _, model := range []struct{ word, because string }{
		{icmOff, sameCosts},
		{icmPaper, sameCosts + ", and looks up the same contexts"},
	} {
		over := func(of, over string, ranks int, at bench.Points, limit bench.Limit) bench.Comparison {
			return a2aOver(withICM(of, model.word), withICM(over, model.word), ranks, at, limit)
		}
		for _, c := range []struct {
			name string
			at   bench.Points
		}{{"up to 256 B", smallBlocks}, {"above 256 B and up to 4 KiB", mediumBlocks}, {"above 4 KiB and up to 64 KiB", largeBlocks}} {
			claims = append(claims, bench.Statement{
				Sentence: withModel(model.word, fmt.Sprintf("An alltoall on 32 ranks of blocks %s by RDMA writes into the receive buffers takes at most 0.62 times as long as one that copies from a shared receive queue.", c.name)),
				Paper:    "38 % better on 32 nodes", Number: 0.62,
				Compare: over(a2aWrites, a2aDirect, paperRanks, c.at, bench.AtMost(0.62)),
				Because: model.because,
			})
		}
		claims = append(claims, bench.Statement{
			Sentence: withModel(model.word, "On 61 ranks an alltoall of blocks up to 4 KiB by RDMA writes takes at most 0.67 times as long."),
			Paper:    "over 33 % for small to medium messages on more nodes", Number: 0.67,
			Compare: over(a2aWrites, a2aDirect, 61, bench.Between(1, 4<<10, measure.Bytes), bench.AtMost(0.67)),
			Because: model.because,
		})
	}
	return append(claims, bench.Statement{
		Source:   "RCUD sec. 5.1.1",
		Sentence: "Zero-copy by sends with RTS and RTR takes longer than copying, for all sizes.",
		Paper:    "not a good idea",
		Compare:  a2aOver(a2aSends, a2aDirect, paperRanks, bench.Everywhere(measure.Bytes), bench.AtLeast(1)),
	})
}

func a2aRDMA(ctx context.Context, r *run) error {
	return a2aRanks(ctx, r, []a2aVariant{
		{a2aDirect, mpibench.Alltoall{Algorithm: "direct"}},
		{a2aWrites, mpibench.Alltoall{Algorithm: "rdma"}},
		{a2aSends, mpibench.Alltoall{Algorithm: "rtsrtr"}},
	})
}

func init() {
	register(&bench.Experiment{
		Name:   "a2a-ud",
		Source: "RCUD fig. 9",
		Layer:  bench.LayerMPI,
		Claims: a2aUDClaims(),
		Axes:   []bench.Axis{{Name: "block size", Unit: measure.Bytes}},
		Params: a2aParams(bench.Param{Default: "8,16,32,61", Quick: "8"},
			bench.Param{Default: "8,64,256,1KiB,4KiB,16KiB", Quick: "64,4KiB"}, "off,"+icmSmall+","+icmPaper),
		Run: runFunc(a2aUD),
	})
}

// Series of alltoalls, over RC connections unless the name says otherwise.
const (
	a2aDatagrams = "direct-ud"
	a2aBruck     = "bruck"
	a2aTable     = "table"  // algorithm selected by the table
	a2aShared    = "shared" // in shared memory, for messages that fit
)

// noContextCache is the cause of a smaller gain of UD than in the paper, if the gain appears with a model of
// the cache.
const noContextCache = "in the paper RC loses because the adapter caches few connection contexts: with a model of such a cache UD gains as much"

// fewConnections is the cause of a gain over Bruck's algorithm that a model of the cache does not
// bring.
const fewConnections = "Bruck's algorithm uses 2 log2(n) connections, whose contexts 16 entries hold, " +
	"and its copies, which the simulation of the paper's nodes needs for this gain (sim-a2a), are cheap here"

// a2aModelClaims returns the statements about UD on a number of ranks with a model of the context
// cache, with the causes of refutations.
func a2aModelClaims(ranks int, icm, bruck, rc string) []bench.Statement {
	over := func(over string, at bench.Points, limit bench.Limit) bench.Comparison {
		return a2aOver(withICM(a2aDatagrams, icm), withICM(over, icm), ranks, at, limit)
	}
	return []bench.Statement{
		{
			Sentence: withModel(icm, fmt.Sprintf("On %d ranks an alltoall of blocks up to 256 B by the direct algorithm over UD takes at most 0.64 times as long as by Bruck's algorithm.", ranks)),
			Paper:    "36 to 38 % better than Bruck for small messages", Number: 0.64,
			Compare: over(a2aBruck, smallBlocks, bench.AtMost(0.64)), Because: bruck,
		},
		{
			Sentence: withModel(icm, fmt.Sprintf("On %d ranks direct over UD takes at most 0.6 times as long as direct over RC.", ranks)),
			Paper:    "up to two times better than direct over RC", Number: 0.5,
			Compare: over(a2aDirect, smallBlocks, bench.AtMost(0.6)), Because: rc,
		},
		{
			Sentence: withModel(icm, fmt.Sprintf("On %d ranks blocks above 4 KiB take longer over UD than over RC.", ranks)),
			Paper:    "with increasing size RC becomes better than UD",
			Compare:  over(a2aDirect, largeBlocks, bench.AtLeast(1)),
		},
	}
}

func a2aUDClaims() (claims []bench.Statement) {
	for _, ranks := range []int{8, paperRanks, 61} {
		cached := a2aModelClaims(ranks, icmPaper, fewConnections, "")
		if ranks == 8 {
			cached = a2aModelClaims(ranks, icmSmall, "", "")
		}
		without := a2aModelClaims(ranks, icmOff, noContextCache, noContextCache)
		for i := range without {
			if without[i].Because != "" {
				without[i].Evidence = cached[i].Compare
			}
		}
		claims = append(append(claims, without...), cached...)
	}
	for _, ranks := range []int{16, paperRanks, 61} {
		claims = append(claims, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("On %d ranks the algorithm of the table, by messages, takes no longer than Open MPI over TCP with blocks up to 4 KiB.", ranks),
			Compare:  a2aOver(a2aTable, overOpenMPI, ranks, bench.Between(1, 4<<10, measure.Bytes), bench.AtMost(1)),
			Because:  "each rank that runs drives all of its packets itself, and waits for its turn on a processor",
		})
	}
	for _, c := range []struct{ series, name string }{{a2aTable, "the algorithm of the table"}, {a2aShared, "shared memory"}} {
		claims = append(claims, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("With 64 B on 16 ranks, %s takes at most 0.5 times as long as Open MPI over TCP.", c.name),
			Compare:  a2aOver(c.series, overOpenMPI, 16, bench.At(64, measure.Bytes), bench.AtMost(0.5)),
		})
	}
	return claims
}

func a2aUD(ctx context.Context, r *run) error {
	return a2aRanks(ctx, r, []a2aVariant{
		{a2aDirect, mpibench.Alltoall{Algorithm: "direct"}},
		{a2aDatagrams, mpibench.Alltoall{Algorithm: "ud", Net: mpi.UD}},
		{a2aBruck, mpibench.Alltoall{Algorithm: "bruck"}},
		{a2aTable, mpibench.Alltoall{}},
		{a2aShared, mpibench.Alltoall{Shared: true}},
	})
}

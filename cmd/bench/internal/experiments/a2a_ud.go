package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/mpi"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "a2a-ud",
		Source: "RCUD fig. 9",
		Layer:  bench.LayerMPI,
		Claim: "An alltoall of short blocks by the direct algorithm over UD takes at most 0.64 times as long as by Bruck's algorithm, and no longer than direct over RC. " +
			"With 64 B on 16 ranks, the algorithm of the table and shared memory each take at most 0.5 times as long as Open MPI over TCP.",
		Axes: []bench.Axis{{Name: "block size", Unit: measure.Bytes}},
		Params: a2aParams(bench.Param{Kind: bench.Ints, Default: "16,32,61", Quick: "8"},
			bench.Param{Default: "8,64,256,1KiB,4KiB,16KiB", Quick: "64,4KiB"}),
		Run: a2aUD,
	})
}

// Series of alltoalls, over RC connections unless the name says otherwise.
const (
	a2aDatagrams = "direct-ud"
	a2aBruck     = "bruck"
	a2aTable     = "table"  // algorithm selected by the table
	a2aShared    = "shared" // in shared memory, for messages that fit
)

// Limits of the claim.
const (
	udOverBruck    = 0.64 // in the paper, for blocks up to shortPiece
	udOverRC       = 1.0  // for blocks up to shortPiece
	shortPiece     = 256  // bytes
	tableOverOther = 0.5  // over Open MPI, for otherPiece on otherRanks
	otherPiece     = 64
	otherRanks     = 16
)

func a2aUD(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	variants := []a2aVariant{
		{a2aDirect, mpibench.Alltoall{Algorithm: "direct"}},
		{a2aDatagrams, mpibench.Alltoall{Algorithm: "ud", Net: mpi.UD}},
		{a2aBruck, mpibench.Alltoall{Algorithm: "bruck"}},
		{a2aTable, mpibench.Alltoall{}},
		{a2aShared, mpibench.Alltoall{Shared: true}},
	}
	r.Plan(len(r.Ints("ranks")) * (1 + len(r.Ints("sizes"))))
	var j evaluation
	for _, ranks := range r.Ints("ranks") {
		var overBruck, overRC extreme // largest ratios
		err := a2aSizes(ctx, r, ranks, variants, func(size int, samples []bench.Sample) {
			if size <= shortPiece {
				over := func(e *extreme, baseline string) {
					if ratio, ok := medianRatioOf(samples, a2aDatagrams, baseline); ok {
						e.keepMax(ratio, "with %d B", size)
					}
				}
				over(&overBruck, a2aBruck)
				over(&overRC, a2aDirect)
			}
			for _, ours := range []string{a2aTable, a2aShared} {
				if ratio, ok := medianRatioOf(samples, ours, overOpenMPI); ok && size == otherPiece && ranks == otherRanks {
					j.atMost(fmt.Sprintf("%d B on %d ranks, %s over Open MPI", size, ranks, ours), ratio, tableOverOther)
				}
			}
		})
		if err != nil {
			return bench.Verdict{}, err
		}
		if overBruck.seen {
			holds := overBruck.value <= udOverBruck
			j.addCheck(overBruck.value, udOverBruck, holds, "on %d ranks %s over %s %s %s (at most %.2f)", ranks, a2aDatagrams, a2aBruck, formatFigure(overBruck.value, udOverBruck, 2, holds), overBruck.where, udOverBruck)
			holds = overRC.value <= udOverRC
			j.addCheck(overRC.value, udOverRC, holds, "over %s %s %s (at most %.2f)", a2aDirect, formatFigure(overRC.value, udOverRC, 2, holds), overRC.where, udOverRC)
		}
	}
	if v := j.makeVerdict(); !v.Holds {
		j.addRemark("%s", "in the paper UD gains because the adapter caches few connection contexts and each rank has a processor; "+
			"here there is no context cache (ib-qp-latency), ranks share processors, and the ranks execute the reliability protocol over UD")
	}
	return j.makeVerdict(), nil
}

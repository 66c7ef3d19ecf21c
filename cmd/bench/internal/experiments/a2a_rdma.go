package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "a2a-rdma",
		Source: "RCUD fig. 7a",
		Layer:  bench.LayerMPI,
		Claim: "An alltoall on 32 ranks with RDMA writes into the receive buffers takes 0.62 times as long as one " +
			"that copies from a shared receive queue. Zero-copy by sends with RTS and RTR takes longer than copying.",
		Axes: []bench.Axis{{Name: "block size", Unit: measure.Bytes}},
		Params: a2aParams(bench.Param{Kind: bench.Int, Default: "32", Quick: "8"},
			bench.Param{Default: "64,256,1KiB,4KiB,16KiB,64KiB", Quick: "1KiB,16KiB"}),
		Run: a2aRDMA,
	})
}

// Series of alltoalls over RC connections.
const (
	a2aDirect  = "direct-srq"
	a2aWrites  = "rdma"
	a2aSends   = "rtsrtr"
	writesOver = 0.62 // over direct, in the paper
)

func a2aRDMA(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	ranks := r.Int("ranks")
	r.Plan(1 + len(r.Ints("sizes")))
	variants := []a2aVariant{
		{a2aDirect, mpibench.Alltoall{Algorithm: "direct"}},
		{a2aWrites, mpibench.Alltoall{Algorithm: "rdma"}},
		{a2aSends, mpibench.Alltoall{Algorithm: "rtsrtr"}},
	}
	var best, worst, sends extreme
	err := a2aSizes(ctx, r, ranks, variants, func(size int, samples []bench.Sample) {
		where := fmt.Sprintf("with %d B", size)
		if ratio, ok := medianRatioOf(samples, a2aWrites, a2aDirect); ok {
			best.keepMin(ratio, "%s", where)
			worst.keepMax(ratio, "%s", where)
		}
		if ratio, ok := medianRatioOf(samples, a2aSends, a2aDirect); ok {
			sends.keepMin(ratio, "%s", where)
		}
	})
	if err != nil {
		return bench.Verdict{}, err
	}
	var j evaluation
	holds := best.value <= writesOver
	j.addCheck(best.value, writesOver, holds, "on %d ranks %s takes %s times as long as %s %s (at most %.2f), and at worst %.2f %s",
		ranks, a2aWrites, formatFigure(best.value, writesOver, 2, holds), a2aDirect, best.where, writesOver, worst.value, worst.where)
	holds = sends.value >= 1
	j.addCheck(sends.value, 1, holds, "%s takes at least %s times as long %s (at least 1)", a2aSends, formatFigure(sends.value, 1, 2, holds), sends.where)
	return j.makeVerdict(), nil
}

package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "ib-qp-memory",
		Source: "RCUD fig. 6a",
		Layer:  bench.LayerVerbs,
		Claim:  "Memory grows linearly with the number of RC connections, while one UD queue pair reaches all peers.",
		Axes:   []bench.Axis{{Name: "peers", Unit: peersUnit}},
		Params: []bench.Param{
			{Name: "peers", Kind: bench.Ints, Default: "1,16,64,256,1024,4096,16384", Quick: "1,16,256,4096", Doc: "number of connected peers"},
		},
		Run: ibQPMemory,
	})
}

const peersUnit = "peers" // unit of the number of peers

// linearWithin is the ratio up to which the memory of one RC connection may differ between
// numbers of connections, so that growth counts as linear. Below linearFrom connections the
// constant part dominates.
const (
	linearWithin = 1.5
	linearFrom   = 16
)

func ibQPMemory(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	counts := slices.Sorted(slices.Values(r.Ints("peers")))
	r.Plan(len(counts))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer pair.Close()
	var each []float64 // bytes of one RC connection
	var last, lastUD float64
	for _, n := range counts {
		r.Step("%d peers", n)
		rc, err := idleConnMemory(ctx, pair, verbs.RC, n)
		if err != nil {
			return bench.Verdict{}, err
		}
		ud, err := idleConnMemory(ctx, pair, verbs.UD, n)
		if err != nil {
			return bench.Verdict{}, err
		}
		at := bench.Row{X: float64(n), XUnit: peersUnit, YUnit: measure.Bytes}
		at.Series, at.Y = "ud", ud
		r.Emit(at)
		at.Series, at.Y, at.Against = "rc", rc, &bench.Against{Baseline: "ud", Ratio: rc / ud}
		r.Emit(at)
		if n >= linearFrom {
			each = append(each, rc/float64(n))
		}
		last, lastUD = rc, ud
	}
	if len(each) < 2 {
		return bench.Verdict{Reason: fmt.Sprintf("the claim needs two numbers of peers of at least %d", linearFrom)}, nil
	}
	low, high := slices.Min(each), slices.Max(each)
	return bench.Verdict{
		Holds: high/low <= linearWithin && last > lastUD,
		Reason: fmt.Sprintf("an RC connection takes %.0f to %.0f bytes; for %d peers RC takes %.1f times the memory of one UD queue pair with its address handles",
			low, high, counts[len(counts)-1], last/lastUD),
	}, nil
}

// idleConnMemory returns the memory of n idle peers in one process.
func idleConnMemory(ctx context.Context, pair *verbsbench.Pair, transport verbs.QPType, n int) (float64, error) {
	c, err := pair.OpenIdleConns(ctx, verbsbench.IdleConnsOptions{Transport: transport, Peers: n})
	if err != nil {
		return 0, fmt.Errorf("%v with %d peers: %w", transport, n, err)
	}
	return float64(max(c.HeapBytes[0], 1)), c.Close(ctx)
}

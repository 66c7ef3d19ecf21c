package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	simulated "github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/mpi"
)

// An origin says where the value of a cost comes from. Comments of cluster.InfiniHost have the
// sources.
type origin int

const (
	published   origin = iota // a publication has the number
	inferred                  // from numbers of publications, by an assumption
	estimated                 // plausible for the hardware, without a publication
	chosenToFit               // among several, because it gives the ratios of fig. 9
)

// A simCost is a parameter of cluster.InfiniHost and its series in sim-costs.
type simCost struct {
	series string
	origin origin
	scale  func(c *simulated.Costs, factor float64)
}

// simCosts are all parameters of cluster.InfiniHost, except the MTU, which 8 bytes do not reach.
var simCosts = []simCost{
	scaledTime("latency", inferred, func(c *simulated.Costs) *time.Duration { return &c.Latency }),
	{"contexts", published, func(c *simulated.Costs, factor float64) {
		c.Contexts = max(1, int(factor*float64(c.Contexts))) // 0 is no limit
	}},
	scaledTime("post", inferred, func(c *simulated.Costs) *time.Duration { return &c.Post }),
	scaledTime("complete", inferred, func(c *simulated.Costs) *time.Duration { return &c.Complete }),
	scaledTime("match", inferred, func(c *simulated.Costs) *time.Duration { return &c.Match }),
	scaledTime("gap", estimated, func(c *simulated.Costs) *time.Duration { return &c.Gap }),
	scaledRate("byte", estimated, func(c *simulated.Costs) *float64 { return &c.ByteTime }),
	scaledRate("copy-byte", estimated, func(c *simulated.Costs) *float64 { return &c.CopyByte }),
	scaledTime("context-miss", chosenToFit, func(c *simulated.Costs) *time.Duration { return &c.ContextMiss }),
	scaledTime("copy-block", chosenToFit, func(c *simulated.Costs) *time.Duration { return &c.CopyBlock }),
}

func scaledTime(series string, from origin, at func(c *simulated.Costs) *time.Duration) simCost {
	return simCost{series, from, func(c *simulated.Costs, factor float64) { *at(c) = time.Duration(factor * float64(*at(c))) }}
}

func scaledRate(series string, from origin, at func(c *simulated.Costs) *float64) simCost {
	return simCost{series, from, func(c *simulated.Costs, factor float64) { *at(c) *= factor }}
}

// costsFrom returns the series of the costs of the given origins.
func costsFrom(origins ...origin) (series []string) {
	for _, c := range simCosts {
		if slices.Contains(origins, c.origin) {
			series = append(series, c.series)
		}
	}
	return series
}

// Units of sim-costs.
const (
	timesCost   = "times the cost"
	udOverBruck = "UD over Bruck"
	udOverRC    = "UD over RC"
	writesOver  = "writes over RC"
)

func init() {
	register(&bench.Experiment{
		Name:   "sim-costs",
		Source: bench.Adapter,
		Layer:  bench.LayerMPI,
		Claims: simCostsClaims(),
		Axes:   []bench.Axis{{Name: "factor", Unit: timesCost}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Int, Default: "32", Quick: "32", Min: 2, Max: 256, Doc: "simulated ranks, each with a processor and an adapter of RCUD's"},
			{Name: "size", Kind: bench.Int, Default: "8", Quick: "8", Min: 1, Max: 64 << 10, Doc: "bytes that a rank sends to each other rank"},
		},
		Run: runFunc(simCostRatios),
	})
}

// simFactors are the factors by which sim-costs changes one cost at a time.
var simFactors = []float64{0, 0.5, 1, 2}

func simCostsClaims() []bench.Statement {
	halfToDouble, without := bench.Between(0.5, 2, timesCost), bench.At(0, timesCost)
	ratio := func(series []string, unit string, at bench.Points, limit bench.Limit) bench.Comparison {
		return bench.Value{Of: series, Unit: unit, At: at, Limit: limit}
	}
	plain := costsFrom(published, inferred, estimated)
	return []bench.Statement{{
		Sentence: "On 32 ranks, half or twice of any estimated cost leaves UD over Bruck between 0.52 and 0.72, and UD over RC between 0.4 and 0.6.",
		Compare: bench.All{ratio(costsFrom(estimated), udOverBruck, halfToDouble, bench.Within(0.52, 0.72)),
			ratio(costsFrom(estimated), udOverRC, halfToDouble, bench.Within(0.4, 0.6))}, Exact: true,
		Because: "the adapter fetches contexts beside its other work, so RC loses less if the gap between packets is short",
	}, {
		Sentence: "So does half or twice of any inferred cost.",
		Compare: bench.All{ratio(costsFrom(inferred), udOverBruck, halfToDouble, bench.Within(0.52, 0.72)),
			ratio(costsFrom(inferred), udOverRC, halfToDouble, bench.Within(0.4, 0.6))}, Exact: true,
		Because: "UD and RC take the same processor time for a message, and Bruck's algorithm has few messages, so that this time weighs on both ratios",
	}, {
		Sentence: "UD is faster than Bruck's algorithm and than RC without any one of the costs that were not chosen to fit.",
		Compare:  bench.All{ratio(plain, udOverBruck, without, bench.AtMost(1)), ratio(plain, udOverRC, without, bench.AtMost(1))}, Exact: true,
	}, {
		Sentence: "With half of the cost of a block UD over Bruck is at most 0.8, and with half of that of a context UD over RC.",
		Compare: bench.All{ratio([]string{"copy-block"}, udOverBruck, bench.At(0.5, timesCost), bench.AtMost(0.8)),
			ratio([]string{"context-miss"}, udOverRC, bench.At(0.5, timesCost), bench.AtMost(0.8))}, Exact: true,
		Because: "these two costs were chosen for the ratios",
	}}
}

func simCostRatios(ctx context.Context, r *run) error {
	ranks, size := r.Int("ranks"), r.Int("size")
	r.Plan(len(simCosts) * len(simFactors))
	for _, c := range simCosts {
		for _, factor := range simFactors {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.Step("%v times %s", factor, c.series)
			costs := simulated.InfiniHost
			c.scale(&costs, factor)
			var took [4]float64
			for i, v := range []struct {
				net       mpi.Net
				algorithm string
			}{{mpi.UD, "ud"}, {mpi.RDMA, "bruck"}, {mpi.RDMA, "direct"}, {mpi.RDMA, "rdma"}} {
				var err error
				if took[i], err = simulateAlltoall(simulated.Options{Hosts: ranks, Costs: costs}, mpi.Options{Net: v.net}, v.algorithm, size); err != nil {
					return fmt.Errorf("%v times %s: %s: %w", factor, c.series, v.algorithm, err)
				}
			}
			for _, row := range []bench.Row{{YUnit: udOverBruck, Y: took[0] / took[1]}, {YUnit: udOverRC, Y: took[0] / took[2]}, {YUnit: writesOver, Y: took[3] / took[2]}} {
				row.Series, row.X, row.XUnit = c.series, factor, timesCost
				r.Emit(row)
			}
		}
	}
	return nil
}

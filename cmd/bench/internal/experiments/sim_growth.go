package experiments

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	simulated "github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/mpi"
)

// fewBuffers are the options of thousands of ranks in one process.
var fewBuffers = mpi.UDOptions{Receives: 64, Packets: 64}

// A growthCall is a collective call whose time sim-growth simulates.
type growthCall struct {
	series     string
	net        mpi.Net
	collective string
	algorithm  string
	most       int // ranks: above them the memory or the time of the simulation is too much
	warmUp     int
	calls      int
	change     func(c *simulated.Costs)                             // of the costs, or nil
	prepare    func(w mpi.World, large int) func() error            // the call of a rank
	model      func(c *simulated.Costs, n, large int) time.Duration // LogGP, without headers
}

// Series of sim-growth.
const (
	growthBarrier   = "barrier"
	growthDoubling  = "allreduce-8B"
	growthHalving   = "allreduce-rabenseifner"
	growthRing      = "allreduce-ring"
	growthSetUpUD   = "set-up-ud"
	growthSetUpRC   = "set-up-rc"
	growthMemoryUD  = "memory-ud"
	growthMemoryRC  = "memory-rc"
	growthBlock     = 8 // bytes of a block of alltoall
	growthQPs       = "queue pairs a rank"
	growthMessages  = "CM messages a rank"
	growthLog2Ranks = "ceil-log2-ranks" // in growthQPs
	simulationTime  = "-simulation"     // behind a series: time that its simulation takes, in seconds
	seconds         = "s of this machine"
)

// modelOf returns the series of the model of a series.
func modelOf(series string) string { return series + "-model" }

// growthRounds returns the rounds of an algorithm that doubles: ceil(log2 n).
func growthRounds(n int) int { return bits.Len(uint(n - 1)) }

// eagerSize is the largest message of MPI over RC that both ends copy.
const eagerSize = 8 << 10

// message returns the time of a message of MPI on an idle network by LogGP, L + 2o and b times G, without
// headers. A short message is copied at both ends. Before a long one there are two more messages
// without a copy: its announcement, and the request that reads it.
func message(c *simulated.Costs, b int) time.Duration {
	overhead := c.Post + c.Complete + 2*c.Match
	g := c.ByteTime + float64(c.Gap)/float64(min(c.MTU, wireMTU)) // packets follow each other
	d := overhead + c.Latency + 2*c.Gap + time.Duration(g*float64(b)+c.ByteTime*float64(min(b, wireMTU)))
	if b > eagerSize {
		return d + overhead + 2*(c.Latency+2*c.Gap)
	}
	return d + time.Duration(2*c.CopyByte*float64(b))
}

// wireMTU is the largest payload of a packet.
const wireMTU = 4 << 10

// growthCalls are the calls of sim-growth.
var growthCalls = []growthCall{
	{growthBarrier, mpi.UD, "barrier", "dissemination", 64 << 10, 2, 4, nil,
		func(w mpi.World, _ int) func() error { return w.Barrier },
		func(c *simulated.Costs, n, _ int) time.Duration {
			return time.Duration(growthRounds(n)) * message(c, 0)
		}},
	{growthDoubling, mpi.UD, "allreduce", "recursive-doubling", 4 << 10, 2, 4, nil,
		func(w mpi.World, _ int) func() error { return allreduceOf(w, 1) },
		func(c *simulated.Costs, n, _ int) time.Duration {
			return time.Duration(growthRounds(n)) * message(c, 8)
		}},
	{growthHalving, mpi.RDMA, "allreduce", "rabenseifner", 1 << 10, 1, 2, nil,
		func(w mpi.World, large int) func() error { return allreduceOf(w, large/8) },
		func(c *simulated.Costs, n, large int) (d time.Duration) {
			for k := 1; k < n; k *= 2 {
				d += 2 * message(c, large/(2*k))
			}
			return d
		}},
	{growthRing, mpi.RDMA, "allreduce", "ring", 256, 1, 1, nil,
		func(w mpi.World, large int) func() error { return allreduceOf(w, large/8) },
		func(c *simulated.Costs, n, large int) time.Duration {
			return time.Duration(2*(n-1)) * message(c, large/n)
		}},
	{a2aBruck, mpi.RDMA, "alltoall", "bruck", 1 << 10, 1, 2, nil, growthAlltoall, bruckModel},
	{simPlain, mpi.RDMA, "alltoall", "bruck", 1 << 10, 1, 2, func(c *simulated.Costs) { c.CopyBlock = 0 }, growthAlltoall, bruckModel},
	{a2aDirect, mpi.RDMA, "alltoall", "direct", 256, 1, 2, nil, growthAlltoall,
		func(c *simulated.Costs, n, _ int) time.Duration {
			miss := time.Duration(0)
			if c.Contexts > 0 && n-1 > c.Contexts {
				miss = c.ContextMiss // of each message, in the adapter of either end
			}
			busy := c.Post + c.Complete + 2*c.Match
			return message(c, growthBlock) + time.Duration(n-2)*max(busy, 2*(c.Gap+miss))
		}},
	{a2aDatagrams, mpi.UD, "alltoall", "ud", 1 << 10, 1, 2, nil, growthAlltoall,
		func(c *simulated.Costs, n, _ int) time.Duration {
			return message(c, growthBlock) + time.Duration(n-2)*(c.Post+c.Complete+2*c.Match)
		}},
}

// bruckModel is the time of Bruck's algorithm: rounds of messages of half of the blocks, which are
// packed and unpacked, and the blocks are put in order before and after.
func bruckModel(c *simulated.Costs, n, _ int) time.Duration {
	blocks := growthRounds(n)*n + 2*n
	return time.Duration(growthRounds(n))*message(c, n/2*growthBlock) + time.Duration(blocks)*c.CopyBlock + time.Duration(float64(blocks*growthBlock)*c.CopyByte)
}

func growthAlltoall(w mpi.World, _ int) func() error {
	send, recv := mpi.Bytes(make([]byte, w.Size()*growthBlock)), mpi.Bytes(make([]byte, w.Size()*growthBlock))
	return func() error { return w.Alltoall(send, recv) }
}

// allreduceOf returns an allreduce of n integers, which checks its result.
func allreduceOf(w mpi.World, n int) func() error {
	send, recv := make([]int64, n), make([]int64, n)
	for i := range send {
		send[i] = int64(w.Rank())
	}
	return func() error {
		if err := w.Allreduce(mpi.Of(send), mpi.Of(recv), mpi.Sum); err != nil {
			return err
		}
		if sum := int64(w.Size()) * int64(w.Size()-1) / 2; recv[0] != sum || recv[n-1] != sum {
			return fmt.Errorf("sum %d, want %d", recv[0], sum)
		}
		return nil
	}
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sim-growth",
		Source: bench.Adapter,
		Layer:  bench.LayerMPI,
		Claims: simGrowthClaims(),
		Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "64,256,1K,4K", Quick: "64,256,1K", Min: 2, Max: 64 << 10, Doc: "simulated ranks, each with a processor and an adapter; above 4,096 the barrier only"},
			{Name: "direct", Kind: bench.Int, Default: "1K", Quick: "256", Min: 2, Max: 1 << 10, Doc: "most ranks of a direct alltoall, whose ranks all have state for each other; over RC at most 256"},
			{Name: "large", Kind: bench.Int, Default: "256KiB", Min: 8 << 10, Max: 1 << 20, Doc: "bytes of the large allreduce"},
			testBedParam("ppopp2007"),
		},
		Run: runFunc(simGrowth),
	})
}

func simGrowthClaims() []bench.Statement {
	counts := bench.Everywhere(ranksUnit)
	over := func(of, over string, limit bench.Limit) bench.Comparison {
		return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: measure.Microseconds, At: counts, Limit: limit}
	}
	var model, step bench.All
	for _, s := range []string{growthBarrier, growthDoubling} {
		model = append(model, over(s, modelOf(s), bench.AtMost(1.1)))
		step = append(step, bench.Growth{Of: []string{s}, Over: modelOf(s), Unit: measure.Microseconds, At: counts, Step: true, Limit: bench.Within(0.9, 1.1)})
	}
	return []bench.Statement{{
		Sentence: "A barrier over UD, and an allreduce of 8 B, take at most 1.1 times ceil(log2 n)(L + 2o), on all numbers of ranks.",
		Compare:  model, Exact: true,
	}, {
		Sentence: "From each number of ranks to the next they grow as ceil(log2 n), within 10 %.",
		Compare:  step, Exact: true,
	}, {
		Sentence: "A large allreduce takes at most 1.1 times the model of Rabenseifner's algorithm, and by a ring at most 1.1 times that of a ring.",
		Compare:  bench.All{over(growthHalving, modelOf(growthHalving), bench.AtMost(1.1)), over(growthRing, modelOf(growthRing), bench.AtMost(1.1))}, Exact: true,
	}, {
		Sentence: "A large allreduce is faster by Rabenseifner's algorithm than by a ring, from 64 ranks.",
		Compare:  over(growthHalving, growthRing, bench.AtMost(1)), Exact: true,
	}, {
		Sentence: "An alltoall of 8 B by Bruck's algorithm, and direct over UD, takes at most 1.1 times its model.",
		Compare:  bench.All{over(a2aBruck, modelOf(a2aBruck), bench.AtMost(1.1)), over(a2aDatagrams, modelOf(a2aDatagrams), bench.AtMost(1.1))}, Exact: true,
	}, {
		Sentence: "Direct over RC, it takes at most 1.1 times a model in which the adapter fetches the context of each packet.",
		Compare:  over(a2aDirect, modelOf(a2aDirect), bench.AtMost(1.1)), Exact: true,
		Because: "the processor learns of a packet after its context was fetched, so that its work and the fetches overlap little",
	}, {
		Sentence: "An alltoall of 8 B is faster direct over UD than by Bruck's algorithm, and than direct over RC.",
		Compare:  bench.All{over(a2aDatagrams, a2aBruck, bench.AtMost(1)), over(a2aDatagrams, a2aDirect, bench.AtMost(1))}, Exact: true,
	}, {
		Sentence: "If blocks are copied as fast as bytes, it is faster by Bruck's algorithm.",
		Compare:  over(simPlain, a2aDatagrams, bench.AtMost(1)), Exact: true,
	}, {
		Sentence: "After a barrier a rank has at most 2 ceil(log2 n) + 2 queue pairs over RC, and at most 2 over UD.",
		Compare: bench.All{bench.Ratio{Of: []string{growthSetUpRC}, Over: []string{growthLog2Ranks}, Unit: growthQPs, At: counts, Limit: bench.AtMost(1)},
			bench.Value{Of: []string{growthSetUpUD}, Unit: growthQPs, At: counts, Limit: bench.AtMost(2)}}, Exact: true,
	}, {
		Sentence: "Init and the first barrier take at most 1.1 times ceil(log2 n) rounds, over UD of a message, and over RC of a message and four of the connection management.",
		Compare:  bench.All{over(growthSetUpUD, modelOf(growthSetUpUD), bench.AtMost(1.1)), over(growthSetUpRC, modelOf(growthSetUpRC), bench.AtMost(1.1))}, Exact: true,
	}, {
		Sentence: "A rank takes at most 128 KiB of memory over UD, adapter and simulation included, and at least twice as much over RC.",
		Compare: bench.All{bench.Value{Of: []string{growthMemoryUD}, Unit: measure.Bytes, At: counts, Limit: bench.AtMost(128 << 10)},
			bench.Ratio{Of: []string{growthMemoryRC}, Over: []string{growthMemoryUD}, Unit: measure.Bytes, At: counts, Limit: bench.AtLeast(2)}},
		Because: "each doubling of the ranks adds two peers, and four tables have an entry for each rank of the job",
	}, {
		Sentence: "Init and seven barriers over UD on 4,096 ranks are simulated in at most 60 s on this machine.",
		Compare:  bench.Value{Of: []string{growthBarrier + simulationTime}, Unit: seconds, At: bench.At(4<<10, ranksUnit), Limit: bench.AtMost(60)},
	}}
}

func simGrowth(ctx context.Context, r *run) error {
	beds, counts, large := r.testBeds(), r.Ints("ranks"), r.Int("large")
	r.Plan(len(beds) * len(counts) * (len(growthCalls) + 1))
	for _, bed := range beds {
		for _, n := range counts {
			for i := range growthCalls {
				call := &growthCalls[i]
				r.Step("%s on %d simulated ranks of %s", call.series, n, bed.Name)
				if err := ctx.Err(); err != nil {
					return err
				}
				if n > call.most || (call.series == a2aDirect || call.series == a2aDatagrams) && n > r.Int("direct") {
					continue
				}
				if err := call.emitTimes(r, bed, n, large); err != nil {
					return fmt.Errorf("%s on %d ranks: %w", call.series, n, err)
				}
			}
			r.Step("set-up of %d simulated ranks of %s", n, bed.Name)
			if err := emitSetUp(r, bed, n); err != nil {
				return fmt.Errorf("set-up of %d ranks: %w", n, err)
			}
		}
	}
	return nil
}

// emitTimes simulates the call on n ranks and emits its time and that of its model.
func (g *growthCall) emitTimes(r *run, bed simulated.TestBed, n, large int) error {
	hosts := simulated.Options{Hosts: n, Costs: bed.Costs}
	if g.change != nil {
		g.change(&hosts.Costs)
	}
	o := mpi.Options{Net: g.net, Algorithms: map[string]string{g.collective: g.algorithm}}
	if g.collective != "alltoall" {
		o.UD = fewBuffers
	}
	began := time.Now()
	us, err := simulateCall(hosts, o, g.warmUp, g.calls, func(w mpi.World) func() error { return g.prepare(w, large) })
	if err != nil {
		return err
	}
	if g.series == growthBarrier {
		r.Emit(bench.Row{Series: onTestBed(growthBarrier+simulationTime, bed), X: float64(n), XUnit: ranksUnit, Y: time.Since(began).Seconds(), YUnit: seconds})
	}
	model := float64(g.model(&hosts.Costs, n, large)) / float64(time.Microsecond)
	for _, row := range []bench.Row{{Series: g.series, Y: us}, {Series: modelOf(g.series), Y: model}} {
		row.Series, row.X, row.XUnit, row.YUnit = onTestBed(row.Series, bed), float64(n), ranksUnit, measure.Microseconds
		r.Emit(row)
	}
	return nil
}

package experiments

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	simulated "github.com/softrnic/softrnic/internal/cluster" // dc_apps.go has a cluster
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi"
)

// simulateCall returns the virtual time in microseconds of a call of MPI on the slowest of the
// ranks, one on each simulated host, after two calls that make the connections. prepare returns the
// call of a rank.
func simulateCall(hosts simulated.Options, o mpi.Options, prepare func(w mpi.World) (call func() error)) (float64, error) {
	const warmUp, calls = 2, 4
	var took time.Duration
	hosts.Seed = 1
	err := simulated.New(hosts).Run(func(h *simulated.Host) error {
		o := o
		o.Manager = h.Manager()
		w, err := mpi.Init(h.OpenDevice, o)
		if err != nil {
			return err
		}
		call := prepare(w)
		var began time.Time
		for i := range warmUp + calls {
			if i == warmUp {
				if err := w.Barrier(); err != nil {
					return err
				}
				began = vtime.Now()
			}
			if err := call(); err != nil {
				return err
			}
		}
		took = max(took, vtime.Since(began)/calls)
		return w.Finalize()
	})
	return float64(took) / float64(time.Microsecond), err
}

// simulateAlltoall is simulateCall of an alltoall of blocks of the given size.
func simulateAlltoall(hosts simulated.Options, net mpi.Net, algorithm string, size int) (float64, error) {
	o := mpi.Options{Net: net, Algorithms: map[string]string{"alltoall": algorithm}}
	return simulateCall(hosts, o, func(w mpi.World) func() error {
		send, recv := mpi.Bytes(make([]byte, hosts.Hosts*size)), mpi.Bytes(make([]byte, hosts.Hosts*size))
		return func() error { return w.Alltoall(send, recv) }
	})
}

// fewBuffers are the options of thousands of ranks in one process.
var fewBuffers = mpi.UDOptions{Receives: 64, Packets: 64}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sim-a2a",
		Source: "RCUD fig. 9",
		Layer:  bench.LayerMPI,
		Claims: simA2AClaims(),
		Axes:   []bench.Axis{{Name: "block size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "32,61", Quick: "32", Min: 2, Max: 1024, Doc: "simulated ranks, each with a processor and an adapter of the paper's"},
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,256,1KiB,4KiB,16KiB", Quick: "8,4KiB", Min: 1, Max: 64 << 10, Doc: "bytes that a rank sends to each other rank"},
		},
		Run: runFunc(simA2A),
	})
}

// Series of simulated alltoalls whose costs are not those of the paper.
const (
	simCached = "direct-srq-cached" // the adapter caches all contexts
	simPlain  = "bruck-plain"       // the algorithm copies blocks as fast as bytes
)

func simA2AClaims() (claims []bench.Statement) {
	for _, ranks := range []int{paperRanks, 61} {
		at := bench.At(8, measure.Bytes)
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf("With the paper's costs, and two that were chosen to fit, on %d ranks an alltoall of 8 B over UD takes 0.52 to 0.72 times as long as by Bruck's algorithm.", ranks),
			Paper:    "36 to 38 % better than Bruck for small messages",
			Compare:  a2aOver(a2aDatagrams, a2aBruck, ranks, at, bench.Within(0.52, 0.72)), Exact: true,
		}, bench.Statement{
			Sentence: fmt.Sprintf("On %d ranks it takes 0.4 to 0.6 times as long as direct over RC.", ranks),
			Paper:    "up to two times better than direct over RC",
			Compare:  a2aOver(a2aDatagrams, a2aDirect, ranks, at, bench.Within(0.4, 0.6)), Exact: true,
		}, bench.Statement{
			Sentence: fmt.Sprintf("On %d ranks with blocks up to 256 B it takes at most 0.72 times as long as by Bruck's algorithm.", ranks),
			Paper:    "36 to 38 % better than Bruck for small messages", Number: 0.64,
			Compare: a2aOver(a2aDatagrams, a2aBruck, ranks, smallBlocks, bench.AtMost(0.72)), Exact: true,
		}, bench.Statement{
			Sentence: fmt.Sprintf("On %d ranks with blocks up to 256 B it takes at most 0.6 times as long as direct over RC.", ranks),
			Paper:    "up to two times better than direct over RC", Number: 0.5,
			Compare: a2aOver(a2aDatagrams, a2aDirect, ranks, smallBlocks, bench.AtMost(0.6)), Exact: true,
		}, bench.Statement{
			Sentence: fmt.Sprintf("On %d ranks blocks of 4 KiB and more take longer over UD than over RC.", ranks),
			Paper:    "as the message size increases, the performance of RC is better than UD",
			Compare:  a2aOver(a2aDatagrams, a2aDirect, ranks, bench.From(4<<10, measure.Bytes), bench.AtLeast(1)), Exact: true,
			Because: "a block of 16 KiB has a rendezvous over RC, and by RDMA writes, as in a2a-rdma, it takes about half as long",
		}, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("On %d ranks the first gain goes if blocks are copied as fast as bytes, and the second if the adapter caches all contexts.", ranks),
			Compare: bench.All{a2aOver(a2aDatagrams, simPlain, ranks, at, bench.AtLeast(1)),
				a2aOver(a2aDatagrams, simCached, ranks, at, bench.AtLeast(0.75))}, Exact: true,
		})
	}
	return append(claims, bench.Statement{
		Source:   "RCUD fig. 7a",
		Sentence: "On 32 ranks an alltoall by RDMA writes takes at most 0.72 times as long as one that copies from a shared receive queue, at each size.",
		Paper:    "38 % better on 32 nodes", Number: 0.62,
		Compare: a2aOver(a2aWrites, a2aDirect, paperRanks, bench.Everywhere(measure.Bytes), bench.AtMost(0.72)), Exact: true,
		Because: "a write with immediate data has the costs of a send, except for the copy, which is short for small blocks",
	})
}

func simA2A(ctx context.Context, r *run) error {
	cached, plain := simulated.InfiniHost, simulated.InfiniHost
	cached.Contexts, cached.ContextMiss = 0, 0
	plain.CopyBlock = 0
	variants := []struct {
		series, algorithm string
		net               mpi.Net
		costs             simulated.Costs
	}{
		{a2aDirect, "direct", mpi.RDMA, simulated.InfiniHost},
		{a2aDatagrams, "ud", mpi.UD, simulated.InfiniHost},
		{a2aBruck, "bruck", mpi.RDMA, simulated.InfiniHost},
		{a2aWrites, "rdma", mpi.RDMA, simulated.InfiniHost},
		{simCached, "direct", mpi.RDMA, cached},
		{simPlain, "bruck", mpi.RDMA, plain},
	}
	r.Plan(len(r.Ints("ranks")) * len(r.Ints("sizes")))
	for _, ranks := range r.Ints("ranks") {
		for _, size := range r.Ints("sizes") {
			r.Step("%d B on %d simulated ranks", size, ranks)
			for _, v := range variants {
				if err := ctx.Err(); err != nil {
					return err
				}
				us, err := simulateAlltoall(simulated.Options{Hosts: ranks, Costs: v.costs}, v.net, v.algorithm, size)
				if err != nil {
					return fmt.Errorf("%s on %d ranks: %w", v.series, ranks, err)
				}
				r.Emit(bench.Row{Series: v.series, X: float64(size), XUnit: measure.Bytes, Y: us, YUnit: usOnRanks(ranks)})
			}
		}
	}
	return nil
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sim-barrier",
		Source: bench.Adapter,
		Layer:  bench.LayerMPI,
		Claims: []bench.Statement{{
			Sentence: "A barrier over UD takes at most 1.1 times ceil(log2 n) messages, from 64 to 4,096 ranks.",
			Compare: bench.Ratio{Of: []string{simBarrierTime}, Over: []string{simModel}, Unit: measure.Microseconds,
				At: bench.Everywhere(ranksUnit), Limit: bench.AtMost(1.1)},
			Exact: true,
		}},
		Axes: []bench.Axis{{Name: "ranks", Unit: ranksUnit}},
		Params: []bench.Param{{Name: "ranks", Kind: bench.Ints, Default: "64,256,1K,4K", Quick: "64,256", Min: 2, Max: 4 << 10,
			Doc: "simulated ranks, each with a processor and an adapter of RCUD's"}},
		Run: runFunc(simBarrier),
	})
}

// Series of sim-barrier.
const (
	simBarrierTime = "barrier"
	simModel       = "rounds-times-message" // ceil(log2 n) times a message's time in a barrier of 2 ranks
)

func simBarrier(ctx context.Context, r *run) error {
	counts := r.Ints("ranks")
	r.Plan(len(counts))
	barrier := func(ranks int) (float64, error) {
		o := mpi.Options{Net: mpi.UD, UD: fewBuffers, Algorithms: map[string]string{"barrier": "dissemination"}}
		return simulateCall(simulated.Options{Hosts: ranks, Costs: simulated.InfiniHost}, o, func(w mpi.World) func() error { return w.Barrier })
	}
	message, err := barrier(2)
	if err != nil {
		return err
	}
	for _, ranks := range counts {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.Step("%d simulated ranks", ranks)
		us, err := barrier(ranks)
		if err != nil {
			return fmt.Errorf("%d ranks: %w", ranks, err)
		}
		rounds := bits.Len(uint(ranks - 1))
		for _, row := range []bench.Row{{Series: simBarrierTime, Y: us}, {Series: simModel, Y: float64(rounds) * message}} {
			row.X, row.XUnit, row.YUnit = float64(ranks), ranksUnit, measure.Microseconds
			r.Emit(row)
		}
	}
	return nil
}

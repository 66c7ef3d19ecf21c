package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	simulated "github.com/softrnic/softrnic/internal/cluster" // dc_apps.go has a cluster
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi"
)

// simSeed is the seed of all simulations, which reproduces them to the nanosecond.
const simSeed = 1

// simulateCall returns the virtual time in microseconds of a call of MPI on the slowest of the
// ranks, one on each simulated host: the mean of a number of calls, after others that make the
// connections. prepare returns the call of a rank.
func simulateCall(hosts simulated.Options, o mpi.Options, warmUp, calls int, prepare func(w mpi.World) (call func() error)) (float64, error) {
	var took time.Duration
	hosts.Seed = simSeed
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
		took = max(took, vtime.Since(began)/time.Duration(calls))
		return w.Finalize()
	})
	return float64(took) / float64(time.Microsecond), err
}

// simulateAlltoall is simulateCall of an alltoall of blocks of the given size.
func simulateAlltoall(hosts simulated.Options, o mpi.Options, algorithm string, size int) (float64, error) {
	o.Algorithms = map[string]string{"alltoall": algorithm}
	return simulateCall(hosts, o, 2, 4, func(w mpi.World) func() error {
		send, recv := mpi.Bytes(make([]byte, hosts.Hosts*size)), mpi.Bytes(make([]byte, hosts.Hosts*size))
		return func() error { return w.Alltoall(send, recv) }
	})
}

// testBedParam returns the parameter of the simulated test beds.
func testBedParam(def string) bench.Param {
	p := bench.Param{Name: "testbed", Kind: bench.Words, Default: def, Doc: "papers' clusters whose costs the simulated hosts have"}
	for _, b := range simulated.TestBeds {
		p.Choices = append(p.Choices, b.Name)
	}
	return p
}

// testBeds returns the test beds of the parameter.
func (r *run) testBeds() (beds []simulated.TestBed) {
	for _, b := range simulated.TestBeds {
		if slices.Contains(r.Words("testbed"), b.Name) {
			beds = append(beds, b)
		}
	}
	return beds
}

// onTestBed returns the series of a test bed: that of the first, which is RCUD's, has no suffix.
func onTestBed(series string, bed simulated.TestBed) string {
	if bed.Name == simulated.TestBeds[0].Name {
		return series
	}
	return series + "-" + bed.Name
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sim-a2a",
		Source: "RCUD fig. 9",
		Layer:  bench.LayerMPI,
		Claims: simA2AClaims(),
		Axes:   []bench.Axis{{Name: "block size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "32,61", Quick: "32", Min: 2, Max: 1024, Doc: "simulated ranks, each with a processor and an adapter of the paper's"},
			testBedParam("ppopp2007"),
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

// simA2AClaims returns the statements. Those about short blocks are not the paper's, because two costs
// were chosen to fit its figure.
func simA2AClaims() (claims []bench.Statement) {
	for _, ranks := range []int{paperRanks, 61} {
		at := bench.At(8, measure.Bytes)
		claims = append(claims, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("With the paper's costs, and two that were chosen to fit, on %d ranks an alltoall of 8 B over UD takes 0.52 to 0.72 times as long as by Bruck's algorithm.", ranks),
			Paper:    "36 to 38 % better than Bruck for small messages",
			Compare:  a2aOver(a2aDatagrams, a2aBruck, ranks, at, bench.Within(0.52, 0.72)), Exact: true,
		}, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("On %d ranks it takes 0.4 to 0.6 times as long as direct over RC.", ranks),
			Paper:    "up to two times better than direct over RC",
			Compare:  a2aOver(a2aDatagrams, a2aDirect, ranks, at, bench.Within(0.4, 0.6)), Exact: true,
		}, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("On %d ranks with blocks up to 256 B it takes at most 0.72 times as long as by Bruck's algorithm.", ranks),
			Paper:    "36 to 38 % better than Bruck for small messages", Number: 0.64,
			Compare: a2aOver(a2aDatagrams, a2aBruck, ranks, smallBlocks, bench.AtMost(0.72)), Exact: true,
		}, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("On %d ranks with blocks up to 256 B it takes at most 0.6 times as long as direct over RC.", ranks),
			Paper:    "up to two times better than direct over RC", Number: 0.5,
			Compare: a2aOver(a2aDatagrams, a2aDirect, ranks, smallBlocks, bench.AtMost(0.6)), Exact: true,
		}, bench.Statement{
			Sentence: fmt.Sprintf("On %d ranks blocks of 4 KiB and more take longer over UD than over RC.", ranks),
			Paper:    "as the message size increases, the performance of RC is better than UD",
			Compare:  a2aOver(a2aDatagrams, a2aDirect, ranks, bench.From(4<<10, measure.Bytes), bench.AtLeast(1)), Exact: true,
			Because: "a block of 16 KiB has a rendezvous over RC, which RDMA writes (fig. 7a) do without",
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
	r.Plan(len(r.Words("testbed")) * len(r.Ints("ranks")) * len(r.Ints("sizes")))
	for _, bed := range r.testBeds() {
		for _, ranks := range r.Ints("ranks") {
			for _, size := range r.Ints("sizes") {
				r.Step("%d B on %d simulated ranks of %s", size, ranks, bed.Name)
				if err := simA2APoint(ctx, r, bed, ranks, size); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// simA2APoint simulates all variants of an alltoall on the hosts of a test bed.
func simA2APoint(ctx context.Context, r *run, bed simulated.TestBed, ranks, size int) error {
	cached, plain := bed.Costs, bed.Costs
	cached.Contexts, cached.ContextMiss = 0, 0
	plain.CopyBlock = 0
	for _, v := range []struct {
		series, algorithm string
		net               mpi.Net
		costs             simulated.Costs
	}{
		{a2aDirect, "direct", mpi.RDMA, bed.Costs},
		{a2aDatagrams, "ud", mpi.UD, bed.Costs},
		{a2aBruck, "bruck", mpi.RDMA, bed.Costs},
		{a2aWrites, "rdma", mpi.RDMA, bed.Costs},
		{simCached, "direct", mpi.RDMA, cached},
		{simPlain, "bruck", mpi.RDMA, plain},
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		us, err := simulateAlltoall(simulated.Options{Hosts: ranks, Costs: v.costs}, mpi.Options{Net: v.net}, v.algorithm, size)
		if err != nil {
			return fmt.Errorf("%s on %d ranks: %w", v.series, ranks, err)
		}
		r.Emit(bench.Row{Series: onTestBed(v.series, bed), X: float64(size), XUnit: measure.Bytes, Y: us, YUnit: usOnRanks(ranks)})
	}
	return nil
}

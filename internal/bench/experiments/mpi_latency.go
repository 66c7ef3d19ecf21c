package experiments

import (
	"context"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/measure"
	"github.com/softrnic/softrnic/internal/bench/mpibench"
	"github.com/softrnic/softrnic/internal/bench/sdpbench"
	"github.com/softrnic/softrnic/internal/bench/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "mpi-latency",
		Source: "IWARP fig. 4a",
		Layer:  bench.LayerMPI,
		Claim: "A message of MPI over the RDMA fast path takes at most 0.25 times as long as over TCP, " +
			"and at most 1.06 times as long as a bare RDMA write.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "1,8,64,256,1KiB,4KiB", Quick: "8", Max: maxPing, Doc: "bytes of a message"},
			overParam("fast,rdma"),
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round"},
		},
		Tour: bench.Settings{},
		Run:  mpiLatency,
	})
}

// maxPing is the longest message of a bare ping-pong.
const maxPing = 32 << 10

// What the paper found with messages of a few bytes.
const (
	fastOverTCP   = 0.25
	fastOverWrite = 1.06
	claimedUpTo   = 8 // bytes
)

func mpiLatency(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes))
	r.Step("connections")
	all, err := openJobs(ctx, r, 2)
	defer all.close()
	if err != nil {
		return bench.Verdict{}, err
	}
	sockets, err := sdpbench.Open(ctx, sdpbench.Config{Over: sdpbench.TCP})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer sockets.Close()
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer pair.Close()
	var j judge
	for _, size := range sizes {
		r.Step("%d B", size)
		if err := mpiLatencyPoint(ctx, r, all, sockets, pair, size, &j); err != nil {
			return bench.Verdict{}, err
		}
	}
	return j.verdict(), nil
}

// mpiLatencyPoint measures one size: MPI, and below it what it is made of.
func mpiLatencyPoint(ctx context.Context, r *bench.Run, all jobs, sockets *sdpbench.Pair, pair *verbsbench.Pair, size int, j *judge) error {
	iters := r.Int("iters")
	write, err := pair.PingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: size})
	if err != nil {
		return err
	}
	defer write.Close(ctx)
	var turns lineup
	all.lineUp(&turns, func(job *mpibench.Job) measure.Round { return job.Latency(size, iters) })
	turns.addPing(string(verbsbench.RCWrite), write, iters)
	turns.addEvents(string(sdpbench.TCP), func(into *measure.Latency) measure.Round { return sockets.PingRounds(size, iters, into) })
	samples, err := turns.run(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.Microseconds}
	ratios := r.EmitAgainst(at, samples[0], samples[1:]...)
	bare := samples[len(all)]
	for i, s := range samples[1:len(all)] {
		if size > claimedUpTo || s.Series != string(mpibench.Fast) {
			continue
		}
		j.atMost(s.Series+" over "+samples[0].Series, ratios[i], fastOverTCP)
		j.atMost(s.Series+" over "+bare.Series, measure.MedianRatio(s.Figures, bare.Figures), fastOverWrite)
	}
	return nil
}

package experiments

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

func init() {
	register(&bench.Experiment{
		Name:   "mpi-channel",
		Source: "ACP sec. V", // future work: channels as an interface of MPI
		Layer:  bench.LayerMPI,
		Claims: mpiChannelClaims(),
		Axes:   []bench.Axis{{Name: "halo", Unit: measure.Bytes}, {Name: "computation between exchanges", Unit: computation}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,256,1KiB,4KiB,16KiB,64KiB", Quick: "8,4KiB,64KiB", Max: 4 << 20, Doc: "bytes of a halo in one direction"},
			{Name: "compute", Kind: bench.Pauses, Default: "20us,100us,500us", Quick: "100us", Doc: "computation after each exchange"},
			{Name: "size", Kind: bench.Int, Default: "4KiB", Max: 1 << 20, OfClaim: true, Doc: "bytes of a halo, with computation and for the memory of a rank"},
			{Name: "ranks", Kind: bench.Int, Default: "2", Min: 2, Max: 64, OfClaim: true, Doc: "ranks of the ring"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "500", Doc: "exchanges in a round"},
		},
		Run: runFunc(mpiChannel),
	})
}

const (
	rankMemoryUnit     = "KiB a rank"
	neighborMemoryUnit = "B a neighbor"
)

// halos are the ways to exchange halos, the baseline first.
var halos = []mpibench.Halo{mpibench.HaloSendrecv, mpibench.HaloPersistent, mpibench.HaloChannel}

// haloSeries returns the series of a way to exchange halos.
func haloSeries(h mpibench.Halo) string { return "halo-" + string(h) }

func mpiChannelClaims() []bench.Statement {
	channel, messages := []string{haloSeries(mpibench.HaloChannel)}, []string{haloSeries(mpibench.HaloSendrecv)}
	requests := []string{haloSeries(mpibench.HaloPersistent)}
	everywhere := bench.Everywhere(measure.Bytes)
	const waits = "a short message is sent at once, as by Sendrecv; a longer one is written into memory that belongs to the program between Wait and Start, " +
		"and waits for the packet by which the receiver starts"
	return []bench.Statement{
		{
			Source:   bench.Adapter,
			Sentence: "An exchange of halos by channels takes at most as long as by Sendrecv, of any size.",
			Compare:  bench.Ratio{Of: channel, Over: messages, Unit: measure.Microseconds, At: everywhere, Limit: bench.AtMost(1)},
			Because:  waits,
		},
		{
			Source:   bench.Adapter,
			Sentence: "It takes at most as long as by persistent requests, of any size.",
			Compare:  bench.Ratio{Of: channel, Over: requests, Unit: measure.Microseconds, At: everywhere, Limit: bench.AtMost(1)},
			Because:  waits,
		},
		{
			Source:   bench.Adapter,
			Sentence: "Halos of 64 KiB take at most 0.8 times as long by channels as by persistent requests, which make a rendezvous for each.",
			Compare:  bench.Ratio{Of: channel, Over: requests, Unit: measure.Microseconds, At: bench.At(64<<10, measure.Bytes), Limit: bench.AtMost(0.8)},
		},
		{
			Source:   bench.Adapter,
			Sentence: "With 100 us of computation behind each exchange, and receives that start before it, channels take at most 1.05 times as long as Sendrecv.",
			Compare:  bench.Ratio{Of: channel, Over: messages, Unit: measure.Microseconds, At: bench.At(100, computation), Limit: bench.AtMost(1.05)},
		},
		{
			Source:   "ACP sec. V",
			Sentence: "Channels spare a rank a tenth of the memory that it takes with messages.",
			Paper:    "just-enough memory for communication",
			Compare:  bench.Ratio{Of: channel, Over: messages, Unit: rankMemoryUnit, At: everywhere, Limit: bench.AtMost(0.9)},
			Because:  "a connection keeps the memory of its packets, because a channel has no connection of its own",
		},
		{
			Source:   bench.Adapter,
			Sentence: "The channels to and from a neighbor take at most 4 KiB beside their buffers.",
			Compare:  bench.Value{Of: channel, Unit: neighborMemoryUnit, At: everywhere, Limit: bench.AtMost(4 << 10)}, Exact: true,
		},
	}
}

func mpiChannel(ctx context.Context, r *run) error {
	r.Plan(1 + len(r.Ints("sizes")) + len(r.Pauses("compute")))
	r.Step("memory of a rank")
	if err := haloMemory(ctx, r); err != nil {
		return err
	}
	job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: r.Int("ranks")})
	if err != nil {
		return err
	}
	defer job.Close()
	for _, size := range r.Ints("sizes") {
		r.Step("halos of %s", sizeName(size))
		if err := haloPoint(ctx, r, job, size, 0, atSize(size, measure.Microseconds)); err != nil {
			return err
		}
	}
	millisecond := sdpbench.CalibrateWork(time.Millisecond)
	for _, amount := range r.Pauses("compute") {
		r.Step("%v of computation", amount)
		work := millisecond * sdpbench.Work(amount) / sdpbench.Work(time.Millisecond)
		at := bench.Point{X: measure.Micros(amount), XUnit: computation, YUnit: measure.Microseconds}
		if err := haloPoint(ctx, r, job, r.Int("size"), work, at); err != nil {
			return err
		}
	}
	return nil
}

// haloPoint measures all ways to exchange halos at one point.
func haloPoint(ctx context.Context, r *run, job *mpibench.Job, size int, work sdpbench.Work, at bench.Point) error {
	var set seriesSet
	for _, h := range halos {
		set.addEvents(haloSeries(h), func(into *measure.Latency) measure.Round { return job.HaloRounds(h, size, r.Int("iters"), work, into) })
	}
	_, err := r.measurePoint(ctx, &set, at)
	return err
}

// haloMemory measures the memory of a rank, in a job of its own for each way to exchange halos.
func haloMemory(ctx context.Context, r *run) error {
	size := r.Int("size")
	var ranks, neighbors []bench.Sample
	for _, h := range halos {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: r.Int("ranks")})
		if err != nil {
			return err
		}
		m, err := job.HaloMemory(ctx, h, size)
		job.Close()
		if err != nil {
			return err
		}
		ranks = append(ranks, bench.Sample{Series: haloSeries(h), Figures: []float64{m.Rank / 1024}})
		if h != mpibench.HaloSendrecv {
			neighbors = append(neighbors, bench.Sample{Series: haloSeries(h), Figures: []float64{m.Neighbor}})
		}
	}
	r.EmitAgainst(atSize(size, rankMemoryUnit), ranks[0], ranks[1:]...)
	r.EmitAgainst(atSize(size, neighborMemoryUnit), neighbors[0], neighbors[1:]...)
	return nil
}

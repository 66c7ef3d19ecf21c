package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "acp-gma",
		Source: "ACP fig. 6",
		Layer:  bench.LayerACP,
		Claim:  "A copy of 8 bytes from the global memory of another rank takes at most 1.5 times a bare RC read.",
		Axes:   []bench.Axis{{Name: "length of a copy", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,32KiB,256KiB,1MiB", Quick: "8,32KiB", Max: 2 << 20, Doc: "bytes of a copy"},
			{Name: "ranks", Kind: bench.Int, Default: "3", Quick: "2", Min: 2, Max: 64, Doc: "ranks of the job; with at least 3, copies between two remote ranks are measured too"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "1000", Quick: "300", Doc: "copies in a round"},
		},
		Run: acpGMA,
	})
}

// copyOverRead is the limit of a copy over a read. A copy also creates a handle.
const copyOverRead = 1.5

func acpGMA(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	var j evaluation
	err := acpSizes(ctx, r, r.Int("ranks"), func(job *acpbench.Job, pair *verbsbench.Pair, size int) error {
		return acpCopyPoint(ctx, r, job, pair, size, &j)
	})
	if err != nil {
		return bench.Verdict{}, err
	}
	return j.makeVerdict(), nil
}

func acpCopyPoint(ctx context.Context, r *bench.Run, job *acpbench.Job, pair *verbsbench.Pair, size int, j *evaluation) error {
	read, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCRead, Size: size})
	if err != nil {
		return err
	}
	iters := r.Int("iters")
	var set seriesSet
	set.addMeans(string(verbsbench.RCRead), func(into *measure.Latency) measure.Round { return read.LatencyRounds(iters, into) })
	for _, dir := range []acpbench.Direction{acpbench.RemoteToLocal, acpbench.LocalToRemote, acpbench.RemoteToRemote} {
		if dir != acpbench.RemoteToRemote || r.Int("ranks") > 2 {
			set.addSeries(string(dir), job.Copies(dir, size, iters))
		}
	}
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.Microseconds}
	ratios := r.EmitAgainst(at, samples[0], samples[1:]...)
	if size == 8 {
		j.atMost("remote-to-local over rc-read", ratios[0], copyOverRead)
	}
	return read.Close(ctx)
}

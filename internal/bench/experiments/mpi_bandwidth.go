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
		Name:   "mpi-bandwidth",
		Source: "IWARP fig. 4b",
		Layer:  bench.LayerMPI,
		Claim: "At its best MPI over RDMA moves at least 1.37 times as much as over TCP, " +
			"with the fast path and without alike (within 10 %).",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "1KiB,64KiB,1MiB", Doc: "bytes of a message"},
			overParam("fast,rdma"),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "windows", Kind: bench.Int, Default: "20", Quick: "4", Doc: "windows of 64 messages in a round"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round of the bare streams"},
		},
		Tour: bench.Settings{"sizes": "64KiB,1MiB"},
		Run:  mpiBandwidth,
	})
}

// What the paper found.
const (
	rdmaOverTCP = 1.37
	alike       = 1.1
)

func mpiBandwidth(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
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
	peaks := make([]float64, len(all))
	for _, size := range sizes {
		r.Step("%d B", size)
		samples, err := mpiBandwidthPoint(ctx, r, all, sockets, pair, size)
		if err != nil {
			return bench.Verdict{}, err
		}
		for i := range peaks {
			peaks[i] = max(peaks[i], measure.Median(samples[i].Figures))
		}
	}
	return judgePeaks(all, peaks), nil
}

func mpiBandwidthPoint(ctx context.Context, r *bench.Run, all jobs, sockets *sdpbench.Pair, pair *verbsbench.Pair, size int) ([]bench.Sample, error) {
	write, err := pair.Stream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCWrite, Size: size})
	if err != nil {
		return nil, err
	}
	defer write.Close(ctx)
	var turns lineup
	all.lineUp(&turns, func(job *mpibench.Job) measure.Round { return job.Bandwidth(size, r.Int("windows")) })
	turns.add(string(verbsbench.RCWrite), write.Rounds(r.Duration("time"), verbsbench.Flow.MBps))
	turns.add(string(sdpbench.TCP), sockets.Streamer(sdpbench.StreamOptions{Size: size, Greedy: true}, r.Duration("time")).Rounds(sdpbench.Flow.MBps))
	samples, err := turns.run(ctx, r.Int("rounds"))
	if err != nil {
		return nil, err
	}
	r.EmitAgainst(bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.MegabytesPerSec}, samples[0], samples[1:]...)
	return samples, nil
}

// judgePeaks compares the best of each, of which that over TCP is the first.
func judgePeaks(all jobs, peaks []float64) bench.Verdict {
	var j judge
	for i := 1; i < len(all); i++ {
		j.atLeast("the peak of "+string(all[i].Over)+" over that of "+string(all[0].Over), peaks[i]/peaks[0], rdmaOverTCP)
	}
	if len(all) == 3 {
		j.atMost("the two peaks are apart by", evenness(peaks[1:2], peaks[2:3]), alike)
	}
	return j.verdict()
}

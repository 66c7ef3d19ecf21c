package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "mpi-bandwidth",
		Source: "IWARP fig. 4b",
		Layer:  bench.LayerMPI,
		Claim: "Messages of 64 KiB move as much as by Open MPI over TCP, of 1 MiB at least 0.85 times as much, and both at least 0.85 times as much as bare RDMA writes; " +
			"of 8 bytes three times as many as by Open MPI. At its best MPI over RDMA moves at least 1.37 times as much as over TCP, " +
			"with the fast path and without alike (within 10 %).",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "8,64KiB,1MiB", Doc: "bytes of a message"},
			overParam("fast,rdma"),
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "windows", Kind: bench.Int, Default: "20", Quick: "4", Doc: "windows of 64 messages in a round; ten times as many of messages of up to 8 KiB"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round of the bare streams"},
		},
		Tour: bench.Settings{"sizes": "8,64KiB,1MiB", "beside": "nothing"}, // which mpi-latency has
		Run:  mpiBandwidth,
	})
}

// Targets.
const (
	rdmaOverTCP  = 1.37 // what the paper found
	alike        = 1.1
	streamOverRC = 0.85
	rateAtLeast  = 3.0 // of Open MPI's
	rateAt       = 8   // bytes
)

// shortMessage is up to where a window takes no time to speak of.
const shortMessage = 8 << 10

// streamAtLeast is how much of Open MPI's bandwidth messages that fill the network reach,
// by their size.
var streamAtLeast = map[int]float64{64 << 10: 1.0, 1 << 20: 0.85}

func mpiBandwidth(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	m, err := openMPIRun(ctx, r)
	defer m.close()
	if err != nil {
		return bench.Verdict{}, err
	}
	peaks := make([]float64, len(m.all))
	for _, size := range r.Ints("sizes") {
		r.Step("%d B", size)
		samples, err := m.measureBandwidth(ctx, size)
		if err != nil {
			return bench.Verdict{}, err
		}
		evaluateBandwidth(&m.evaluation, samples, size)
		for i := range peaks {
			peaks[i] = max(peaks[i], measure.Median(samples[i].Figures))
		}
	}
	evaluatePeaks(&m.evaluation, m.all, peaks)
	m.other.explainAbsence(&m.evaluation)
	return m.makeVerdict(), nil
}

// measureBandwidth measures one size, of which the smallest is also shown in
// messages.
func (m *mpiRun) measureBandwidth(ctx context.Context, size int) ([]bench.Sample, error) {
	write, err := m.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCWrite, Size: size})
	if err != nil {
		return nil, err
	}
	defer write.Close(ctx)
	windows := m.Int("windows")
	if size <= shortMessage {
		windows *= 10
	}
	var turns seriesSet
	m.all.addTo(&turns, func(job *mpibench.Job) measure.Round { return job.Bandwidth(size, windows) })
	turns.addSeries(string(verbsbench.RCWrite), write.Rounds(m.Duration("time"), verbsbench.Flow.MBps))
	turns.addSeries(string(sdpbench.TCP), m.sockets.NewStreamer(sdpbench.StreamOptions{Size: size, Greedy: true}, m.Duration("time")).Rounds(sdpbench.Flow.MBps))
	m.other.addTo(&turns, 2, "bandwidth", size, windows)
	samples, err := turns.runAlternating(ctx, m.Int("rounds"))
	if err != nil {
		return nil, err
	}
	at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.MegabytesPerSec}
	m.EmitAgainst(at, samples[0], samples[1:]...)
	if size == rateAt {
		at.YUnit = measure.MessagesPerSecond
		rates := inMessages(samples, size)
		m.EmitAgainst(at, rates[0], rates[1:]...)
	}
	return samples, nil
}

// inMessages makes MB/s of messages of a size messages a second.
func inMessages(samples []bench.Sample, size int) []bench.Sample {
	rates := make([]bench.Sample, len(samples))
	for i, s := range samples {
		rates[i] = bench.Sample{Series: s.Series, Figures: slices.Clone(s.Figures)}
		for k := range rates[i].Figures {
			rates[i].Figures[k] *= 1e6 / float64(size)
		}
	}
	return rates
}

// evaluateBandwidth holds MPI over RDMA against Open MPI and bare writes.
func evaluateBandwidth(j *evaluation, samples []bench.Sample, size int) {
	against := func(baseline string, limit float64) {
		eachRatioOver(samples, baseline, func(series string, ratio float64) {
			j.atLeast(fmt.Sprintf("%d B, %s over %s", size, series, baseline), ratio, limit)
		})
	}
	if size == rateAt {
		against(overOpenMPI, rateAtLeast)
	} else if limit, ok := streamAtLeast[size]; ok {
		against(overOpenMPI, limit)
		against(string(verbsbench.RCWrite), streamOverRC)
	}
}

// evaluatePeaks compares the best of each, of which that over TCP is the first.
func evaluatePeaks(j *evaluation, all jobs, peaks []float64) {
	for i := 1; i < len(all); i++ {
		j.atLeast("the peak of "+string(all[i].Transport)+" over that of "+string(all[0].Transport), peaks[i]/peaks[0], rdmaOverTCP)
	}
	if len(all) == 3 {
		j.atMost("the two peaks are apart by", largerOverSmaller(peaks[1:2], peaks[2:3]), alike)
	}
}

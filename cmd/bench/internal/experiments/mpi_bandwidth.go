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
		Claim: "Messages of 64 KiB have at least the bandwidth of Open MPI over TCP, those of 1 MiB at least 0.85 times, and both at least 0.85 times that of bare RDMA writes. " +
			"The rate of 8-byte messages is at least 3 times that of Open MPI. The peak bandwidth of MPI over RDMA is at least 1.37 times that over TCP, " +
			"with and without the fast path (within 10 %).",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "8,64KiB,1MiB", Doc: "bytes of a message"},
			overParam("fast,rdma"),
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "windows", Kind: bench.Int, Default: "20", Quick: "4", Doc: "windows of 64 messages in a round; ten times as many for messages of up to 8 KiB"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round of the bare streams"},
		},
		Run: mpiBandwidth,
	})
}

// Limits.
const (
	rdmaOverTCP  = 1.37 // result of the paper
	alike        = 1.1
	streamOverRC = 0.85
	rateAtLeast  = 3.0 // over Open MPI
	rateAt       = 8   // bytes
)

// shortMessage is the size up to which the time of a window is negligible.
const shortMessage = 8 << 10

// streamAtLeast has the minimum bandwidth over Open MPI's of messages that saturate the
// network, by size.
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

// measureBandwidth measures one size. Those of rateAt bytes are also shown as message rates.
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
	var set seriesSet
	m.all.addTo(&set, func(job *mpibench.Job) measure.Round { return job.Bandwidth(size, windows) })
	set.addSeries(string(verbsbench.RCWrite), write.Rounds(m.Duration("time"), verbsbench.Flow.MBps))
	set.addSeries(string(sdpbench.TCP), m.sockets.NewStreamer(sdpbench.StreamOptions{Size: size, Greedy: true}, m.Duration("time")).Rounds(sdpbench.Flow.MBps))
	m.other.addTo(&set, 2, "bandwidth", size, windows)
	samples, err := set.runAlternating(ctx, m.Int("rounds"))
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

// inMessages converts figures in MB/s to messages of size bytes per second.
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

// evaluateBandwidth compares MPI over RDMA with Open MPI and bare writes.
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

// evaluatePeaks compares the peaks of the jobs with that of the first, which is over TCP.
func evaluatePeaks(j *evaluation, all jobs, peaks []float64) {
	for i := 1; i < len(all); i++ {
		j.atLeast("peak of "+string(all[i].Transport)+" over that of "+string(all[0].Transport), peaks[i]/peaks[0], rdmaOverTCP)
	}
	if len(all) == 3 {
		j.atMost("larger peak over the smaller", largerOverSmaller(peaks[1:2], peaks[2:3]), alike)
	}
}

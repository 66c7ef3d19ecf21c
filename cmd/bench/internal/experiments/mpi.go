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

// An mpiRun is a running experiment with messages between two ranks: MPI, the operations it is
// built on, and Open MPI.
type mpiRun struct {
	*run
	all     jobs
	sockets *sdpbench.Pair // TCP
	pair    *verbsbench.Pair
	other   openMPI
}

// openMPIRun opens all targets. It plans one step for that and one for each size. The caller
// must close the result, also after an error.
func openMPIRun(ctx context.Context, r *run) (m *mpiRun, err error) {
	r.Plan(1 + len(r.Ints("sizes")))
	r.Step("opening connections")
	m = &mpiRun{run: r}
	if m.all, err = openJobs(ctx, r, 2); err != nil {
		return m, err
	}
	if m.sockets, err = sdpbench.Open(ctx, sdpbench.Config{Transport: sdpbench.TCP}); err != nil {
		return m, err
	}
	if m.pair, err = verbsbench.OpenPair(ctx, verbsbench.Config{}); err != nil {
		return m, err
	}
	m.other, err = openOpenMPI(ctx, r)
	return m, err
}

func (m *mpiRun) close() {
	m.other.close()
	if m.pair != nil {
		m.pair.Close()
	}
	if m.sockets != nil {
		m.sockets.Close()
	}
	m.all.close()
}

// jobs are the targets of the experiments with MPI: the first is over TCP, the baseline.
type jobs []*mpibench.Job

// overParam returns the parameter that selects the transports.
func overParam(defaults string) bench.Param {
	return bench.Param{
		Name: "over", Kind: bench.Words, Default: defaults, Choices: []string{"fast", "rdma", "shared"},
		Doc: "transports besides mpi-tcp: the RDMA fast path with polling ranks, sends and receives, or these with shared memory for collectives",
	}
}

// openJobs opens a job over TCP and those of the parameter over. The caller must close them,
// also after an error.
func openJobs(ctx context.Context, r *run, ranks int) (all jobs, err error) {
	transports := []mpibench.Transport{mpibench.TCP}
	for _, word := range r.Words("over") {
		transports = append(transports, mpibench.Transport("mpi-"+word))
	}
	return openTransports(ctx, ranks, transports...)
}

// openTransports opens a job for each transport. The caller must close them, also after an
// error.
func openTransports(ctx context.Context, ranks int, transports ...mpibench.Transport) (all jobs, err error) {
	for _, over := range transports {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: over, Ranks: ranks})
		if err != nil {
			return all, fmt.Errorf("%d ranks over %s: %w", ranks, over, err)
		}
		all = append(all, job)
	}
	return all, nil
}

// jobFor returns the job of a transport, which must exist.
func (all jobs) jobFor(c mpibench.Transport) *mpibench.Job {
	return all[slices.IndexFunc(all, func(j *mpibench.Job) bool { return j.Transport == c })]
}

func (all jobs) close() {
	for _, j := range all {
		j.Close()
	}
}

// rankPoint opens jobs on the given number of ranks, measures them alternately with the series
// that addSeries adds, and emits the samples.
func rankPoint(ctx context.Context, r *run, ranks int, unit string, addSeries func(jobs, *seriesSet)) ([]bench.Sample, error) {
	all, err := openJobs(ctx, r, ranks)
	defer all.close()
	if err != nil {
		return nil, err
	}
	var set seriesSet
	addSeries(all, &set)
	samples, _, err := r.measurePoint(ctx, &set, bench.Point{X: float64(ranks), XUnit: ranksUnit, YUnit: unit})
	if err != nil {
		return nil, err
	}
	return samples, nil
}

// eachRatioOver calls f with the ratio over baseline of each series of our own transports
// except TCP.
func eachRatioOver(samples []bench.Sample, baseline string, f func(series string, ratio float64)) {
	for _, c := range mpibench.Transports() {
		if ratio, ok := medianRatioOf(samples, string(c), baseline); ok && c != mpibench.TCP {
			f(string(c), ratio)
		}
	}
}

// addTo adds all jobs to l.
func (all jobs) addTo(l *seriesSet, round func(*mpibench.Job) measure.Round) {
	for _, j := range all {
		l.addSeries(string(j.Transport), round(j))
	}
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "mpi-latency",
		Source: "IWARP fig. 4a",
		Layer:  bench.LayerMPI,
		Claim: "A message of 8 bytes takes no longer than with Open MPI over TCP. It takes at most 1.15 times as long as a bare RDMA write over the fast path, " +
			"and at most 1.4 times with sends and receives. The fast path takes at most 0.25 times as long as MPI over TCP.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "1,8,64,256,1KiB,4KiB", Quick: "8", Max: maxPing, Doc: "bytes of a message"},
			overParam("fast,rdma"),
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "10000", Quick: "2000", Doc: "round trips in a round"},
		},
		Run: evaluated(mpiLatency),
	})
}

// maxPing is the maximum message size of bare ping-pongs.
const maxPing = 32 << 10

// Limits for short messages.
const (
	fastOverTCP   = 0.25 // result of the paper
	fastOverWrite = 1.15 // the paper: 1.06
	sendOverWrite = 1.4
	overAnother   = 1.0 // over Open MPI
	claimedAt     = 8   // bytes
)

func mpiLatency(ctx context.Context, r *run) error {
	m, err := openMPIRun(ctx, r)
	defer m.close()
	if err != nil {
		return err
	}
	for _, size := range r.Ints("sizes") {
		r.Step("%d B", size)
		samples, err := m.measureLatency(ctx, size)
		if err != nil {
			return err
		}
		if size == claimedAt {
			evaluateLatency(&m.evaluation, samples)
		}
	}
	m.other.explainAbsence(&m.evaluation)
	return nil
}

// measureLatency measures one size: MPI, the operations it is built on, and Open MPI.
func (m *mpiRun) measureLatency(ctx context.Context, size int) ([]bench.Sample, error) {
	iters := m.Int("iters")
	write, err := m.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: size})
	if err != nil {
		return nil, err
	}
	defer write.Close(ctx)
	var set seriesSet
	m.all.addTo(&set, func(job *mpibench.Job) measure.Round { return job.Latency(size, iters) })
	set.addMeans(string(verbsbench.RCWrite), func(into *measure.Latency) measure.Round { return write.LatencyRounds(iters, into) })
	set.addMeans(string(sdpbench.TCP), func(into *measure.Latency) measure.Round { return m.sockets.PingRounds(size, iters, into) })
	m.other.addTo(&set, 2, "latency", size, iters)
	samples, _, err := m.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	if err != nil {
		return nil, err
	}
	return samples, nil
}

// evaluateLatency compares MPI over RDMA with its baselines.
func evaluateLatency(j *evaluation, samples []bench.Sample) {
	for _, c := range []struct {
		target, baseline string
		limit            float64
	}{
		{string(mpibench.Fast), overOpenMPI, overAnother},
		{string(mpibench.RDMA), overOpenMPI, overAnother},
		{string(mpibench.Fast), string(verbsbench.RCWrite), fastOverWrite},
		{string(mpibench.RDMA), string(verbsbench.RCWrite), sendOverWrite},
		{string(mpibench.Fast), string(mpibench.TCP), fastOverTCP},
	} {
		if ratio, ok := medianRatioOf(samples, c.target, c.baseline); ok {
			j.atMost(c.target+" over "+c.baseline, ratio, c.limit)
		}
	}
}

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
		Run: evaluated(mpiBandwidth),
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

func mpiBandwidth(ctx context.Context, r *run) error {
	m, err := openMPIRun(ctx, r)
	defer m.close()
	if err != nil {
		return err
	}
	peaks := make([]float64, len(m.all))
	for _, size := range r.Ints("sizes") {
		r.Step("%d B", size)
		samples, err := m.measureBandwidth(ctx, size)
		if err != nil {
			return err
		}
		evaluateBandwidth(&m.evaluation, samples, size)
		for i := range peaks {
			peaks[i] = max(peaks[i], measure.Median(samples[i].Figures))
		}
	}
	evaluatePeaks(&m.evaluation, m.all, peaks)
	m.other.explainAbsence(&m.evaluation)
	return nil
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
	at := atSize(size, measure.MegabytesPerSec)
	samples, _, err := m.measurePoint(ctx, &set, at)
	if err != nil {
		return nil, err
	}
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

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

// addTo adds all jobs to l.
func (all jobs) addTo(l *seriesSet, round func(*mpibench.Job) measure.Round) {
	for _, j := range all {
		l.addSeries(string(j.Transport), round(j))
	}
}

func init() {
	register(&bench.Experiment{
		Name:   "mpi-latency",
		Source: "IWARP fig. 4a",
		Layer:  bench.LayerMPI,
		Claims: latencyClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "1,8,64,256,1KiB,4KiB", Quick: "8", Max: maxPing, Doc: "bytes of a message"},
			overParam("fast,rdma"),
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "10000", Quick: "2000", Doc: "round trips in a round"},
		},
		Run: runFunc(mpiLatency),
	})
}

// maxPing is the maximum message size of bare ping-pongs.
const maxPing = 32 << 10

// claimedAt is the size of a short message of the claims.
const claimedAt = 8

// overTCP are the implementations of MPI over TCP. A ratio of the paper must hold against each,
// so that it does not come from a slow one of our own.
var overTCP = []string{string(mpibench.TCP), overOpenMPI}

// polledTCP is the cause of a small distance between RDMA in software and TCP on one machine.
const polledTCP = "on one machine both a polled TCP socket and the polled UDP socket below RDMA in software cost system calls; " +
	"the paper's adapter bypasses the kernel, and its TCP does not"

func latencyClaims() []bench.Statement {
	const fast, sends, write = string(mpibench.Fast), string(mpibench.RDMA), string(verbsbench.RCWrite)
	over := func(of []string, over []string, most float64) bench.Comparison {
		return bench.Ratio{Of: of, Over: over, Unit: measure.Microseconds, At: bench.At(claimedAt, measure.Bytes), Limit: bench.AtMost(most)}
	}
	return []bench.Statement{
		{
			Sentence: "A message of 8 bytes over the RDMA fast path takes at most a quarter of the time of MPI over TCP.",
			Paper:    "75 % below MPI over TCP (6.89 us and 27.84 us)", Number: 0.25,
			Compare: over([]string{fast}, overTCP, 0.25), Because: polledTCP,
		},
		{
			Sentence: "It takes at most 1.07 times as long as a bare RDMA write.",
			Paper:    "6 % above the RDMA write (6.49 us)", Number: 1.062,
			Compare: over([]string{fast}, []string{write}, 1.07),
			Because: "matching and the progress of MPI run on the processor that the adapter in software needs",
		},
		{
			Source:   bench.Adapter,
			Sentence: "MPI over TCP takes at most 1.2 times as long as Open MPI over TCP.",
			Compare:  over([]string{string(mpibench.TCP)}, []string{overOpenMPI}, 1.2),
		},
		{
			Sentence: "By sends and receives it takes at most 1.30 times as long as a bare RDMA write.",
			Paper:    "8.43 us and 6.49 us", Number: 1.30,
			Compare: over([]string{sends}, []string{write}, 1.30),
		},
		{
			Sentence: "It takes less time over the fast path than by sends and receives.",
			Paper:    "6.89 us and 8.43 us, for the absence of the fast path",
			Compare:  over([]string{fast}, []string{sends}, 1),
			Because:  "a receive in software is a lookup in the memory of the same process, and no work of an adapter that the fast path would spare",
		},
		{
			Sentence: "A bare RDMA write takes at most 0.3 times as long as a message over bare TCP sockets.",
			Paper:    "6.49 us and 22.3 us", Number: 0.29,
			Compare: over([]string{write}, []string{string(sdpbench.TCP)}, 0.3),
		},
		{
			Source:   bench.Adapter,
			Sentence: "A message of 8 bytes takes no longer than with Open MPI over TCP.",
			Compare:  over([]string{fast, sends}, []string{overOpenMPI}, 1),
		},
	}
}

func mpiLatency(ctx context.Context, r *run) error {
	m, err := openMPIRun(ctx, r)
	defer m.close()
	if err != nil {
		return err
	}
	for _, size := range r.Ints("sizes") {
		r.Step("%d B", size)
		if err := m.measureLatency(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// measureLatency measures one size: MPI, the operations it is built on, and Open MPI.
func (m *mpiRun) measureLatency(ctx context.Context, size int) error {
	iters := m.Int("iters")
	write, err := m.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: size})
	if err != nil {
		return err
	}
	defer write.Close(ctx)
	var set seriesSet
	m.all.addTo(&set, func(job *mpibench.Job) measure.Round { return job.Latency(size, iters) })
	set.addMeans(string(verbsbench.RCWrite), func(into *measure.Latency) measure.Round { return write.LatencyRounds(iters, into) })
	set.addMeans(string(sdpbench.TCP), func(into *measure.Latency) measure.Round { return m.sockets.PingRounds(size, iters, into) })
	m.other.addTo(&set, 2, "latency", size, iters)
	_, err = m.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	return err
}

func init() {
	register(&bench.Experiment{
		Name:   "mpi-bandwidth",
		Source: "IWARP fig. 4b",
		Layer:  bench.LayerMPI,
		Claims: bandwidthClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "8,64KiB,1MiB", Max: 4 << 20, Doc: "bytes of a message"},
			overParam("fast,rdma"),
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "windows", Kind: bench.Int, Default: "20", Quick: "4", Doc: "windows of 64 messages in a round; ten times as many for messages of up to 8 KiB"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round of the bare streams"},
		},
		Run: runFunc(mpiBandwidth),
	})
}

func bandwidthClaims() []bench.Statement {
	const fast, sends, write = string(mpibench.Fast), string(mpibench.RDMA), string(verbsbench.RCWrite)
	both := []string{fast, sends}
	all := bench.Everywhere(measure.Bytes)
	at := func(size float64, over string, least float64) bench.Comparison {
		return bench.Ratio{Of: both, Over: []string{over}, Unit: measure.MegabytesPerSec, At: bench.At(size, measure.Bytes), Limit: bench.AtLeast(least)}
	}
	return []bench.Statement{
		{
			Sentence: "The peak bandwidth of MPI over RDMA is at least 1.37 times that of MPI over TCP, with and without the fast path.",
			Paper:    "37 % above MPI over TCP (1231 MB/s and 895 MB/s)", Number: 1.37,
			Compare: bench.Ratio{Of: both, Over: overTCP, Unit: measure.MegabytesPerSec, At: all, Peak: true, Limit: bench.AtLeast(1.37)},
			Because: "TCP on one machine moves up to 64 KiB a segment and leaves checksums out",
		},
		{
			Sentence: "The peaks with and without the fast path differ by at most 10 %.",
			Paper:    "both 1231 MB/s",
			Compare: bench.All{
				bench.Ratio{Of: []string{fast}, Over: []string{sends}, Unit: measure.MegabytesPerSec, At: all, Peak: true, Limit: bench.Within(0.91, 1.1)},
			},
		},
		{
			Sentence: "Both peaks are at least 0.95 times that of bare RDMA writes.",
			Paper:    "1231 MB/s and 1287 MB/s", Number: 0.96,
			Compare: bench.Ratio{Of: both, Over: []string{write}, Unit: measure.MegabytesPerSec, At: all, Peak: true, Limit: bench.AtLeast(0.95)},
		},
		{
			Sentence: "The peak of MPI over TCP is at least 0.86 times that of bare TCP sockets.",
			Paper:    "895 MB/s out of 1034 MB/s", Number: 0.866,
			Compare: bench.Ratio{Of: []string{string(mpibench.TCP)}, Over: []string{string(sdpbench.TCP)}, Unit: measure.MegabytesPerSec, At: all, Peak: true, Limit: bench.AtLeast(0.86)},
		},
		{
			Source:   bench.Adapter,
			Sentence: "Messages of 64 KiB have at least the bandwidth of Open MPI over TCP, and those of 1 MiB at least 0.85 times.",
			Compare:  bench.All{at(64<<10, overOpenMPI, 1), at(1<<20, overOpenMPI, 0.85)},
		},
		{
			Source:   bench.Adapter,
			Sentence: "Both have at least 0.85 times the bandwidth of bare RDMA writes.",
			Compare:  bench.All{at(64<<10, write, 0.85), at(1<<20, write, 0.85)},
		},
		{
			Source:   bench.Adapter,
			Sentence: "The rate of 8-byte messages is at least 3 times that of Open MPI over TCP.",
			Compare:  at(8, overOpenMPI, 3),
		},
	}
}

// rateAt is the size whose bandwidth is also shown as a message rate.
const rateAt = 8

// shortMessage is the size up to which the time of a window is negligible.
const shortMessage = 8 << 10

func mpiBandwidth(ctx context.Context, r *run) error {
	m, err := openMPIRun(ctx, r)
	defer m.close()
	if err != nil {
		return err
	}
	for _, size := range r.Ints("sizes") {
		r.Step("%d B", size)
		if err := m.measureBandwidth(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// measureBandwidth measures one size. Those of rateAt bytes are also shown as message rates.
func (m *mpiRun) measureBandwidth(ctx context.Context, size int) error {
	write, err := m.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCWrite, Size: size})
	if err != nil {
		return err
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
	samples, err := m.measurePoint(ctx, &set, at)
	if err != nil {
		return err
	}
	if size == rateAt {
		at.YUnit = measure.MessagesPerSecond
		rates := inMessages(samples, size)
		m.EmitAgainst(at, rates[0], rates[1:]...)
	}
	return nil
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

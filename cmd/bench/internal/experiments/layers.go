package experiments

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
)

func init() {
	register(&bench.Experiment{
		Name:   "layers-latency",
		Source: bench.Adapter,
		Layer:  bench.LayerAll,
		Claims: layersClaims("A message of 8 bytes takes at most 0.7 times as long through %s, with default options, as through a TCP connection of package net.",
			layerSeries, measure.Microseconds, claimedAt, bench.AtMost(0.7)),
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB", Quick: "8", Max: maxPing, Check: bench.MultipleOf(8), Doc: "bytes of a message, a multiple of 8"},
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "3000", Quick: "1000", Doc: "round trips in a round"},
			layersLimit(),
		},
		Tour: bench.Settings{},
		Run:  runFunc(layersLatency),
	})
	register(&bench.Experiment{
		Name:   "layers-stream",
		Source: bench.Adapter,
		Layer:  bench.LayerAll,
		Claims: append(
			layersClaims("A stream of 64 bytes a message has at least twice the rate through %s, with default options, as through a TCP connection of package net.",
				rateSeries, measure.MessagesPerSecond, 64, bench.AtLeast(2)),
			layersClaims("A stream of 64 KiB a message has at least 0.3 times its bandwidth through %s.",
				layerSeries, measure.MegabytesPerSec, longMessage, bench.AtLeast(0.3))...),
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "64,4KiB,64KiB,1MiB", Quick: "64,64KiB", Max: 4 << 20, Check: bench.MultipleOf(8), Doc: "bytes of a message, a multiple of 8; up to 1 KiB the figure is the message rate"},
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "50ms", Doc: "length of a round"},
			layersLimit(),
		},
		Tour: bench.Settings{},
		Run:  runFunc(layersStream),
	})
}

// layersClaims returns a statement about each of the series: its ratio to TCP with messages of
// one size.
func layersClaims(sentence string, of []string, unit string, size int, limit bench.Limit) (claims []bench.Statement) {
	for _, series := range of {
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf(sentence, series),
			Compare:  bench.Ratio{Of: []string{series}, Over: []string{string(sdpbench.TCP)}, Unit: unit, At: bench.At(float64(size), measure.Bytes), Limit: limit},
		})
	}
	return claims
}

// layersLimit returns the parameter that bounds the time of a point on a busy machine.
func layersLimit() bench.Param {
	return bench.Param{Name: "limit", Kind: bench.Duration, Default: "10m", Quick: "9s", Doc: "time after which no round of a point begins, except for the first"}
}

// rdmMessages is the series of reliable datagrams of package rdm.
const rdmMessages = "rdm-send"

// A layersRun has the targets of one experiment: the layers with their default options, the
// programs that people use otherwise, and the limit.
type layersRun struct {
	*run
	pair  *verbsbench.Pair
	tcp   *sdpbench.Pair
	sdp   *sdpbench.Pair
	mpi   *mpibench.Job
	acp   *acpbench.Job
	other openMPI
}

// layersChannel is the channel of ACP.
var layersChannel = acpbench.Channel{SlotSize: claimedSlot, Imm: true}

// runLayers opens the processes of all layers and measures point at every size.
func runLayers(ctx context.Context, r *run, point func(*layersRun, context.Context, int) error) (err error) {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes)*(1+r.Int("rounds")))
	r.Step("starting processes")
	l := &layersRun{run: r}
	if l.pair, err = verbsbench.OpenPair(ctx, verbsbench.Config{Spin: rnic.DefaultSpin}); err != nil {
		return err
	}
	defer l.pair.Close()
	if l.tcp, err = sdpbench.Open(ctx, sdpbench.Config{Transport: sdpbench.TCP}); err != nil {
		return err
	}
	defer l.tcp.Close()
	if l.sdp, err = sdpbench.Open(ctx, sdpbench.Config{Transport: sdpbench.NIC}); err != nil {
		return err
	}
	defer l.sdp.Close()
	if l.mpi, err = mpibench.Open(ctx, mpibench.Config{Transport: mpibench.Shared, Ranks: 2}); err != nil {
		return err
	}
	defer l.mpi.Close()
	if l.acp, err = acpbench.Open(ctx, acpbench.Config{Ranks: 2}); err != nil {
		return err
	}
	defer l.acp.Close()
	if l.other, err = openOpenMPI(ctx, r); err != nil {
		return err
	}
	defer l.other.close()
	for _, size := range sizes {
		r.Step("%d B: opening connections", size)
		if err := point(l, ctx, size); err != nil {
			return fmt.Errorf("%d B: %w", size, err)
		}
	}
	return nil
}

// measureSet runs the rounds, each a step, and emits their samples.
func (l *layersRun) measureSet(ctx context.Context, set *seriesSet, size int, unit string) error {
	rounds, n := l.Int("rounds"), 0
	first := set.rounds[0]
	set.rounds[0] = func(ctx context.Context) (float64, error) {
		n++
		l.Step("%d B: round %d of %d", size, n, rounds)
		return first(ctx)
	}
	samples, err := set.runAlternatingFor(ctx, l.Duration("limit"), rounds)
	if err == nil {
		l.emitSamples(set, atSize(size, unit), samples)
	}
	return err
}

// layerSeries are the series of the layers.
var layerSeries = []string{
	string(verbsbench.RCWrite), string(verbsbench.RCSend), rdmMessages, string(sdpbench.NIC), string(mpibench.Shared), channelSeries(layersChannel),
}

func layersLatency(ctx context.Context, r *run) error {
	return runLayers(ctx, r, (*layersRun).measureLatency)
}

// measureLatency measures half round trips of one size: means, because Open MPI and the
// benchmarks of MPI have no other figure.
func (l *layersRun) measureLatency(ctx context.Context, size int) error {
	iters := l.Int("iters")
	var set seriesSet
	addPing := func(series string, p pinger) {
		set.addMeans(series, func(into *measure.Latency) measure.Round { return p.LatencyRounds(iters, into) })
	}
	for _, mode := range []udpraw.Mode{udpraw.Spin, udpraw.Netpoll} {
		p, err := openPing(ctx, mode, size)
		if err != nil {
			return err
		}
		defer p.Close()
		addPing("udp-"+string(mode), p)
	}
	set.addMeans(string(sdpbench.TCP), func(into *measure.Latency) measure.Round { return l.tcp.PingRounds(size, iters, into) })
	for _, op := range []verbsbench.Op{verbsbench.RCWrite, verbsbench.RCSend} {
		p, err := l.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: op, Size: size})
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		defer p.Close(ctx)
		addPing(string(op), p)
	}
	datagrams, err := l.pair.OpenRDM(ctx, verbsbench.RDMOptions{Op: verbsbench.RDMSend, Size: size, Service: rdm.ServeCalls})
	if err != nil {
		return fmt.Errorf("%s: %w", rdmMessages, err)
	}
	defer datagrams.Close(ctx)
	addPing(rdmMessages, datagrams)
	set.addMeans(string(sdpbench.NIC), func(into *measure.Latency) measure.Round { return l.sdp.PingRounds(size, iters, into) })
	set.addSeries(string(mpibench.Shared), l.mpi.Latency(size, iters))
	set.addMeans(channelSeries(layersChannel), func(into *measure.Latency) measure.Round { return l.acp.PingPong(layersChannel, size, iters, into) })
	l.other.addTo(&set, 2, "latency", size, iters)
	return l.measureSet(ctx, &set, size, measure.Microseconds)
}

func layersStream(ctx context.Context, r *run) error {
	return runLayers(ctx, r, (*layersRun).measureStream)
}

const (
	rdmUpTo  = 64 << 10 // message size up to which rdm is measured; its messages have 32 datagrams at most
	rateUpTo = 1 << 10  // message size up to which the figure is the message rate
)

// rateSeries are the series of layerSeries whose rate of short messages has a limit.
var rateSeries = []string{string(verbsbench.RCWrite), string(sdpbench.NIC), string(mpibench.Shared)}

// measureStream measures streams of one size.
func (l *layersRun) measureStream(ctx context.Context, size int) error {
	d, unit, scale := l.Duration("time"), measure.MegabytesPerSec, 1.0
	if size <= rateUpTo {
		unit, scale = measure.MessagesPerSecond, 1e6/float64(size)
	}
	var set seriesSet
	add := func(series string, round measure.Round) {
		set.addSeries(series, func(ctx context.Context) (float64, error) {
			v, err := round(ctx)
			return v * scale, err
		})
	}
	for i, series := range []string{"udp", "udp-packet"} {
		b, err := udpraw.OpenBandwidth(ctx, udpraw.BandwidthOptions{
			Payload: min(size, maxMTU), Offload: i == 0 && udpraw.HasOffload(), RecvBuffer: largeBuffer,
		})
		if err != nil {
			return err
		}
		defer b.Close()
		add(series, b.Rounds(d, udpraw.Flow.MBps))
	}
	stream := func(p *sdpbench.Pair) measure.Round {
		return p.NewStreamer(sdpbench.StreamOptions{Size: size, Greedy: true}, d).Rounds(sdpbench.Flow.MBps)
	}
	add(string(sdpbench.TCP), stream(l.tcp))
	for _, op := range []verbsbench.Op{verbsbench.RCWrite, verbsbench.RCSend} {
		s, err := l.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: op, Size: size})
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		defer s.Close(ctx)
		add(string(op), s.Rounds(d, verbsbench.Flow.MBps))
	}
	if size <= rdmUpTo {
		datagrams, err := l.pair.OpenRDM(ctx, verbsbench.RDMOptions{Op: verbsbench.RDMSend, Size: size, Service: rdm.ServeCalls})
		if err != nil {
			return fmt.Errorf("%s: %w", rdmMessages, err)
		}
		defer datagrams.Close(ctx)
		add(rdmMessages, datagrams.BandwidthRounds(d))
	}
	add(string(sdpbench.NIC), stream(l.sdp))
	windows := windowsFor(size, d)
	add(string(mpibench.Shared), l.mpi.Bandwidth(size, windows))
	add(channelSeries(layersChannel), l.acp.Stream(layersChannel, size, windows*64))
	if l.other.program != nil {
		set.addOpponent(overOpenMPI, openMPIPackages, func(ctx context.Context) (float64, error) {
			v, err := l.other.program.Measure(ctx, peers.OverTCP, 2, "bandwidth", size, windows)
			return v * scale, err
		})
	}
	return l.measureSet(ctx, &set, size, unit)
}

// windowsFor returns the number of windows of 64 messages that take about d at 1 million
// messages per second or 2 GB/s.
func windowsFor(size int, d time.Duration) int {
	return max(1, int(d.Seconds()*min(1e6, 2e9/float64(size))/64))
}

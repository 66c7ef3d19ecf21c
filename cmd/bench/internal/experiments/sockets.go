package experiments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

// Parts of the experiment with the packets of sockets.
const (
	socketsLatency = "latency"
	socketsStreams = "streams"
	socketsMPI     = "mpi"
)

func init() {
	register(&bench.Experiment{
		Name:   "sockets",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: socketsClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}, {Name: "ranks", Unit: ranksUnit}},
		Params: []bench.Param{
			{Name: "parts", Kind: bench.Words, Default: "latency,streams,mpi", Quick: "latency,streams", Choices: []string{socketsLatency, socketsStreams, socketsMPI},
				Doc: "comparisons to run: latency and bandwidth of two processes, and jobs of more ranks than processors"},
			besideOpenMPI(),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round, or messages in a stream of another implementation"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a round of our own streams"},
			{Name: "calls", Kind: bench.Int, Default: "100", Quick: "50", Doc: "collective calls in a round"},
		},
		Run: runFunc(measureSockets),
	})
}

// Points of the experiment.
const (
	socketsSmall   = 8        // bytes of a message beside a datagram
	socketsPage    = 4 << 10  // of a message beside UCX, and of one MTU
	socketsLong    = 1 << 20  // of a message beside TCP
	socketsRead    = 64 << 10 // of a read in packets of 1024 bytes
	socketsBarrier = 4        // ranks
)

// socketsBlocks are the bytes that a rank of an alltoall sends to each other rank.
var socketsBlocks = []int{64, 1 << 10, 4 << 10}

func socketsClaims() []bench.Statement {
	ratio := func(sentence, of, over, unit string, at bench.Points, limit bench.Limit) bench.Statement {
		return bench.Statement{Sentence: sentence, Compare: bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: unit, At: at, Limit: limit}}
	}
	const write, read, ud, rc = string(verbsbench.RCWrite), string(verbsbench.RCRead), string(verbsbench.UDSend), string(verbsbench.RCSend)
	page := bench.At(socketsPage, measure.Bytes)
	return []bench.Statement{
		ratio("Over sockets, an rc-write of 8 B takes at most 1.35 times as long as a polling UDP ping-pong.",
			write, "udp-spin", measure.Microseconds, bench.At(socketsSmall, measure.Bytes), bench.AtMost(1.35)),
		ratio("Over sockets, an rc-write of 4 KiB takes at most 1.1 times as long as with UCX over TCP.",
			write, peerUCX, measure.Microseconds, page, bench.AtMost(1.1)),
		ratio("Over sockets, a stream of rc-writes of 1 MiB has at least 0.85 times the bandwidth of Go's TCP.",
			write, peerTCP, measure.MegabytesPerSec, bench.At(socketsLong, measure.Bytes), bench.AtLeast(0.85)),
		ratio("Over sockets, reads of 64 KiB in packets of 1024 B have at least 0.75 times the bandwidth of UDP with packets of the same size.",
			read+"-mtu1024", "udp-mtu1024", measure.MegabytesPerSec, bench.At(socketsRead, measure.Bytes), bench.AtLeast(0.75)),
		ratio("Over sockets, a stream of UD messages of one MTU that are posted one by one has at least 0.8 times the bandwidth of RC.",
			ud, rc, measure.MegabytesPerSec, page, bench.AtLeast(0.8)),
		ratio("Over sockets, an alltoall of blocks of 64 B, 1 and 4 KiB on 32 ranks takes no longer than with Open MPI over TCP.",
			a2aTable, overOpenMPI, usOnRanks(paperRanks), bench.Everywhere(measure.Bytes), bench.AtMost(1)),
		ratio("Over sockets, a barrier of 4 ranks takes no longer than with Open MPI over TCP.",
			string(mpibench.RDMA), overOpenMPI, measure.Microseconds, bench.At(socketsBarrier, ranksUnit), bench.AtMost(1)),
	}
}

func measureSockets(ctx context.Context, r *run) error {
	steps := map[string]int{socketsLatency: 2, socketsStreams: 3, socketsMPI: 1 + len(socketsBlocks)}
	total := 0
	for _, part := range r.Words("parts") {
		total += steps[part]
	}
	r.Plan(total)
	for _, part := range []struct {
		name string
		run  func(context.Context, *run) error
	}{{socketsLatency, socketLatencies}, {socketsStreams, socketStreams}, {socketsMPI, socketJobs}} {
		if !slices.Contains(r.Words("parts"), part.name) {
			continue
		}
		if err := part.run(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// socketLatencies measures writes beside datagrams, and those of a page beside UCX.
func socketLatencies(ctx context.Context, r *run) error {
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	iters := r.Int("iters")
	for _, size := range []int{socketsSmall, socketsPage} {
		r.Step("latency of %d B", size)
		set, end, err := newPingSet(ctx, pair, size, iters, verbsbench.RCWrite)
		defer end()
		if err != nil {
			return err
		}
		switch {
		case size != socketsPage:
		case peers.HasUCX():
			set.addOpponent(peerUCX, ucxPackage, func(ctx context.Context) (float64, error) { return peers.UCXLatency(ctx, "tcp", size, iters) })
		default:
			r.EmitAbsent(peerUCX, "not installed here (%s)", ucxPackage)
		}
		if _, err := r.measurePoint(ctx, &set, atSize(size, measure.Microseconds)); err != nil {
			return err
		}
	}
	return nil
}

// socketStreams measures streams: long writes beside TCP, datagrams beside RC, and reads in small packets.
func socketStreams(ctx context.Context, r *run) error {
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	r.Step("streams of %d B", socketsLong)
	set, end, err := newStreamSet(ctx, pair, socketsLong, r.Duration("time"), verbsbench.RCWrite)
	defer end()
	if err != nil {
		return err
	}
	tcp, err := peers.OpenTCP(ctx, socketsLong)
	if err != nil {
		return err
	}
	defer tcp.Close()
	set.addSeries(peerTCP, func(ctx context.Context) (float64, error) { return tcp.Bandwidth(ctx, r.Int("iters")*socketsLong) })
	if _, err := r.measurePoint(ctx, &set, atSize(socketsLong, measure.MegabytesPerSec)); err != nil {
		return err
	}

	r.Step("streams of %d B", socketsPage)
	set, endPage, err := newStreamSet(ctx, pair, socketsPage, r.Duration("time"), verbsbench.RCSend, verbsbench.UDSend)
	defer endPage()
	if err != nil {
		return err
	}
	if _, err := r.measurePoint(ctx, &set, atSize(socketsPage, measure.MegabytesPerSec)); err != nil {
		return err
	}
	return socketReads(ctx, r)
}

// socketReads measures reads in packets of 1024 bytes.
func socketReads(ctx context.Context, r *run) error {
	r.Step("reads of %d B", socketsRead)
	small := newBandwidthLink("mtu-1024")
	pair, err := verbsbench.OpenPair(ctx, small.config)
	if err != nil {
		return err
	}
	defer pair.Close()
	small.base.Payload = small.mtu
	base, err := udpraw.OpenBandwidth(ctx, small.base)
	if err != nil {
		return err
	}
	defer base.Close()
	stream, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCRead, Size: socketsRead})
	if err != nil {
		return err
	}
	defer stream.Close(ctx)
	var set seriesSet
	set.addSeries("udp"+small.suffix, base.Rounds(r.Duration("time"), udpraw.Flow.MBps))
	set.addSeries(string(verbsbench.RCRead)+small.suffix, stream.Rounds(r.Duration("time"), verbsbench.Flow.MBps))
	_, err = r.measurePoint(ctx, &set, atSize(socketsRead, measure.MegabytesPerSec))
	return err
}

// socketJobs measures collectives by messages on more ranks than processors.
func socketJobs(ctx context.Context, r *run) error {
	other, err := openOpenMPI(ctx, r)
	if err != nil {
		return err
	}
	defer other.close()
	r.Step("barrier of %d ranks", socketsBarrier)
	at := bench.Point{X: socketsBarrier, XUnit: ranksUnit, YUnit: measure.Microseconds}
	if err := socketJob(ctx, r, other, string(mpibench.RDMA), "Barrier", socketsBarrier, 0, 10*r.Int("calls"), at); err != nil {
		return err
	}
	for _, size := range socketsBlocks {
		r.Step("alltoall of %d ranks, %d B", paperRanks, size)
		if err := socketJob(ctx, r, other, a2aTable, "Alltoall", paperRanks, size, r.Int("calls"), atSize(size, usOnRanks(paperRanks))); err != nil {
			return err
		}
	}
	return nil
}

// socketJob measures one collective call.
func socketJob(ctx context.Context, r *run, other openMPI, series, call string, ranks, size, calls int, at bench.Point) error {
	job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: ranks})
	if err != nil {
		return fmt.Errorf("%d ranks: %w", ranks, err)
	}
	defer job.Close()
	var set seriesSet
	set.addSeries(series, job.Collective(call, size, calls))
	other.addTo(&set, ranks, strings.ToLower(call), size, calls)
	_, err = r.measurePoint(ctx, &set, at)
	return err
}

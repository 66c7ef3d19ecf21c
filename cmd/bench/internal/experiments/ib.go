package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	register(&bench.Experiment{
		Name:   "ib-transports",
		Source: "RCUD fig. 8",
		Layer:  bench.LayerVerbs,
		Claims: transportClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "latency", Kind: bench.Ints, Default: "8,64,512,1KiB,2KiB,4KiB,8KiB,16KiB,64KiB", Quick: "8,4KiB,64KiB", Max: 128 << 10, Doc: "message sizes for latency"},
			{Name: "bandwidth", Kind: bench.Ints, Default: "64,512,1KiB,2KiB,4KiB,8KiB,16KiB,64KiB,1MiB", Quick: "4KiB,64KiB", Max: 4 << 20, Doc: "message sizes for bandwidth"},
			{Name: "beside", Kind: bench.Words, Default: "libfabric", Choices: []string{"libfabric", "nothing"}, Doc: "other implementation to run at 8 B and 64 KiB, if installed"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "300", Doc: "round trips in a round"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a bandwidth round"},
		},
		Run: runFunc(measureTransports),
	})
}

const fabricSmall, fabricLarge = 8, 64 << 10 // message sizes of the comparison with libfabric

// Series with one message in flight.
const (
	rcPingPong  = "rc-send-ping-pong"
	rxdPingPong = peers.RXD + "-ping-pong"
)

func transportClaims() []bench.Statement {
	rc, ud := string(verbsbench.RCSend), string(verbsbench.UDSend)
	over := func(of, over, unit string, at bench.Points, limit bench.Limit) bench.Comparison {
		return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: unit, At: at, Limit: limit}
	}
	oneMTU, above := bench.At(maxMTU, measure.Bytes), bench.From(maxMTU+1, measure.Bytes)
	const alsoSoftware = "the adapter is software and segments RC messages too; above one MTU, UD has an additional copy and credits"
	return []bench.Statement{
		{
			Sentence: "The latency of UD is at most 1.25 times that of RC for messages up to one MTU.",
			Paper:    "almost equal up to one MTU",
			Compare:  over(ud, rc, measure.Microseconds, bench.Between(1, maxMTU, measure.Bytes), bench.AtMost(1.25)),
		},
		{
			Sentence: "The bandwidth of UD is at least 0.8 times that of RC for messages of one MTU.",
			Paper:    "almost equal for one MTU",
			Compare:  over(ud, rc, measure.MegabytesPerSec, oneMTU, bench.AtLeast(0.8)),
			Because:  "UD sends posted one by one take a system call each, and those of RC are sent in batches",
		},
		{
			Sentence: "Above one MTU the latency of UD is at least that of RC.",
			Paper:    "UD behind above one MTU",
			Compare:  over(ud, rc, measure.Microseconds, above, bench.AtLeast(1)), Because: alsoSoftware,
		},
		{
			Sentence: "Above one MTU the bandwidth of UD is at most that of RC.",
			Paper:    "UD behind above one MTU",
			Compare:  over(ud, rc, measure.MegabytesPerSec, above, bench.AtMost(1)), Because: alsoSoftware,
		},
		{
			Sentence: "RC has at most the latency of UD, and at least its bandwidth, at each size.",
			Paper:    "RC performs better than UD, both in latency and bandwidth",
			Compare: bench.All{over(rc, ud, measure.Microseconds, bench.Everywhere(measure.Bytes), bench.AtMost(1)),
				over(rc, ud, measure.MegabytesPerSec, bench.Everywhere(measure.Bytes), bench.AtLeast(1))},
			Because: "a message over UD has neither acknowledgement nor retransmission, which are processor time of a software adapter",
		},
		{
			Source:   bench.Adapter,
			Sentence: "An RC send of 8 B takes at most half as long as with libfabric's udp;ofi_rxd.",
			Compare:  over(rc, peers.RXD, measure.Microseconds, bench.At(fabricSmall, measure.Bytes), bench.AtMost(0.5)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "A stream of RC sends of 64 KiB has at least 10 times the bandwidth of libfabric's program, which has one message in flight.",
			Compare:  over(rc, rxdPingPong, measure.MegabytesPerSec, bench.At(fabricLarge, measure.Bytes), bench.AtLeast(10)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "With one message of 64 KiB in flight, RC sends have at least the bandwidth of libfabric's udp;ofi_rxd.",
			Compare:  over(rcPingPong, rxdPingPong, measure.MegabytesPerSec, bench.At(fabricLarge, measure.Bytes), bench.AtLeast(1)),
		},
	}
}

// A transportRun is a running experiment.
type transportRun struct {
	*run
	pair   *verbsbench.Pair
	fabric bool // run libfabric too
}

func measureTransports(ctx context.Context, r *run) error {
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	t := &transportRun{run: r, pair: pair, fabric: slices.Contains(r.Words("beside"), "libfabric")}
	if !t.fabric || !peers.HasLibfabric() {
		reason := "not installed here (" + libfabricPackage + ")"
		if !t.fabric {
			reason = "not selected (--set beside=libfabric)"
		}
		t.fabric = false
		r.EmitAbsent(peers.RXD, "%s", reason)
		r.EmitAbsent(rxdPingPong, "%s", reason)
	}
	return r.measureSizes(ctx, t.measureLatency, t.measureBandwidth)
}

// measureLatency measures half round trips of one size.
func (t *transportRun) measureLatency(ctx context.Context, size int) error {
	set, end, err := newPingSet(ctx, t.pair, size, t.Int("iters"), verbsbench.RCSend, verbsbench.UDSend)
	defer end()
	if err != nil {
		return err
	}
	if t.fabric && size == fabricSmall {
		set.addOpponent(peers.RXD, libfabricPackage, func(ctx context.Context) (float64, error) {
			f, err := peers.FabricPingPong(ctx, peers.RXD, size, t.Int("iters"))
			return f.Micros, err
		})
	}
	_, err = t.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	return err
}

// measureBandwidth measures streams of one size. libfabric's program has one message in flight,
// so it is compared with an RC ping-pong.
func (t *transportRun) measureBandwidth(ctx context.Context, size int) error {
	set, end, err := newStreamSet(ctx, t.pair, size, t.Duration("time"), verbsbench.RCSend, verbsbench.UDSend)
	defer end()
	if err != nil {
		return err
	}
	if t.fabric && size == fabricLarge {
		ping, err := t.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCSend, Size: size})
		if err != nil {
			return err
		}
		defer ping.Close(ctx)
		half := ping.LatencyRounds(t.Int("iters"), nil)
		set.addSeries(rcPingPong, func(ctx context.Context) (float64, error) {
			us, err := half(ctx)
			return float64(size) / us, err
		})
		set.addOpponent(rxdPingPong, libfabricPackage, func(ctx context.Context) (float64, error) {
			f, err := peers.FabricPingPong(ctx, peers.RXD, size, t.Int("iters"))
			return f.MBps, err
		})
	}
	_, err = t.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
	return err
}

func init() {
	register(&bench.Experiment{
		Name:   "ib-concurrency",
		Source: "RCUD fig. 6c",
		Layer:  bench.LayerVerbs,
		Claims: []bench.Statement{{
			Sentence: "With many senders to one root over a shared receive queue, zero-copy placement of one message after the other takes at least 1.2 times as long as " +
				"concurrent sends with a copy at the root.",
			Paper: "copy performs considerably better",
			Compare: bench.Ratio{Of: []string{string(verbsbench.ZeroCopy)}, Over: []string{string(verbsbench.Copy)}, Unit: measure.Microseconds,
				At: bench.Everywhere(senders), Limit: bench.AtLeast(1.2)},
		}},
		Axes: []bench.Axis{{Name: "senders", Unit: senders}},
		Params: []bench.Param{
			{Name: "senders", Kind: bench.Ints, Default: "2,4,8", Quick: "2,4", Max: 64, Doc: "sending processes"},
			{Name: "size", Kind: bench.Int, Default: "16KiB", Min: 8, OfClaim: true, Doc: "bytes of a message, at least 8"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "500", Quick: "150", Doc: "messages of each sender in a round"},
		},
		Run: runFunc(ibConcurrency),
	})
}

const senders = "senders" // unit of the number of senders

func ibConcurrency(ctx context.Context, r *run) error {
	counts := r.Ints("senders")
	r.Plan(len(counts))
	base, err := openPing(ctx, udpraw.Block, r.Int("size"))
	if err != nil {
		return err
	}
	defer base.Close()
	for _, n := range counts {
		r.Step("%d senders", n)
		if err := concurrencyPoint(ctx, r, n, base); err != nil {
			return err
		}
	}
	return nil
}

// concurrencyPoint gathers from n senders with both schemes, with half a round trip of a
// datagram of the same size as the baseline.
func concurrencyPoint(ctx context.Context, r *run, n int, base *udpraw.PingPong) error {
	var set seriesSet
	set.addPing("udp-block", base, r.Int("iters"))
	for _, scheme := range []verbsbench.Scheme{verbsbench.Copy, verbsbench.ZeroCopy} {
		g, err := verbsbench.OpenGather(ctx, verbsbench.GatherOptions{Scheme: scheme, Senders: n, Size: r.Int("size")})
		if err != nil {
			return fmt.Errorf("%s: %w", scheme, err)
		}
		defer g.Close()
		set.addPing(string(scheme), g, r.Int("iters"))
	}
	_, err := r.measurePoint(ctx, &set, bench.Point{X: float64(n), XUnit: senders, YUnit: measure.Microseconds})
	return err
}

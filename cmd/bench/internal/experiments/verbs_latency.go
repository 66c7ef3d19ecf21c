package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	ops := []string{"rc-write", "rc-send", "uc-write", "ud-send", "rc-read", "rc-atomic"}
	bench.Register(&bench.Experiment{
		Name:   "verbs-latency",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claim: "An RC write and an RC send of 8 bytes take at most 1.4 times as long as a polling UDP ping-pong, " +
			"and with blocking waiters at most 1.3 times as long as a blocking one.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,256,1KiB,4KiB,16KiB", Quick: "8", Doc: "bytes of a message"},
			{Name: "series", Kind: bench.Words, Default: "rc-write,rc-send,uc-write,ud-send,rc-read,rc-atomic", Choices: ops, Doc: "operations"},
			{Name: "wait", Kind: bench.Words, Default: "spin,event", Choices: []string{"spin", "event"}, Doc: "poll, or block until a completion event"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "3000", Quick: "400", Doc: "round trips in a round"},
		},
		Run: verbsLatency,
	})
}

const (
	packetOverhead = 16    // BTH and ICRC: overhead of the smallest packet
	maxUDP         = 65507 // maximum UDP payload over IPv4
	maxMTU         = 4096
)

func verbsLatency(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	waits, sizes := r.Words("wait"), r.Ints("sizes")
	r.Plan(len(waits) * len(sizes))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer pair.Close()
	var j evaluation
	for _, wait := range waits {
		for _, size := range sizes {
			r.Step("%d B, %s", size, wait)
			if err := latencyPoint(ctx, r, pair, size, wait == "event", &j); err != nil {
				return bench.Verdict{}, err
			}
		}
	}
	return j.makeVerdict(), nil
}

// latencyPoint measures every operation at one size, with the UDP ping-pong as the baseline.
// Reads and atomics, and their baseline, are whole round trips.
func latencyPoint(ctx context.Context, r *bench.Run, pair *verbsbench.Pair, size int, event bool, j *evaluation) error {
	mode, suffix, limit := udpraw.Spin, "", 1.4
	if event {
		mode, suffix, limit = udpraw.Block, "-event", 1.3
	}
	base, err := openPing(ctx, mode, size)
	if err != nil {
		return err
	}
	defer base.Close()
	var set seriesSet
	iters := r.Int("iters")
	set.addPing("udp-"+string(mode), base, iters)
	var ops []verbsbench.Op
	for _, op := range verbsbench.ParseOps(r.Words("series")) {
		if op == verbsbench.RCAtomic && size != 8 || op == verbsbench.UDSend && size > maxMTU {
			continue
		}
		ping, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: op, Size: size, Event: event})
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		defer ping.Close(ctx)
		set.addPing(string(op)+suffix, ping, iters)
		ops = append(ops, op)
	}
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.Microseconds}
	var oneWay, roundTrips []bench.Sample
	for i, op := range ops {
		if op == verbsbench.RCRead || op == verbsbench.RCAtomic {
			roundTrips = append(roundTrips, samples[1+i])
		} else {
			oneWay = append(oneWay, samples[1+i])
		}
	}
	for i, ratio := range r.EmitAgainst(at, samples[0], oneWay...) {
		if s := oneWay[i].Series; size == 8 && (s == "rc-write"+suffix || s == "rc-send"+suffix) {
			j.atMost(s+" over udp-"+string(mode), ratio, limit)
		}
	}
	if len(roundTrips) > 0 {
		r.EmitAgainst(at, roundTrip(samples[0]), roundTrips...)
	}
	return nil
}

// openPing opens a UDP ping-pong with the packet size of an adapter's message of size bytes. If
// the system does not support the mode, it uses that of package net.
func openPing(ctx context.Context, mode udpraw.Mode, size int) (*udpraw.PingPong, error) {
	if !slices.Contains(udpraw.Modes(), mode) {
		mode = udpraw.Netpoll
	}
	return udpraw.OpenPingPong(ctx, mode, min(size+packetOverhead, maxUDP))
}

// roundTrip returns a sample whose figures are those of half, doubled.
func roundTrip(half bench.Sample) bench.Sample {
	full := bench.Sample{Series: half.Series + "-round-trip", Figures: slices.Clone(half.Figures)}
	for i := range full.Figures {
		full.Figures[i] *= 2
	}
	return full
}

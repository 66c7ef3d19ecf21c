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
	register(&bench.Experiment{
		Name:   "verbs-latency",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: verbsLatencyClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,256,1KiB,4KiB,16KiB", Quick: "8", Max: 1 << 20, Doc: "bytes of a message"},
			{Name: "series", Kind: bench.Words, Default: "rc-write,rc-send,uc-write,ud-send,rc-read,rc-atomic", Choices: ops, Doc: "operations"},
			{Name: "wait", Kind: bench.Words, Default: "spin,event", Choices: []string{"spin", "event"}, Doc: "poll, or block until a completion event"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "3000", Quick: "400", Doc: "round trips in a round"},
		},
		Run: runFunc(verbsLatency),
	})
}

const (
	packetOverhead = 16    // BTH and ICRC: overhead of the smallest packet
	maxUDP         = 65507 // maximum UDP payload over IPv4
	maxMTU         = 4096
)

func verbsLatencyClaims() (claims []bench.Statement) {
	for _, c := range []struct {
		series, over, how string
		most              float64
	}{
		{"rc-write", "udp-spin", "polling", 1.4},
		{"rc-send", "udp-spin", "polling", 1.4},
		{"rc-write-event", "udp-block", "blocking", 1.3},
		{"rc-send-event", "udp-block", "blocking", 1.3},
	} {
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf("An %s of 8 bytes takes at most %.1f times as long as a %s UDP ping-pong.", c.series, c.most, c.how),
			Compare:  bench.Ratio{Of: []string{c.series}, Over: []string{c.over}, Unit: measure.Microseconds, At: bench.At(8, measure.Bytes), Limit: bench.AtMost(c.most)},
		})
	}
	return claims
}

func verbsLatency(ctx context.Context, r *run) error {
	waits, sizes := r.Words("wait"), r.Ints("sizes")
	r.Plan(len(waits) * len(sizes))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	for _, wait := range waits {
		for _, size := range sizes {
			r.Step("%d B, %s", size, wait)
			if err := latencyPoint(ctx, r, pair, size, wait == "event"); err != nil {
				return err
			}
		}
	}
	return nil
}

// latencyPoint measures every operation at one size, with the UDP ping-pong as the baseline.
// Reads and atomics, and their baseline, are whole round trips.
func latencyPoint(ctx context.Context, r *run, pair *verbsbench.Pair, size int, event bool) error {
	mode, suffix := udpraw.Spin, ""
	if event {
		mode, suffix = udpraw.Block, "-event"
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
	at := atSize(size, measure.Microseconds)
	var oneWay, roundTrips []bench.Sample
	for i, op := range ops {
		if op == verbsbench.RCRead || op == verbsbench.RCAtomic {
			roundTrips = append(roundTrips, samples[1+i])
		} else {
			oneWay = append(oneWay, samples[1+i])
		}
	}
	r.EmitAgainst(at, samples[0], oneWay...)
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

func init() {
	ops := []string{"rc-write", "rc-send", "rc-read", "uc-write", "ud-send"}
	register(&bench.Experiment{
		Name:   "verbs-bandwidth",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: verbsBandwidthClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "1,64,1KiB,4KiB,16KiB,64KiB,1MiB", Quick: "64KiB", Max: 4 << 20, Doc: "bytes of a message"},
			{Name: "series", Kind: bench.Words, Default: "rc-write,rc-send,rc-read,uc-write,ud-send", Choices: ops, Doc: "operations"},
			{Name: "links", Kind: bench.Words, Default: "mtu-4096,mtu-1024,default-buffer", Choices: []string{"mtu-4096", "mtu-1024", "default-buffer"},
				Doc: "path MTU with a large socket buffer, or MTU 4096 with the system's default buffer"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a round"},
		},
		Run: runFunc(verbsBandwidth),
	})
}

func verbsBandwidthClaims() (claims []bench.Statement) {
	for _, c := range []struct {
		suffix, name string
		write, rest  float64
	}{
		{"", "packets of the same size", 0.80, 0.70},
		{"-mtu1024", "packets of 1024 B", 0.70, 0.70},
		{"-default-buffer", "the default socket buffer", 0.60, 0.60},
	} {
		for _, op := range []string{"rc-write", "rc-send", "rc-read"} {
			least := c.rest
			if op == "rc-write" {
				least = c.write
			}
			claims = append(claims, bench.Statement{
				Sentence: fmt.Sprintf("An %s of 64 KiB and more has at least %.2f times the bandwidth of UDP with %s.", op, least, c.name),
				Compare: bench.Ratio{Of: []string{op + c.suffix}, Over: []string{"udp" + c.suffix}, Unit: measure.MegabytesPerSec,
					At: bench.From(longMessage, measure.Bytes), Limit: bench.AtLeast(least)},
			})
		}
	}
	return claims
}

// A bandwidthLink is a configuration of the two devices.
type bandwidthLink struct {
	suffix string // suffix of the series
	mtu    int
	config verbsbench.Config
	base   udpraw.BandwidthOptions
}

const longMessage = 64 << 10

func newBandwidthLink(name string) bandwidthLink {
	l := bandwidthLink{mtu: 4096, base: udpraw.BandwidthOptions{RecvBuffer: largeBuffer}}
	switch name {
	case "mtu-1024":
		l.suffix, l.mtu = "-mtu1024", 1024
	case "default-buffer":
		l.suffix, l.config.RecvBuffer, l.base.RecvBuffer = "-default-buffer", -1, 0
	}
	l.config.MTU = l.mtu
	l.base.Offload = udpraw.HasOffload()
	return l
}

func verbsBandwidth(ctx context.Context, r *run) error {
	links, sizes := r.Words("links"), r.Ints("sizes")
	r.Plan(len(links) * len(sizes))
	for _, name := range links {
		if err := bandwidthOver(ctx, r, newBandwidthLink(name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// bandwidthOver measures every size over one link.
func bandwidthOver(ctx context.Context, r *run, l bandwidthLink) error {
	pair, err := verbsbench.OpenPair(ctx, l.config)
	if err != nil {
		return err
	}
	defer pair.Close()
	bases := map[int]*udpraw.Bandwidth{} // by payload of a packet
	for _, size := range r.Ints("sizes") {
		r.Step("%d B%s", size, l.suffix)
		payload := min(size, l.mtu)
		base, open := bases[payload]
		if !open {
			o := l.base
			o.Payload = payload
			if base, err = udpraw.OpenBandwidth(ctx, o); err != nil {
				return err
			}
			defer base.Close()
			bases[payload] = base
		}
		if err := bandwidthPoint(ctx, r, l, pair, base, size); err != nil {
			return err
		}
	}
	return nil
}

// bandwidthPoint measures every operation at one size, with UDP as the baseline. The losses of
// UC and UD are emitted as separate rows.
func bandwidthPoint(ctx context.Context, r *run, l bandwidthLink, pair *verbsbench.Pair, base *udpraw.Bandwidth, size int) error {
	var set seriesSet
	ops := verbsbench.ParseOps(r.Words("series"))
	streams := make([]*verbsbench.Stream, len(ops))
	set.addSeries("udp"+l.suffix, base.Rounds(r.Duration("time"), udpraw.Flow.MBps))
	for i, op := range ops {
		s, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: op, Size: size})
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		defer s.Close(ctx)
		streams[i] = s
		set.addSeries(string(op)+l.suffix, s.Rounds(r.Duration("time"), verbsbench.Flow.MBps))
	}
	at := atSize(size, measure.MegabytesPerSec)
	samples, err := r.measurePoint(ctx, &set, at)
	if err != nil {
		return err
	}
	for i := range ops {
		if lost := streams[i].LostPercent(); lost > 0 {
			r.Emit(bench.Row{Series: samples[1+i].Series, X: at.X, XUnit: at.XUnit, Y: lost, YUnit: "% lost"})
		}
	}
	return nil
}

func init() {
	register(&bench.Experiment{
		Name:   "verbs-rate",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: []bench.Statement{{
			Sentence: "One queue pair completes at least 2 million RC writes of 8 bytes per second, posted in lists of 32.",
			Compare:  bench.Value{Of: []string{"rc-write"}, Unit: measure.MessagesPerSecond, At: bench.At(32, requests), Limit: bench.AtLeast(2e6)},
		}},
		Axes: []bench.Axis{{Name: "requests in a list", Unit: requests}},
		Params: []bench.Param{
			{Name: "lists", Kind: bench.Ints, Default: "1,4,16,32,64", Quick: "1,32", Max: 64, Doc: "requests posted in one list"},
			{Name: "series", Kind: bench.Words, Default: "rc-write,rc-send,rc-read,uc-write,ud-send",
				Choices: []string{"rc-write", "rc-send", "rc-read", "uc-write", "ud-send"}, Doc: "operations"},
			{Name: "size", Kind: bench.Int, Default: "8", OfClaim: true, Doc: "bytes of a message"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "40ms", Doc: "length of a round"},
		},
		Run: runFunc(verbsRate),
	})
}

const requests = "requests" // unit of a list's length

func verbsRate(ctx context.Context, r *run) error {
	lists, size := r.Ints("lists"), r.Int("size")
	r.Plan(len(lists))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	// Packets of the same payload: in the fastest batches, and with one system call for each,
	// which corresponds to lists of 1.
	var bases [2]*udpraw.Bandwidth
	for i, offload := range []bool{udpraw.HasOffload(), false} {
		bases[i], err = udpraw.OpenBandwidth(ctx, udpraw.BandwidthOptions{Payload: min(size, maxMTU), Offload: offload, RecvBuffer: largeBuffer})
		if err != nil {
			return err
		}
		defer bases[i].Close()
	}
	for _, list := range lists {
		r.Step("lists of %d", list)
		if err := ratePoint(ctx, r, pair, bases, list); err != nil {
			return err
		}
	}
	return nil
}

// ratePoint measures every operation with lists of one length, and the two UDP baselines.
func ratePoint(ctx context.Context, r *run, pair *verbsbench.Pair, bases [2]*udpraw.Bandwidth, list int) error {
	var set seriesSet
	set.addSeries("udp", bases[0].Rounds(r.Duration("time"), udpraw.Flow.PacketsPerSecond))
	set.addSeries("udp-packet", bases[1].Rounds(r.Duration("time"), udpraw.Flow.PacketsPerSecond))
	for _, op := range verbsbench.ParseOps(r.Words("series")) {
		s, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: op, Size: r.Int("size"), List: list})
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		defer s.Close(ctx)
		set.addSeries(string(op), s.Rounds(r.Duration("time"), verbsbench.Flow.MessagesPerSecond))
	}
	_, err := r.measurePoint(ctx, &set, bench.Point{X: float64(list), XUnit: requests, YUnit: measure.MessagesPerSecond})
	return err
}

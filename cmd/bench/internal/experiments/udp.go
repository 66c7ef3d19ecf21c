package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "udp-raw",
		Source: bench.Adapter,
		Layer:  bench.LayerUDP,
		Claims: []bench.Statement{
			{
				Sentence: "With GSO and GRO the bandwidth is at least 4 times that of one packet per system call.",
				Compare: bench.Ratio{Of: []string{offloaded}, Over: []string{"packet"}, Unit: measure.MegabytesPerSec, At: bench.Everywhere(measure.Bytes),
					Limit: bench.AtLeast(4)},
			},
			{
				Sentence: "A blocking ping-pong takes at least 3 times as long as a polling one.",
				Compare: bench.Ratio{Of: []string{"ping-block"}, Over: []string{"ping-spin"}, Unit: measure.Microseconds, At: bench.Everywhere(measure.Bytes),
					Limit: bench.AtLeast(3)},
			},
		},
		Axes: []bench.Axis{{Name: "payload of a packet", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "payloads", Kind: bench.Ints, Default: "1024,4096", Max: udpraw.MaxPayload, Doc: "payload bytes of a packet, for bandwidth"},
			{Name: "small", Kind: bench.Ints, Default: "8", Max: udpraw.MaxPayload, Doc: "payload bytes of a packet, for the packet rate"},
			{Name: "pings", Kind: bench.Ints, Default: "24,64", Min: packetOverhead, Max: maxUDP, Doc: "packet bytes of a ping-pong, including headers"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "150ms", Quick: "40ms", Doc: "length of a bandwidth round"},
			{Name: "iters", Kind: bench.Int, Default: "3000", Quick: "500", Doc: "round trips in a ping-pong round"},
		},
		Run: runFunc(udpRaw),
	})
}

// offloaded is the series of packets with GSO and GRO.
const offloaded = "gso-gro"

// largeBuffer is the requested socket buffer of series that do not measure the default buffer.
// The system may allow less.
const largeBuffer = 8 << 20

// Options of the packet streams, by series. The first that the system supports is the baseline
// of the others.
var flows = []struct {
	series string
	o      udpraw.BandwidthOptions
}{
	{offloaded, udpraw.BandwidthOptions{Offload: true, RecvBuffer: largeBuffer}},
	{"gso-gro-acked", udpraw.BandwidthOptions{Offload: true, RecvBuffer: largeBuffer, Credits: udpraw.CreditsByDatagram}},
	{"gso-gro-default-buffer", udpraw.BandwidthOptions{Offload: true}},
	{"packet", udpraw.BandwidthOptions{RecvBuffer: largeBuffer}},
	{"packet-default-buffer", udpraw.BandwidthOptions{}},
}

func udpRaw(ctx context.Context, r *run) error {
	payloads, small, pings := r.Ints("payloads"), r.Ints("small"), r.Ints("pings")
	r.Plan(len(payloads) + len(small) + len(pings))
	if !udpraw.HasOffload() {
		r.EmitAbsent(offloaded, "this system has no GSO and GRO")
	}
	for _, p := range payloads {
		r.Step("bandwidth with %d B a packet", p)
		if err := udpFlows(ctx, r, p, measure.MegabytesPerSec, udpraw.Flow.MBps); err != nil {
			return err
		}
	}
	for _, p := range small {
		r.Step("packet rate with %d B a packet", p)
		if err := udpFlows(ctx, r, p, measure.MessagesPerSecond, udpraw.Flow.PacketsPerSecond); err != nil {
			return err
		}
	}
	for _, size := range pings {
		r.Step("ping-pong of %d B", size)
		if err := udpPings(ctx, r, size); err != nil {
			return err
		}
	}
	return nil
}

// udpFlows measures all packet streams with one payload size.
func udpFlows(ctx context.Context, r *run, payload int, unit string, figure func(udpraw.Flow) float64) error {
	var set seriesSet
	for _, f := range flows {
		if f.o.Offload && !udpraw.HasOffload() {
			continue
		}
		f.o.Payload = payload
		s, err := udpraw.OpenBandwidth(ctx, f.o)
		if err != nil {
			return fmt.Errorf("%s: %w", f.series, err)
		}
		defer s.Close()
		set.addSeries(f.series, s.Rounds(r.Duration("time"), figure))
	}
	_, err := r.measurePoint(ctx, &set, atSize(payload, unit))
	return err
}

// udpPings measures all wait modes of this system with packets of one size.
func udpPings(ctx context.Context, r *run, size int) error {
	var set seriesSet
	for _, mode := range []udpraw.Mode{udpraw.Spin, udpraw.Block} {
		if !slices.Contains(udpraw.Modes(), mode) {
			r.EmitAbsent("ping-"+string(mode), "this system has no raw nonblocking and blocking reads")
		}
	}
	for _, m := range udpraw.Modes() {
		p, err := udpraw.OpenPingPong(ctx, m, size)
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		defer p.Close()
		set.addPing("ping-"+string(m), p, r.Int("iters"))
	}
	_, err := r.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	return err
}

// newPingSet returns a set with the polling UDP ping-pong as the baseline, and ping-pongs of
// ops, all of size bytes. The caller must call end, also after an error.
func newPingSet(ctx context.Context, pair *verbsbench.Pair, size, iters int, ops ...verbsbench.Op) (l seriesSet, end func(), err error) {
	var open []func()
	end = func() { closeAll(open) }
	base, err := openPing(ctx, udpraw.Spin, size)
	if err != nil {
		return l, end, err
	}
	open = append(open, base.Close)
	l.addPing("udp-spin", base, iters)
	for _, op := range ops {
		ping, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: op, Size: size})
		if err != nil {
			return l, end, fmt.Errorf("%s: %w", op, err)
		}
		open = append(open, func() { ping.Close(ctx) })
		l.addPing(string(op), ping, iters)
	}
	return l, end, nil
}

// newStreamSet returns a set with the UDP packet stream as the baseline, and streams of ops
// with messages of size bytes, in rounds of length d. The caller must call end, also after an
// error.
func newStreamSet(ctx context.Context, pair *verbsbench.Pair, size int, d time.Duration, ops ...verbsbench.Op) (l seriesSet, end func(), err error) {
	var open []func()
	end = func() { closeAll(open) }
	base, err := udpraw.OpenBandwidth(ctx, udpraw.BandwidthOptions{
		Payload: min(size, maxMTU), Offload: udpraw.HasOffload(), RecvBuffer: largeBuffer,
	})
	if err != nil {
		return l, end, err
	}
	open = append(open, base.Close)
	l.addSeries("udp", base.Rounds(d, udpraw.Flow.MBps))
	for _, op := range ops {
		s, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: op, Size: size})
		if err != nil {
			return l, end, fmt.Errorf("%s: %w", op, err)
		}
		open = append(open, func() { s.Close(ctx) })
		l.addSeries(string(op), s.Rounds(d, verbsbench.Flow.MBps))
	}
	return l, end, nil
}

// closeAll calls the functions in reverse order.
func closeAll(open []func()) {
	for i := range open {
		open[len(open)-1-i]()
	}
}

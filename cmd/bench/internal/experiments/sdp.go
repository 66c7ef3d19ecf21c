package experiments

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

// A socket is a target of the experiments with SDP: a pair of connected processes.
type socket struct {
	series string
	sdpbench.Config
	*sdpbench.Pair
}

// sockets are the targets to compare, TCP first.
type sockets []socket

// openSockets opens TCP and, for each of the variants, the three flow control modes. The caller
// must close them, also after an error.
func openSockets(ctx context.Context, tcp sdpbench.Config, variants ...variant) (all sockets, err error) {
	tcp.Transport = sdpbench.TCP
	all = append(all, socket{series: string(sdpbench.TCP), Config: tcp})
	for _, v := range variants {
		for _, d := range sdpbench.FlowControls() {
			v.Transport = d
			all = append(all, socket{series: string(d) + v.suffix, Config: v.Config})
		}
	}
	for i := range all {
		if all[i].Pair, err = sdpbench.Open(ctx, all[i].Config); err != nil {
			return all[:i], fmt.Errorf("%s: %w", all[i].series, err)
		}
	}
	return all, nil
}

// A variant is the configuration of the three flow control modes, and the suffix of their
// series.
type variant struct {
	suffix string
	sdpbench.Config
}

// indexOf returns the index of a series, or -1.
func (all sockets) indexOf(c sdpbench.Transport, suffix string) int {
	for i := range all {
		if all[i].series == string(c)+suffix {
			return i
		}
	}
	return -1
}

func (all sockets) close() {
	for _, s := range all {
		s.Close()
	}
}

func init() {
	register(&bench.Experiment{
		Name:   "sdp-latency",
		Source: "SDP fig. 6a",
		Layer:  bench.LayerSDP,
		Claims: sdpLatencyClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "1,16,64,256,1KiB,2KiB,4KiB", Quick: "64", Max: 1 << 20, Doc: "bytes of a message"},
			{Name: "buffers", Kind: bench.Int, Default: "8", Max: 16384, Doc: "number of SDP buffers"},
			{Name: "bytes", Kind: bench.Int, Default: "32KiB", Min: 64, Doc: "bytes of a buffer"},
			{Name: "wait", Kind: bench.Words, Default: "spin,event", Choices: []string{"spin", "event"}, Doc: "poll, or block until a completion event"},
			{Name: "rounds", Kind: bench.Int, Default: "15", Quick: "7", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round"},
		},
		Run: runFunc(sdpLatency),
	})
}

const (
	spinForever = 10 * time.Millisecond // longer than any round trip
	eventSuffix = "-event"
)

// modeSeries returns the series of the flow control modes.
func modeSeries(suffix string) (list []string) {
	for _, d := range sdpbench.FlowControls() {
		list = append(list, string(d)+suffix)
	}
	return list
}

func sdpLatencyClaims() []bench.Statement {
	even := func(suffix string) bench.Comparison {
		return bench.Alike{Series: modeSeries(suffix), Unit: measure.Microseconds, At: bench.Everywhere(measure.Bytes), Limit: bench.AtMost(1.05)}
	}
	overTCP := func(suffix string, most float64) bench.Comparison {
		return bench.Ratio{Of: modeSeries(suffix), Over: []string{string(sdpbench.TCP)}, Unit: measure.Microseconds, At: bench.At(64, measure.Bytes), Limit: bench.AtMost(most)}
	}
	return []bench.Statement{
		{
			Sentence: "The latencies of the three flow control modes differ by at most 5 % at each size, because a ping-pong never waits for buffers.",
			Paper:    "all three identical",
			Compare:  even(""),
		},
		{
			Sentence: "They do where the waiters block, too.",
			Paper:    "all three identical",
			Compare:  even(eventSuffix),
		},
		{
			Source:   bench.Adapter,
			Sentence: "A message of 64 bytes takes at most 0.5 times as long as with Go's TCP when SDP's waiters poll.",
			Compare:  overTCP("", 0.5),
		},
		{
			Source:   bench.Adapter,
			Sentence: "It takes at most 1.1 times as long when they block.",
			Compare:  overTCP(eventSuffix, 1.1),
		},
	}
}

func sdpLatency(ctx context.Context, r *run) error {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes))
	r.Step("opening connections")
	var variants []variant
	for _, wait := range r.Words("wait") {
		v := variant{"", sdpbench.Config{Buffers: r.Int("buffers"), BufferBytes: r.Int("bytes"), ZeroCopy: -1, Spin: spinForever}}
		if wait == "event" {
			v.suffix, v.Spin = eventSuffix, -1
		}
		variants = append(variants, v)
	}
	all, err := openSockets(ctx, sdpbench.Config{}, variants...)
	defer all.close()
	if err != nil {
		return err
	}
	for _, size := range sizes {
		r.Step("%d B", size)
		var set seriesSet
		for _, s := range all {
			set.addEvents(s.series, func(into *measure.Latency) measure.Round { return s.PingRounds(size, r.Int("iters"), into) })
		}
		if _, err := r.measurePoint(ctx, &set, atSize(size, measure.Microseconds)); err != nil {
			return err
		}
	}
	return nil
}

func init() {
	register(&bench.Experiment{
		Name:   "sdp-progress",
		Source: "SDP fig. 8",
		Layer:  bench.LayerSDP,
		Claims: sdpProgressClaims(),
		Axes:   []bench.Axis{{Name: "computation between bursts", Unit: computation}},
		Params: []bench.Param{
			{Name: "compute", Kind: bench.Pauses, Default: "0,100us,250us,500us,1ms,2ms,4ms", Quick: "0,2ms", Doc: "computation after each burst, on both sides"},
			{Name: "messages", Kind: bench.Int, Default: "100", OfClaim: true, Doc: "messages of a burst"},
			{Name: "size", Kind: bench.Int, Default: "4KiB", OfClaim: true, Doc: "bytes of a message"},
			{Name: "buffers", Kind: bench.Int, Default: "8", Max: 16384, OfClaim: true, Doc: "number of SDP buffers"},
			{Name: "bytes", Kind: bench.Int, Default: "32KiB", Min: 64, OfClaim: true, Doc: "bytes of a buffer"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "30", Quick: "10", Doc: "round trips of bursts in a round; more for little computation"},
		},
		Run: runFunc(sdpProgress),
	})
}

const (
	computation = "us of computation" // unit of computation

	// The scheduling of the processes stabilizes within some milliseconds: rounds are longer.
	shortestRound = 60 * time.Millisecond
	burstAlone    = 200 * time.Microsecond // approximate time of a burst without computation
)

func sdpProgressClaims() []bench.Statement {
	nic, rdma, credit := []string{string(sdpbench.NIC)}, []string{string(sdpbench.RDMA)}, []string{string(sdpbench.Credit)}
	over := func(of, over []string, at bench.Points, limit bench.Limit) bench.Comparison {
		return bench.Ratio{Of: of, Over: over, Unit: measure.Microseconds, At: at, Limit: limit}
	}
	all, none := bench.Everywhere(computation), bench.At(0, computation)
	return []bench.Statement{
		{
			Sentence: "Without computation, bursts take no longer with RDMA-based and NIC-assisted flow control than with credit-based.",
			Paper:    "RDMA-based and NIC-assisted take the least time, credit-based the most",
			Compare:  over([]string{rdma[0], nic[0]}, credit, none, bench.AtMost(1)),
		},
		{
			Sentence: "NIC-assisted flow control takes at most 1.1 times as long as the better of the two others, for any amount of computation.",
			Paper:    "scales well",
			Compare:  over(nic, []string{rdma[0], credit[0]}, all, bench.AtMost(1.1)),
		},
		{
			Sentence: "RDMA-based flow control falls behind NIC-assisted with more computation, by at least 10 %.",
			Paper:    "deteriorates rapidly",
			Compare:  bench.Growth{Of: rdma, Over: nic[0], Unit: measure.Microseconds, At: all, Limit: bench.AtLeast(1.1)},
		},
		{
			Sentence: "Above 1 ms of computation RDMA-based flow control takes longer than credit-based.",
			Paper:    "outperformed by credit-based above 1000 us",
			Compare:  over(rdma, credit, bench.From(1001, computation), bench.AtLeast(1)),
		},
	}
}

func sdpProgress(ctx context.Context, r *run) error {
	amounts := r.Pauses("compute")
	r.Plan(1 + len(amounts))
	r.Step("opening connections")
	// The paper's adapter has its own processor. Ours needs a processor that does not compute:
	// without pinning it can use that of a waiting process.
	all, err := openSockets(ctx, sdpbench.Config{Loose: true},
		variant{"", sdpbench.Config{Buffers: r.Int("buffers"), BufferBytes: r.Int("bytes"), ZeroCopy: -1, Loose: true}})
	defer all.close()
	if err != nil {
		return err
	}
	millisecond := sdpbench.CalibrateWork(time.Millisecond)
	for _, amount := range amounts {
		r.Step("%v of computation", amount)
		iters := max(r.Int("iters"), int(shortestRound/(amount+burstAlone)))
		burst := sdpbench.Burst{
			Messages: r.Int("messages"), Size: r.Int("size"), Compute: millisecond * sdpbench.Work(amount) / sdpbench.Work(time.Millisecond),
		}
		var set seriesSet
		for _, s := range all {
			set.addEvents(s.series, func(into *measure.Latency) measure.Round { return s.BurstRounds(burst, iters, into) })
		}
		if _, err := r.measurePoint(ctx, &set, bench.Point{X: measure.Micros(amount), XUnit: computation, YUnit: measure.Microseconds}); err != nil {
			return err
		}
	}
	return nil
}

const requestsPerSecond = "requests/s"

func init() {
	register(&bench.Experiment{
		Name:   "sdp-http",
		Source: "beyond the paper",
		Layer:  bench.LayerSDP,
		Claims: []bench.Statement{{
			Source:   bench.Adapter,
			Sentence: "Go's HTTP server over SDP serves at least as many requests per second as over TCP.",
			Compare: bench.Ratio{Of: []string{string(sdpbench.NIC)}, Over: []string{string(sdpbench.TCP)}, Unit: requestsPerSecond,
				At: bench.At(64, "connections"), Limit: bench.AtLeast(1)},
		}},
		Axes: []bench.Axis{{Name: "connections", Unit: "connections"}},
		Params: []bench.Param{
			{Name: "connections", Kind: bench.Ints, Default: "64", Max: 1024, Doc: "keep-alive connections, each with one request in flight"},
			{Name: "bytes", Kind: bench.Int, Default: "1KiB", Doc: "bytes of a response"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "500ms", Quick: "200ms", Doc: "length of a round"},
		},
		Run: runFunc(sdpHTTP),
	})
}

func sdpHTTP(ctx context.Context, r *run) error {
	counts := r.Ints("connections")
	r.Plan(len(counts))
	for _, n := range counts {
		r.Step("%d connections", n)
		if err := httpPoint(ctx, r, n); err != nil {
			return err
		}
	}
	return nil
}

// httpPoint measures the given number of connections.
func httpPoint(ctx context.Context, r *run, connections int) error {
	var set seriesSet
	for _, over := range append([]sdpbench.Transport{sdpbench.TCP}, sdpbench.FlowControls()...) {
		h, err := sdpbench.OpenHTTP(ctx, sdpbench.HTTPConfig{Transport: over, Connections: connections, Bytes: r.Int("bytes")})
		if err != nil {
			return err
		}
		defer h.Close()
		set.addSeries(string(over), h.Rounds(r.Duration("time")))
	}
	_, err := r.measurePoint(ctx, &set, bench.Point{X: float64(connections), XUnit: "connections", YUnit: requestsPerSecond})
	return err
}

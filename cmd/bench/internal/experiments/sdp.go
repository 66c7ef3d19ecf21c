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
	bench.Register(&bench.Experiment{
		Name:   "sdp-latency",
		Source: "SDP fig. 6a",
		Layer:  bench.LayerSDP,
		Claim: "The latencies of the three flow control modes differ by at most 5 %, because a ping-pong never waits for buffers. " +
			"A message of 64 bytes takes at most 0.5 times as long as with Go's TCP when SDP's waiters poll, and at most 1.1 times when they block.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "1,16,64,256,1KiB,2KiB,4KiB", Quick: "64", Doc: "bytes of a message"},
			{Name: "buffers", Kind: bench.Int, Default: "8", Max: 16384, Doc: "number of SDP buffers"},
			{Name: "bytes", Kind: bench.Int, Default: "32KiB", Min: 64, Doc: "bytes of a buffer"},
			{Name: "wait", Kind: bench.Words, Default: "spin,event", Choices: []string{"spin", "event"}, Doc: "poll, or block until a completion event"},
			{Name: "rounds", Kind: bench.Int, Default: "15", Quick: "7", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round"},
		},
		Run: evaluated(sdpLatency),
	})
}

const (
	evenDesigns  = 1.05 // limits: one flow control mode over another,
	pollOverTCP  = 0.5  // and over TCP
	eventOverTCP = 1.1
	tcpLatencyAt = 64
	spinForever  = 10 * time.Millisecond // longer than any round trip
	eventSuffix  = "-event"
)

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
	apart := make([]extreme, len(variants))
	for _, size := range sizes {
		r.Step("%d B", size)
		var set seriesSet
		for _, s := range all {
			set.addEvents(s.series, func(into *measure.Latency) measure.Round { return s.PingRounds(size, r.Int("iters"), into) })
		}
		samples, ratios, err := r.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
		if err != nil {
			return err
		}
		for i, v := range variants {
			three := samples[1+3*i : 4+3*i]
			for k, s := range three {
				next := three[(k+1)%3]
				apart[i].keepMax(largerOverSmaller(s.Figures, next.Figures), "%s and %s at %d B", s.Series, next.Series, size)
				if size == tcpLatencyAt {
					r.atMost(s.Series+" over tcp", ratios[3*i+k], v.overTCP())
				}
			}
		}
	}
	for _, e := range apart {
		r.atMost("larger over smaller latency, "+e.where+":", e.value, evenDesigns)
	}
	return nil
}

// overTCP returns the limit of the latency over TCP's.
func (v *variant) overTCP() float64 {
	if v.suffix == eventSuffix {
		return eventOverTCP
	}
	return pollOverTCP
}

// largerOverSmaller returns the median ratio of the larger series to the smaller.
func largerOverSmaller(a, b []float64) float64 {
	r := measure.MedianRatio(a, b)
	return max(r, 1/r)
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sdp-progress",
		Source: "SDP fig. 8",
		Layer:  bench.LayerSDP,
		Claim: "NIC-assisted flow control is within 10 % of the better of the two others for any amount of computation between bursts. " +
			"RDMA-based flow control becomes slower with more computation, and is slower than credit-based beyond 1 ms.",
		Axes: []bench.Axis{{Name: "computation between bursts", Unit: computation}},
		Params: []bench.Param{
			{Name: "compute", Kind: bench.Pauses, Default: "0,100us,250us,500us,1ms,2ms,4ms", Quick: "0,2ms", Doc: "computation after each burst, on both sides"},
			{Name: "messages", Kind: bench.Int, Default: "100", Doc: "messages of a burst"},
			{Name: "size", Kind: bench.Int, Default: "4KiB", Doc: "bytes of a message"},
			{Name: "buffers", Kind: bench.Int, Default: "8", Max: 16384, Doc: "number of SDP buffers"},
			{Name: "bytes", Kind: bench.Int, Default: "32KiB", Min: 64, Doc: "bytes of a buffer"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "30", Quick: "10", Doc: "round trips of bursts in a round; more for little computation"},
		},
		Run: evaluated(sdpProgress),
	})
}

const (
	computation   = "us of computation" // unit of computation
	nicOverBetter = 1.1                 // limit
	muchCompute   = time.Millisecond    // above which RDMA-based is expected to be the slowest

	// The scheduling of the processes stabilizes within some milliseconds: rounds are longer.
	shortestRound = 60 * time.Millisecond
	burstAlone    = 200 * time.Microsecond // approximate time of a burst without computation
)

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
	p := progressRun{run: r}
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
		samples, _, err := r.measurePoint(ctx, &set, bench.Point{X: measure.Micros(amount), XUnit: computation, YUnit: measure.Microseconds})
		if err != nil {
			return err
		}
		figures := func(c sdpbench.Transport) []float64 { return samples[all.indexOf(c, "")].Figures }
		p.addAmount(amount, figures(sdpbench.NIC), figures(sdpbench.RDMA), figures(sdpbench.Credit))
	}
	p.compareModes()
	return nil
}

// A progressRun compares the flow control modes at each amount of computation.
type progressRun struct {
	*run
	nic     extreme // over the better of the others
	amounts []time.Duration
	behind  []float64 // RDMA-based over NIC-assisted
}

func (p *progressRun) addAmount(amount time.Duration, nic, rdma, credit []float64) {
	p.nic.keepMax(max(measure.MedianRatio(nic, rdma), measure.MedianRatio(nic, credit)), "at %v", amount)
	p.amounts, p.behind = append(p.amounts, amount), append(p.behind, measure.MedianRatio(rdma, nic))
	if amount > muchCompute {
		p.atLeast(fmt.Sprintf("%s over %s at %v", sdpbench.RDMA, sdpbench.Credit, amount), measure.MedianRatio(rdma, credit), 1)
	}
}

// compareModes checks what depends on all amounts.
func (p *progressRun) compareModes() {
	p.atMost(fmt.Sprintf("%s over the better of the others %s", sdpbench.NIC, p.nic.where), p.nic.value, nicOverBetter)
	if last := len(p.behind) - 1; last > 0 {
		holds := p.behind[last] > p.behind[0]
		p.addNote(holds, "%s over %s changes from %.2f at %v to %s at %v",
			sdpbench.RDMA, sdpbench.NIC, p.behind[0], p.amounts[0], formatFigure(p.behind[last], p.behind[0], 2, holds), p.amounts[last])
	}
}

const requestsPerSecond = "requests/s"

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sdp-http",
		Source: "beyond the paper",
		Layer:  bench.LayerSDP,
		Claim:  "Go's HTTP server over SDP serves at least as many requests per second as over TCP.",
		Axes:   []bench.Axis{{Name: "connections", Unit: "connections"}},
		Params: []bench.Param{
			{Name: "connections", Kind: bench.Ints, Default: "64", Max: 1024, Doc: "keep-alive connections, each with one request in flight"},
			{Name: "bytes", Kind: bench.Int, Default: "1KiB", Doc: "bytes of a response"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "500ms", Quick: "200ms", Doc: "length of a round"},
		},
		Run: evaluated(sdpHTTP),
	})
}

func sdpHTTP(ctx context.Context, r *run) error {
	counts := r.Ints("connections")
	r.Plan(len(counts))
	for _, n := range counts {
		r.Step("%d connections", n)
		ratios, err := httpPoint(ctx, r, n)
		if err != nil {
			return err
		}
		r.atLeast(string(sdpbench.NIC)+" over tcp", ratios[0], 1) // the default
	}
	return nil
}

// httpPoint measures the given number of connections and returns the ratios to TCP.
func httpPoint(ctx context.Context, r *run, connections int) ([]float64, error) {
	var set seriesSet
	for _, over := range append([]sdpbench.Transport{sdpbench.TCP}, sdpbench.FlowControls()...) {
		h, err := sdpbench.OpenHTTP(ctx, sdpbench.HTTPConfig{Transport: over, Connections: connections, Bytes: r.Int("bytes")})
		if err != nil {
			return nil, err
		}
		defer h.Close()
		set.addSeries(string(over), h.Rounds(r.Duration("time")))
	}
	_, ratios, err := r.measurePoint(ctx, &set, bench.Point{X: float64(connections), XUnit: "connections", YUnit: requestsPerSecond})
	return ratios, err
}

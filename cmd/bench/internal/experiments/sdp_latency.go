package experiments

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

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
		Run: sdpLatency,
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

func sdpLatency(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
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
		return bench.Verdict{}, err
	}
	var j evaluation
	apart := make([]extreme, len(variants))
	for _, size := range sizes {
		r.Step("%d B", size)
		samples, err := sdpPings(ctx, r, all, size)
		if err != nil {
			return bench.Verdict{}, err
		}
		at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.Microseconds}
		ratios := r.EmitAgainst(at, samples[0], samples[1:]...)
		for i, v := range variants {
			three := samples[1+3*i : 4+3*i]
			for k, s := range three {
				next := three[(k+1)%3]
				apart[i].keepMax(largerOverSmaller(s.Figures, next.Figures), "%s and %s at %d B", s.Series, next.Series, size)
				if size == tcpLatencyAt {
					j.atMost(s.Series+" over tcp", ratios[3*i+k], v.overTCP())
				}
			}
		}
	}
	for _, e := range apart {
		j.atMost("larger over smaller latency, "+e.where+":", e.value, evenDesigns)
	}
	return j.makeVerdict(), nil
}

// overTCP returns the limit of the latency over TCP's.
func (v *variant) overTCP() float64 {
	if v.suffix == eventSuffix {
		return eventOverTCP
	}
	return pollOverTCP
}

// sdpPings measures half round trips of one size.
func sdpPings(ctx context.Context, r *bench.Run, all sockets, size int) ([]bench.Sample, error) {
	var set seriesSet
	for _, s := range all {
		set.addEvents(s.series, func(into *measure.Latency) measure.Round { return s.PingRounds(size, r.Int("iters"), into) })
	}
	return set.runAlternating(ctx, r.Int("rounds"))
}

// largerOverSmaller returns the median ratio of the larger series to the smaller.
func largerOverSmaller(a, b []float64) float64 {
	r := measure.MedianRatio(a, b)
	return max(r, 1/r)
}

package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

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
		Run: sdpHTTP,
	})
}

func sdpHTTP(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	counts := r.Ints("connections")
	r.Plan(len(counts))
	var j evaluation
	for _, n := range counts {
		r.Step("%d connections", n)
		samples, err := httpRounds(ctx, r, n)
		if err != nil {
			return bench.Verdict{}, err
		}
		ratios := r.EmitAgainst(bench.Point{X: float64(n), XUnit: "connections", YUnit: requestsPerSecond}, samples[0], samples[1:]...)
		j.atLeast(string(sdpbench.NIC)+" over tcp", ratios[0], 1) // the default
	}
	return j.makeVerdict(), nil
}

// httpRounds measures the given number of connections, over TCP first.
func httpRounds(ctx context.Context, r *bench.Run, connections int) ([]bench.Sample, error) {
	var set seriesSet
	for _, over := range append([]sdpbench.Transport{sdpbench.TCP}, sdpbench.FlowControls()...) {
		h, err := sdpbench.OpenHTTP(ctx, sdpbench.HTTPConfig{Transport: over, Connections: connections, Bytes: r.Int("bytes")})
		if err != nil {
			return nil, err
		}
		defer h.Close()
		set.addSeries(string(over), h.Rounds(r.Duration("time")))
	}
	return set.runAlternating(ctx, r.Int("rounds"))
}

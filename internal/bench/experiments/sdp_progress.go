package experiments

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/measure"
	"github.com/softrnic/softrnic/internal/bench/sdpbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sdp-progress",
		Source: "SDP fig. 8",
		Layer:  bench.LayerSDP,
		Claim: "NIC-assisted flow control is within 10 % of the better of the two others however much the ends compute between bursts. " +
			"RDMA-based flow control falls behind as they compute more, and is slower than credit-based beyond 1 ms.",
		Axes: []bench.Axis{{Name: "computation between bursts", Unit: computation}},
		Params: []bench.Param{
			{Name: "compute", Kind: bench.Words, Default: "0,100us,250us,500us,1ms,2ms,4ms", Quick: "0,2ms", Doc: "computation behind each burst, at either end"},
			{Name: "messages", Kind: bench.Int, Default: "100", Doc: "messages of a burst"},
			{Name: "size", Kind: bench.Int, Default: "4KiB", Doc: "bytes of a message"},
			{Name: "buffers", Kind: bench.Int, Default: "8", Doc: "of SDP"},
			{Name: "bytes", Kind: bench.Int, Default: "32KiB", Min: 64, Doc: "of a buffer"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "30", Quick: "10", Doc: "bursts to and fro in a round"},
		},
		Run: sdpProgress,
	})
}

const (
	computation   = "us of computation" // the unit of how much there is
	nicOverBetter = 1.1                 // target
	muchCompute   = time.Millisecond    // beyond which RDMA-based is the slowest
)

func sdpProgress(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	amounts, err := durations(r.Words("compute"))
	if err != nil {
		return bench.Verdict{}, err
	}
	r.Plan(1 + len(amounts))
	r.Step("connections")
	// The adapter of the paper is a processor of its own. Ours needs one that
	// does not compute: if it may go to any, it finds that of an end that waits.
	all, err := openSockets(ctx, sdpbench.Config{Loose: true},
		variant{"", sdpbench.Config{Buffers: r.Int("buffers"), BufferBytes: r.Int("bytes"), ZeroCopy: -1, Loose: true}})
	defer all.close()
	if err != nil {
		return bench.Verdict{}, err
	}
	var j judge
	var nic extreme
	var first, last float64 // RDMA-based over NIC-assisted
	for i, amount := range amounts {
		r.Step("%v of computation", amount)
		samples, err := progressPoint(ctx, r, all, sdpbench.WorkOf(amount))
		if err != nil {
			return bench.Verdict{}, err
		}
		at := bench.Point{X: measure.Micros(amount), XUnit: computation, YUnit: measure.Microseconds}
		r.EmitAgainst(at, samples[0], samples[1:]...)
		figures := func(c sdpbench.Carrier) []float64 { return samples[all.find(c, "")].Figures }
		rdma, credit := figures(sdpbench.RDMA), figures(sdpbench.Credit)
		nic.most(max(measure.MedianRatio(figures(sdpbench.NIC), rdma), measure.MedianRatio(figures(sdpbench.NIC), credit)), "at %v", amount)
		if last = measure.MedianRatio(rdma, figures(sdpbench.NIC)); i == 0 {
			first = last
		}
		if amount > muchCompute {
			j.atLeast(fmt.Sprintf("%s over %s at %v", sdpbench.RDMA, sdpbench.Credit, amount), measure.MedianRatio(rdma, credit), 1)
		}
	}
	j.atMost(fmt.Sprintf("%s over the better of the others, %s", sdpbench.NIC, nic.where), nic.value, nicOverBetter)
	if len(amounts) > 1 {
		j.note(last > first, "%s over %s goes from %.2f at %v to %.2f at %v", sdpbench.RDMA, sdpbench.NIC, first, amounts[0], last, amounts[len(amounts)-1])
	}
	return j.verdict(), nil
}

// progressPoint lets all exchange bursts with one amount of computation behind
// each; the figure is half of a round trip.
func progressPoint(ctx context.Context, r *bench.Run, all sockets, work sdpbench.Work) ([]bench.Sample, error) {
	burst := sdpbench.Burst{Messages: r.Int("messages"), Size: r.Int("size"), Compute: work}
	var turns lineup
	for _, s := range all {
		events := measure.NewLatency()
		turns.add(s.series, s.BurstRounds(burst, r.Int("iters"), events))
		turns.events[len(turns.events)-1] = events
	}
	return turns.run(ctx, r.Int("rounds"))
}

// durations reads times from 0 up.
func durations(words []string) ([]time.Duration, error) {
	list := make([]time.Duration, len(words))
	for i, w := range words {
		d, err := time.ParseDuration(w)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("%q is not a time like 0 or 250us", w)
		}
		list[i] = d
	}
	return list, nil
}

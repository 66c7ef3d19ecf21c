package experiments

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
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
			{Name: "compute", Kind: bench.Pauses, Default: "0,100us,250us,500us,1ms,2ms,4ms", Quick: "0,2ms", Doc: "computation behind each burst, at either end"},
			{Name: "messages", Kind: bench.Int, Default: "100", Doc: "messages of a burst"},
			{Name: "size", Kind: bench.Int, Default: "4KiB", Doc: "bytes of a message"},
			{Name: "buffers", Kind: bench.Int, Default: "8", Max: 16384, Doc: "of SDP"},
			{Name: "bytes", Kind: bench.Int, Default: "32KiB", Min: 64, Doc: "of a buffer"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "30", Quick: "10", Doc: "bursts to and fro in a round; more where they compute little"},
		},
		Run: sdpProgress,
	})
}

const (
	computation   = "us of computation" // the unit of how much there is
	nicOverBetter = 1.1                 // target
	muchCompute   = time.Millisecond    // beyond which RDMA-based is the slowest

	// Who serves whom settles within some milliseconds: a round is not over before.
	shortestRound = 60 * time.Millisecond
	burstAlone    = 200 * time.Microsecond // a burst that nothing is computed behind, roughly
)

func sdpProgress(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	amounts := r.Pauses("compute")
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
	var p progressEvaluation
	millisecond := sdpbench.CalibrateWork(time.Millisecond)
	for _, amount := range amounts {
		r.Step("%v of computation", amount)
		iters := max(r.Int("iters"), int(shortestRound/(amount+burstAlone)))
		samples, err := sdpBursts(ctx, r, all, millisecond*sdpbench.Work(amount)/sdpbench.Work(time.Millisecond), iters)
		if err != nil {
			return bench.Verdict{}, err
		}
		at := bench.Point{X: measure.Micros(amount), XUnit: computation, YUnit: measure.Microseconds}
		r.EmitAgainst(at, samples[0], samples[1:]...)
		figures := func(c sdpbench.Transport) []float64 { return samples[all.indexOf(c, "")].Figures }
		p.addAmount(amount, figures(sdpbench.NIC), figures(sdpbench.RDMA), figures(sdpbench.Credit))
	}
	return p.makeVerdict(), nil
}

// sdpBursts lets all exchange bursts with one amount of computation behind
// each; the figure is half of a round trip.
func sdpBursts(ctx context.Context, r *bench.Run, all sockets, work sdpbench.Work, iters int) ([]bench.Sample, error) {
	burst := sdpbench.Burst{Messages: r.Int("messages"), Size: r.Int("size"), Compute: work}
	var turns seriesSet
	for _, s := range all {
		turns.addEvents(s.series, func(into *measure.Latency) measure.Round { return s.BurstRounds(burst, iters, into) })
	}
	return turns.runAlternating(ctx, r.Int("rounds"))
}

// progressEvaluation compares the flow controls at each amount of computation.
type progressEvaluation struct {
	evaluation
	nic     extreme // over the better of the others
	amounts []time.Duration
	behind  []float64 // RDMA-based over NIC-assisted
}

func (p *progressEvaluation) addAmount(amount time.Duration, nic, rdma, credit []float64) {
	p.nic.keepMax(max(measure.MedianRatio(nic, rdma), measure.MedianRatio(nic, credit)), "at %v", amount)
	p.amounts, p.behind = append(p.amounts, amount), append(p.behind, measure.MedianRatio(rdma, nic))
	if amount > muchCompute {
		p.atLeast(fmt.Sprintf("%s over %s at %v", sdpbench.RDMA, sdpbench.Credit, amount), measure.MedianRatio(rdma, credit), 1)
	}
}

func (p *progressEvaluation) makeVerdict() bench.Verdict {
	p.atMost(fmt.Sprintf("%s over the better of the others %s", sdpbench.NIC, p.nic.where), p.nic.value, nicOverBetter)
	if last := len(p.behind) - 1; last > 0 {
		holds := p.behind[last] > p.behind[0]
		p.addNote(holds, "%s over %s goes from %.2f at %v to %s at %v",
			sdpbench.RDMA, sdpbench.NIC, p.behind[0], p.amounts[0], formatFigure(p.behind[last], p.behind[0], 2, holds), p.amounts[last])
	}
	return p.evaluation.makeVerdict()
}

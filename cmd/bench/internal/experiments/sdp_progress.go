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
		Run: sdpProgress,
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

func sdpProgress(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	amounts := r.Pauses("compute")
	r.Plan(1 + len(amounts))
	r.Step("opening connections")
	// The paper's adapter has its own processor. Ours needs a processor that does not compute:
	// without pinning it can use that of a waiting process.
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

// sdpBursts exchanges bursts on all connections with one amount of computation after each. The
// figure is half of a round trip.
func sdpBursts(ctx context.Context, r *bench.Run, all sockets, work sdpbench.Work, iters int) ([]bench.Sample, error) {
	burst := sdpbench.Burst{Messages: r.Int("messages"), Size: r.Int("size"), Compute: work}
	var set seriesSet
	for _, s := range all {
		set.addEvents(s.series, func(into *measure.Latency) measure.Round { return s.BurstRounds(burst, iters, into) })
	}
	return set.runAlternating(ctx, r.Int("rounds"))
}

// A progressEvaluation compares the flow control modes at each amount of computation.
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
		p.addNote(holds, "%s over %s changes from %.2f at %v to %s at %v",
			sdpbench.RDMA, sdpbench.NIC, p.behind[0], p.amounts[0], formatFigure(p.behind[last], p.behind[0], 2, holds), p.amounts[last])
	}
	return p.evaluation.makeVerdict()
}

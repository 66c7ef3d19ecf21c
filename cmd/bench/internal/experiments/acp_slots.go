package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "acp-slots",
		Source: "ACP figs. 9, 10",
		Layer:  bench.LayerACP,
		Claim:  "The number of slots of a channel does not affect the latency of a ping-pong (within 10 %).",
		Axes:   []bench.Axis{{Name: "slots", Unit: slotsUnit}},
		Params: []bench.Param{
			{Name: "slots", Kind: bench.Ints, Default: "2,4,8,16", Quick: "2,8", Max: 64, Doc: "slots of one side; the other side has 2 (sender) or 8 (receiver)"},
			{Name: "size", Kind: bench.Int, Default: "1KiB", Max: maxPing, Doc: "bytes of a message"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round"},
		},
		Run: acpSlots,
	})
}

const (
	slotsUnit  = "slots"
	slotsAlike = 1.1
)

func acpSlots(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	counts := r.Ints("slots")
	r.Plan(2)
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer job.Close()
	var j evaluation
	for _, imm := range []bool{false, true} {
		r.Step("imm: %v", imm)
		var set seriesSet
		var at []int
		for _, sender := range []bool{true, false} {
			for _, n := range counts {
				c := acpbench.Channel{SlotSize: 64 << 10, Imm: imm, SendSlots: 2, RecvSlots: 8}
				series := "send-slots"
				if sender {
					c.SendSlots = n
				} else {
					c.RecvSlots, series = n, "receive-slots"
				}
				if imm {
					series += "-imm"
				}
				at = append(at, n)
				set.addEvents(series, func(into *measure.Latency) measure.Round { return job.PingPong(c, r.Int("size"), r.Int("iters"), into) })
			}
		}
		samples, err := set.runAlternating(ctx, r.Int("rounds"))
		if err != nil {
			return bench.Verdict{}, err
		}
		for i, s := range samples {
			first := samples[i-i%len(counts)]
			ratio := measure.MedianRatio(s.Figures, first.Figures)
			r.Emit(bench.Row{Series: s.Series, X: float64(at[i]), XUnit: slotsUnit, Y: measure.Median(s.Figures), YUnit: measure.Microseconds, Stats: s.Stats})
			if i%len(counts) > 0 {
				j.atMost(fmt.Sprintf("%s: %d over %d slots", s.Series, at[i], counts[0]), ratio, slotsAlike)
				j.atMost("and the inverse", 1/ratio, slotsAlike)
			}
		}
	}
	return j.makeVerdict(), nil
}

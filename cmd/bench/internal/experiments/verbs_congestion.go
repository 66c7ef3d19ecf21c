package experiments

import (
	"context"
	"slices"
	"strconv"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	register(&bench.Experiment{
		Name:   "verbs-congestion",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: congestionClaims(),
		Axes:   []bench.Axis{{Name: "streams through one link", Unit: streamsUnit}},
		Params: []bench.Param{
			{Name: "flows", Kind: bench.Words, Default: "2,8", Doc: "streams through the link"},
			{Name: "rate", Kind: bench.Words, Default: "200mbit", Doc: "rate of the link"},
			{Name: "buffer", Kind: bench.Int, Default: "500", Min: 16, Doc: "packets in the buffer of the link"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "rounds at each point, alternating with and without control"},
			{Name: "warmup", Kind: bench.Duration, Default: "1s", Quick: "500ms", Doc: "time from the start of the streams to the measurement"},
			{Name: "time", Kind: bench.Duration, Default: "1s", Quick: "300ms", Doc: "length of the measurement"},
		},
		Run: runFunc(verbsCongestion),
	})
}

// Units of shares.
const (
	streamsUnit = "streams"
	jainUnit    = "Jain's index"
)

// uncontrolled is the suffix of a series without congestion control.
const uncontrolled = "-off"

func congestionClaims() []bench.Statement {
	series, between := []string{"rc-write"}, bench.Between(2, 8, streamsUnit)
	return []bench.Statement{
		{
			Sentence: "2 and 8 streams of writes through a link of 200 Mbit/s that does not mark packets share it with Jain's index of at least 0.95.",
			Compare:  bench.Value{Of: series, Unit: jainUnit, At: between, Limit: bench.AtLeast(0.95)},
		},
		{
			Sentence: "A short write beside them waits at most a third as long as beside streams without congestion control, which fill the buffer.",
			Compare:  bench.Ratio{Of: series, Over: []string{"rc-write" + uncontrolled}, Unit: measure.Microseconds, At: between, Limit: bench.AtMost(1.0 / 3)},
		},
		{
			Sentence: "8 streams together use at least 0.6 of the link, also while other programs keep the processors busy.",
			Compare:  bench.Value{Of: series, Unit: measure.MegabytesPerSec, At: bench.At(8, streamsUnit), Limit: bench.AtLeast(0.6 * 25)},
		},
	}
}

func verbsCongestion(ctx context.Context, r *run) error {
	words := r.Words("flows")
	r.Plan(len(words))
	for _, word := range words {
		flows, err := strconv.Atoi(word)
		if err != nil || flows < 1 {
			return err
		}
		r.Step("%d streams", flows)
		if err := congestionPoint(ctx, r, flows); err != nil {
			return err
		}
	}
	return nil
}

// congestionPoint measures a number of streams with and without congestion control.
func congestionPoint(ctx context.Context, r *run, flows int) error {
	modes := []struct{ series, mode string }{{"rc-write", "auto"}, {"rc-write" + uncontrolled, "off"}}
	figures := make([]map[string][]float64, len(modes))
	for range r.Int("rounds") {
		for i, m := range modes {
			shares, err := measureShares(ctx, r, flows, m.mode)
			if err != nil {
				return err
			}
			if figures[i] == nil {
				figures[i] = map[string][]float64{}
			}
			total := 0.0
			for _, x := range shares.MBps {
				total += x
			}
			for unit, y := range map[string]float64{jainUnit: shares.JainIndex(), measure.MegabytesPerSec: total, measure.Microseconds: float64(shares.Delay.Nanoseconds()) / 1e3} {
				figures[i][unit] = append(figures[i][unit], y)
			}
		}
	}
	for i, m := range modes {
		for _, unit := range []string{jainUnit, measure.MegabytesPerSec, measure.Microseconds} {
			rounds := figures[i][unit]
			sorted := slices.Sorted(slices.Values(rounds))
			r.Emit(bench.Row{Series: m.series, X: float64(flows), XUnit: streamsUnit, Y: sorted[len(sorted)/2], YUnit: unit, Rounds: rounds})
		}
	}
	return nil
}

// measureShares measures streams through a new link.
func measureShares(ctx context.Context, r *run, flows int, mode string) (s verbsbench.Shares, err error) {
	b, err := verbsbench.OpenBottleneck(verbsbench.BottleneckConfig{
		Rate: r.Words("rate")[0], Buffer: r.Int("buffer"), Flows: flows, Congestion: mode,
	})
	if err != nil {
		return s, err
	}
	defer b.Close()
	return b.Measure(ctx, r.Duration("warmup"), r.Duration("time"))
}

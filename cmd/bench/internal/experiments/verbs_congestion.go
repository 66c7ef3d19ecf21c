package experiments

import (
	"context"
	"errors"
	"fmt"
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
			{Name: "tcp", Kind: bench.Words, Default: "cubic,bbr", Choices: []string{"cubic", "bbr", "nothing"}, Doc: "congestion control of TCP beside a stream; nothing: no token bucket filter"},
			{Name: "settle", Kind: bench.Duration, Default: "4s", Quick: "2s", Doc: "time from the start of the streams to the measurement beside TCP"},
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
	tcpUnit     = "of the share of TCP"
)

// The path beside TCP: a cable between two network namespaces with a token bucket filter.
const (
	tokenBuffer = 250_000 // bytes, 10 ms at 200 Mbit/s
	jumboMTU    = 9000
)

var tokenMTUs = []int{1500, jumboMTU}

// tokenSeries returns the series of a stream beside a stream of TCP.
func tokenSeries(tcp string, mtu int) string { return fmt.Sprintf("rc-write-beside-%s-%d", tcp, mtu) }

// uncontrolled is the suffix of a series without congestion control.
const uncontrolled = "-off"

func congestionClaims() []bench.Statement {
	series, between := []string{"rc-write"}, bench.Between(2, 8, streamsUnit)
	var beside []string
	for _, mtu := range tokenMTUs {
		beside = append(beside, tokenSeries("cubic", mtu), tokenSeries("bbr", mtu))
	}
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
		{
			Sentence: "2 and 8 streams through the kernel's token bucket filter of 200 Mbit/s and 10 ms share it with Jain's index of at least 0.95.",
			Compare:  bench.Value{Of: []string{"rc-write-tbf"}, Unit: jainUnit, At: between, Limit: bench.AtLeast(0.95)},
		},
		{
			Sentence: "Beside a stream of TCP CUBIC or BBR through that filter, a stream has at least half of its share.",
			Compare:  bench.Value{Of: beside, Unit: tcpUnit, At: bench.At(1, streamsUnit), Limit: bench.AtLeast(0.5)},
		},
		{
			Sentence: "It has at most twice its share.",
			Compare:  bench.Value{Of: beside, Unit: tcpUnit, At: bench.At(1, streamsUnit), Limit: bench.AtMost(2)},
		},
	}
}

func verbsCongestion(ctx context.Context, r *run) error {
	words := r.Words("flows")
	r.Plan(len(words) + 1)
	filter := !slices.Contains(r.Words("tcp"), "nothing")
	for _, word := range words {
		flows, err := strconv.Atoi(word)
		if err != nil || flows < 1 {
			return err
		}
		r.Step("%d streams", flows)
		if err := congestionPoint(ctx, r, flows); err != nil {
			return err
		}
		if filter {
			if err := tokenPoint(ctx, r, "rc-write-tbf", jainUnit, verbsbench.TokenBucketConfig{MTU: jumboMTU, Flows: flows}); err != nil {
				return err
			}
		}
	}
	r.Step("beside TCP")
	for _, tcp := range r.Words("tcp") {
		for _, mtu := range tokenMTUs {
			if !filter {
				return nil
			}
			if err := tokenPoint(ctx, r, tokenSeries(tcp, mtu), tcpUnit, verbsbench.TokenBucketConfig{MTU: mtu, Flows: 1, TCP: tcp}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokenPoint measures streams through a token bucket filter, in Jain's index or as a part of the rate of
// TCP. Where there is no such filter, the series is absent.
func tokenPoint(ctx context.Context, r *run, series, unit string, c verbsbench.TokenBucketConfig) error {
	c.Rate, c.Buffer = r.Words("rate")[0], tokenBuffer
	warmup := r.Duration("warmup")
	if c.TCP != "" {
		warmup = r.Duration("settle")
	}
	var rounds []float64
	for range r.Int("rounds") {
		b, err := verbsbench.OpenTokenBucket(c)
		if err != nil {
			r.EmitAbsent(series, "%v", err)
			return nil
		}
		shares, err := b.Measure(ctx, warmup, r.Duration("time"))
		if err = errors.Join(err, b.Close()); err != nil {
			return err
		}
		y := shares.JainIndex()
		if unit == tcpUnit {
			y = shares.MBps[0] / max(shares.TCP, 0.001)
		}
		rounds = append(rounds, y)
	}
	sorted := slices.Sorted(slices.Values(rounds))
	r.Emit(bench.Row{Series: series, X: float64(c.Flows), XUnit: streamsUnit, Y: sorted[len(sorted)/2], YUnit: unit, Rounds: rounds})
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

package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "verbs-rate",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claim:  "One queue pair completes at least 2 million RC writes of 8 bytes per second, posted in lists of 32.",
		Axes:   []bench.Axis{{Name: "requests in a list", Unit: requests}},
		Params: []bench.Param{
			{Name: "lists", Kind: bench.Ints, Default: "1,4,16,32,64", Quick: "1,32", Doc: "requests posted in one list"},
			{Name: "series", Kind: bench.Words, Default: "rc-write,rc-send,rc-read,uc-write,ud-send",
				Choices: []string{"rc-write", "rc-send", "rc-read", "uc-write", "ud-send"}, Doc: "operations"},
			{Name: "size", Kind: bench.Int, Default: "8", Doc: "bytes of a message"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "40ms", Doc: "length of a round"},
		},
		Run: verbsRate,
	})
}

const (
	requests       = "requests" // unit of a list's length
	rateTarget     = 2e6
	rateTargetList = 32
)

func verbsRate(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	lists, size := r.Ints("lists"), r.Int("size")
	r.Plan(len(lists))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer pair.Close()
	// Packets of the same payload: in the fastest batches, and with one system call for each,
	// which corresponds to lists of 1.
	var bases [2]*udpraw.Bandwidth
	for i, offload := range []bool{udpraw.HasOffload(), false} {
		bases[i], err = udpraw.OpenBandwidth(ctx, udpraw.BandwidthOptions{Payload: min(size, maxMTU), Offload: offload, RecvBuffer: largeBuffer})
		if err != nil {
			return bench.Verdict{}, err
		}
		defer bases[i].Close()
	}
	var j evaluation
	for _, list := range lists {
		r.Step("lists of %d", list)
		samples, err := ratePoint(ctx, r, pair, bases, list)
		if err != nil {
			return bench.Verdict{}, err
		}
		at := bench.Point{X: float64(list), XUnit: requests, YUnit: measure.MessagesPerSecond}
		r.EmitAgainst(at, samples[0], samples[1:]...)
		for _, s := range samples {
			if rate := measure.Median(s.Figures); s.Series == "rc-write" && size == 8 && list == rateTargetList {
				j.addCheck(rate, rateTarget, rate >= rateTarget, "%s million per second", formatFigure(rate/1e6, rateTarget/1e6, 2, rate >= rateTarget))
			}
		}
	}
	return j.makeVerdict(), nil
}

// ratePoint measures every operation with lists of one length, and the two UDP baselines.
func ratePoint(ctx context.Context, r *bench.Run, pair *verbsbench.Pair, bases [2]*udpraw.Bandwidth, list int) ([]bench.Sample, error) {
	var set seriesSet
	set.addSeries("udp", bases[0].Rounds(r.Duration("time"), udpraw.Flow.PacketsPerSecond))
	set.addSeries("udp-packet", bases[1].Rounds(r.Duration("time"), udpraw.Flow.PacketsPerSecond))
	for _, op := range verbsbench.ParseOps(r.Words("series")) {
		s, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: op, Size: r.Int("size"), List: list})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		defer s.Close(ctx)
		set.addSeries(string(op), s.Rounds(r.Duration("time"), verbsbench.Flow.MessagesPerSecond))
	}
	return set.runAlternating(ctx, r.Int("rounds"))
}

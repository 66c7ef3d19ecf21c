package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sdp-utilization",
		Source: "SDP fig. 9",
		Layer:  bench.LayerSDP,
		Claim: "RDMA-based and NIC-assisted flow control use at least 95 % of the buffer with messages of 512 B or more. " +
			"Credit-based flow control does so only with messages that fill a buffer of 8 KB, and uses at most 25 % of 8 buffers of 32 KB.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "16,64,256,512,1KiB,2KiB,4KiB,8KiB", Quick: "512,8KiB", Max: paperBytes, Doc: "bytes of a Write"},
			{Name: "bytes", Kind: bench.Ints, Default: "8KiB,32KiB", Min: 64, Doc: "bytes of each of 8 buffers"},
			{Name: "reads", Kind: bench.Words, Default: "message", Choices: []string{"message", "any"}, Doc: "the reader reads one message at a time, or any available data up to 64 KiB"},
			{Name: "think", Kind: bench.Pause, Default: "10us", Doc: "computation of the reader for each KiB, which makes it slower than the writer, as in the paper; with a faster reader, the refill times of the writer dominate; 0 means none"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "30ms", Doc: "length of a round"},
		},
		Run: sdpUtilization,
	})
}

// Limits, in percent of the buffer.
const (
	fullUse, fullFrom = 95, 512 // for messages of at least fullFrom bytes
	partUse           = 25
)

func sdpUtilization(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	r.Plan(len(r.Ints("bytes")) * (1 + len(r.Ints("sizes"))))
	var j evaluation
	for _, bytes := range r.Ints("bytes") {
		if err := measureUtilization(ctx, r, bytes, &j); err != nil {
			return bench.Verdict{}, err
		}
	}
	return j.makeVerdict(), nil
}

// measureUtilization measures with buffers of one size.
func measureUtilization(ctx context.Context, r *bench.Run, bytes int, j *evaluation) error {
	r.Step("opening connections with %d buffers of %d B", paperBuffers, bytes)
	buffers := sdpbench.Config{Buffers: paperBuffers, BufferBytes: bytes, ZeroCopy: -1}
	all, err := openSockets(ctx, buffers, variant{"", buffers})
	defer all.close()
	if err != nil {
		return err
	}
	total := fmt.Sprintf("%% of %d KiB", paperBuffers*bytes>>10)
	think := sdpbench.CalibrateWork(1024*r.Duration("think")) / 1024
	full := map[sdpbench.Transport]*extreme{sdpbench.RDMA: {}, sdpbench.NIC: {}}
	partial, filling := extreme{}, extreme{} // of credit-based, with messages that do not fill a buffer, and that do
	for _, size := range r.Ints("sizes") {
		r.Step("%d B, buffers of %d B", size, bytes)
		var set seriesSet
		for _, s := range all {
			o := sdpbench.StreamOptions{Size: size, Greedy: greedyReads(r), MeasureUse: true, Compute: think}
			set.addSeries(s.series, s.NewStreamer(o, r.Duration("time")).Rounds(sdpbench.Flow.BufferUse))
		}
		samples, err := set.runAlternating(ctx, r.Int("rounds"))
		if err != nil {
			return err
		}
		r.EmitAgainst(bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: total}, samples[0], samples[1:]...)
		used := func(c sdpbench.Transport) float64 { return measure.Median(samples[all.indexOf(c, "")].Figures) }
		for d, e := range full {
			if size >= fullFrom {
				e.keepMin(used(d), "with %d B", size)
			}
		}
		if size < bytes {
			partial.keepMax(used(sdpbench.Credit), "with %d B", size)
		} else {
			filling.keepMin(used(sdpbench.Credit), "with %d B", size)
		}
	}
	for _, d := range []sdpbench.Transport{sdpbench.RDMA, sdpbench.NIC} {
		if e := full[d]; e.seen {
			j.addCheck(e.value, fullUse, e.value >= fullUse, "%s %s %s %s (at least %d)", d, formatFigure(e.value, fullUse, 1, e.value >= fullUse), total, e.where, fullUse)
		}
	}
	if filling.seen {
		j.addCheck(filling.value, fullUse, filling.value >= fullUse, "%s %s %s %s (at least %d)", sdpbench.Credit, formatFigure(filling.value, fullUse, 1, filling.value >= fullUse), total, filling.where, fullUse)
	}
	switch {
	case partial.seen && bytes == largerBytes:
		j.addCheck(partial.value, partUse, partial.value <= partUse, "%s %s %s %s (at most %d)", sdpbench.Credit, formatFigure(partial.value, partUse, 1, partial.value <= partUse), total, partial.where, partUse)
	case partial.seen:
		j.addCheck(partial.value, fullUse, partial.value < fullUse, "%s %s %s %s (below %d)", sdpbench.Credit, formatFigure(partial.value, fullUse, 1, partial.value < fullUse), total, partial.where, fullUse)
	}
	return nil
}

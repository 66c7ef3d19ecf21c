package experiments

import (
	"context"
	"fmt"
	"strconv"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sdp-bandwidth",
		Source: "SDP fig. 6b",
		Layer:  bench.LayerSDP,
		Claim: "With 8 buffers of 8 KB, the bandwidth of RDMA-based and NIC-assisted flow control is at least 8 times that of credit-based, from 256 B to 4 KB. " +
			"With default options the bandwidth of SDP is at least 10 times that of Go's TCP for Writes of 64 B, 3 times for 1 KiB, and equal for 64 KiB and 1 MiB.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "16,64,256,512,1KiB,2KiB,4KiB,8KiB,16KiB,64KiB,256KiB,1MiB", Quick: "64,1KiB,64KiB,1MiB", Doc: "bytes of a Write"},
			{Name: "reads", Kind: bench.Words, Default: "message", Choices: []string{"message", "any"}, Doc: "the reader reads one message at a time, or any available data up to 64 KiB"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round"},
		},
		Run: evaluated(sdpBandwidth),
	})
}

// Buffer configurations of the paper.
const (
	paperBuffers  = 8
	paperBytes    = 8 << 10
	largerBytes   = 32 << 10
	defaultSuffix = "-default"
)

// Limits.
const (
	overCredit                   = 8
	overCreditFrom, overCreditTo = 256, 4 << 10
)

var overTCP = map[int]float64{64: 10, 1 << 10: 3, 64 << 10: 1, 1 << 20: 1} // by size

// greedyReads reports whether the parameter reads selects a greedy reader.
func greedyReads(r *run) bool {
	words := r.Words("reads")
	return words[len(words)-1] == "any"
}

func sdpBandwidth(ctx context.Context, r *run) error {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes))
	r.Step("opening connections")
	all, err := openSockets(ctx, sdpbench.Config{},
		variant{"", sdpbench.Config{Buffers: paperBuffers, BufferBytes: paperBytes, ZeroCopy: -1}},
		variant{defaultSuffix, sdpbench.Config{}})
	defer all.close()
	if err != nil {
		return err
	}
	over := map[sdpbench.Transport]*extreme{sdpbench.RDMA: {}, sdpbench.NIC: {}} // over credit
	for _, size := range sizes {
		r.Step("%d B", size)
		var set seriesSet
		for _, s := range all {
			o := sdpbench.StreamOptions{Size: size, Greedy: greedyReads(r)}
			set.addSeries(s.series, s.NewStreamer(o, r.Duration("time")).Rounds(sdpbench.Flow.MBps))
		}
		samples, ratios, err := r.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
		if err != nil {
			return err
		}
		for d, e := range over {
			if size >= overCreditFrom && size <= overCreditTo {
				e.keepMin(measure.MedianRatio(samples[all.indexOf(d, "")].Figures, samples[all.indexOf(sdpbench.Credit, "")].Figures), "with %d B", size)
			}
		}
		if limit, ok := overTCP[size]; ok {
			r.atLeast(fmt.Sprintf("%s of %d B over tcp", sdpbench.NIC, size), ratios[all.indexOf(sdpbench.NIC, defaultSuffix)-1], limit)
		}
	}
	for _, d := range []sdpbench.Transport{sdpbench.RDMA, sdpbench.NIC} {
		if e := over[d]; e.seen {
			r.atLeast(fmt.Sprintf("%s over %s at worst %s", d, sdpbench.Credit, e.where), e.value, overCredit)
		}
	}
	return nil
}

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
		Run: evaluated(sdpUtilization),
	})
}

// Limits, in percent of the buffer.
const (
	fullUse, fullFrom = 95, 512 // for messages of at least fullFrom bytes
	partUse           = 25
)

func sdpUtilization(ctx context.Context, r *run) error {
	r.Plan(len(r.Ints("bytes")) * (1 + len(r.Ints("sizes"))))
	for _, bytes := range r.Ints("bytes") {
		if err := measureUtilization(ctx, r, bytes); err != nil {
			return err
		}
	}
	return nil
}

// measureUtilization measures with buffers of one size.
func measureUtilization(ctx context.Context, r *run, bytes int) error {
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
		samples, _, err := r.measurePoint(ctx, &set, atSize(size, total))
		if err != nil {
			return err
		}
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
			r.addCheck(e.value, fullUse, e.value >= fullUse, "%s %s %s %s (at least %d)", d, formatFigure(e.value, fullUse, 1, e.value >= fullUse), total, e.where, fullUse)
		}
	}
	if filling.seen {
		r.addCheck(filling.value, fullUse, filling.value >= fullUse, "%s %s %s %s (at least %d)", sdpbench.Credit, formatFigure(filling.value, fullUse, 1, filling.value >= fullUse), total, filling.where, fullUse)
	}
	switch {
	case partial.seen && bytes == largerBytes:
		r.addCheck(partial.value, partUse, partial.value <= partUse, "%s %s %s %s (at most %d)", sdpbench.Credit, formatFigure(partial.value, partUse, 1, partial.value <= partUse), total, partial.where, partUse)
	case partial.seen:
		r.addCheck(partial.value, fullUse, partial.value < fullUse, "%s %s %s %s (below %d)", sdpbench.Credit, formatFigure(partial.value, fullUse, 1, partial.value < fullUse), total, partial.where, fullUse)
	}
	return nil
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sdp-zerocopy",
		Source: "SDP sec. 2.2",
		Layer:  bench.LayerSDP,
		Claim:  "Zero-copy is at least as fast as copying for Writes of 64 KiB and more. The paper's threshold is 32 KB.",
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,256KiB,512KiB,1MiB,2MiB,4MiB", Quick: "16KiB,64KiB,2MiB", Min: zeroCopyFrom, Doc: "bytes of a Write, and of the matching Read"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round"},
		},
		Run: evaluated(sdpZeroCopy),
	})
}

const (
	zeroCopySuffix = "-zero-copy"
	withoutCopy    = "% without a copy" // unit of the share
	zeroCopyFrom   = 4 << 10            // threshold in bytes, below all measured sizes
	zeroCopyPays   = 64 << 10           // limit
)

func sdpZeroCopy(ctx context.Context, r *run) error {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes))
	r.Step("opening connections")
	all, err := openSockets(ctx, sdpbench.Config{},
		variant{"", sdpbench.Config{ZeroCopy: -1}},
		variant{zeroCopySuffix, sdpbench.Config{ZeroCopy: zeroCopyFrom}})
	defer all.close()
	if err != nil {
		return err
	}
	gains := map[sdpbench.Transport][]float64{} // zero-copy over copies, by size
	for _, size := range sizes {
		r.Step("%d B", size)
		var set seriesSet
		moved := make([]sdpbench.Flow, len(all)) // sums of all rounds
		for i, s := range all {
			set.addSeries(s.series, countingRounds(&moved[i], s.NewStreamer(sdpbench.StreamOptions{Size: size}, r.Duration("time"))))
		}
		at := atSize(size, measure.MegabytesPerSec)
		samples, _, err := r.measurePoint(ctx, &set, at)
		if err != nil {
			return err
		}
		at.YUnit = withoutCopy
		for _, d := range sdpbench.FlowControls() {
			k := all.indexOf(d, zeroCopySuffix)
			gains[d] = append(gains[d], measure.MedianRatio(samples[k].Figures, samples[all.indexOf(d, "")].Figures))
			r.Emit(bench.Row{Series: all[k].series, X: at.X, XUnit: at.XUnit, Y: moved[k].ZeroCopyPercent(), YUnit: at.YUnit})
		}
	}
	for _, d := range sdpbench.FlowControls() {
		from, pays := zeroCopyThreshold(sizes, gains[d])
		where := "at no size up to " + strconv.Itoa(sizes[len(sizes)-1])
		if pays {
			where = "from " + strconv.Itoa(from)
		}
		r.addNote(pays && from <= zeroCopyPays, "%s: zero-copy is faster %s B (%.2f times at %d B)", d, where, gains[d][len(sizes)-1], sizes[len(sizes)-1])
	}
	return nil
}

// countingRounds returns the rounds of a streamer, in MB/s. It adds their bytes to sum.
func countingRounds(sum *sdpbench.Flow, s *sdpbench.Streamer) measure.Round {
	return func(ctx context.Context) (float64, error) {
		f, err := s.Round(ctx)
		sum.ZeroCopy += f.ZeroCopy
		sum.Bytes += f.Bytes
		return f.MBps(), err
	}
}

// zeroCopyThreshold returns the smallest size from which on every gain is at least 1.
func zeroCopyThreshold(sizes []int, gains []float64) (from int, pays bool) {
	for i := len(sizes) - 1; i >= 0 && gains[i] >= 1; i-- {
		from, pays = sizes[i], true
	}
	return from, pays
}

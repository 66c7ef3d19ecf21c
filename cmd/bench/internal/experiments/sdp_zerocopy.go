package experiments

import (
	"context"
	"strconv"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

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
		Run: sdpZeroCopy,
	})
}

const (
	zeroCopySuffix = "-zero-copy"
	withoutCopy    = "% without a copy" // unit of the share
	zeroCopyFrom   = 4 << 10            // threshold in bytes, below all measured sizes
	zeroCopyPays   = 64 << 10           // limit
)

func sdpZeroCopy(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes))
	r.Step("opening connections")
	all, err := openSockets(ctx, sdpbench.Config{},
		variant{"", sdpbench.Config{ZeroCopy: -1}},
		variant{zeroCopySuffix, sdpbench.Config{ZeroCopy: zeroCopyFrom}})
	defer all.close()
	if err != nil {
		return bench.Verdict{}, err
	}
	gains := map[sdpbench.Transport][]float64{} // zero-copy over copies, by size
	for _, size := range sizes {
		r.Step("%d B", size)
		var set seriesSet
		moved := make([]zeroCopyShare, len(all))
		for i, s := range all {
			set.addSeries(s.series, moved[i].countingRounds(s.NewStreamer(sdpbench.StreamOptions{Size: size}, r.Duration("time"))))
		}
		samples, err := set.runAlternating(ctx, r.Int("rounds"))
		if err != nil {
			return bench.Verdict{}, err
		}
		at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.MegabytesPerSec}
		r.EmitAgainst(at, samples[0], samples[1:]...)
		at.YUnit = withoutCopy
		for _, d := range sdpbench.FlowControls() {
			k := all.indexOf(d, zeroCopySuffix)
			gains[d] = append(gains[d], measure.MedianRatio(samples[k].Figures, samples[all.indexOf(d, "")].Figures))
			r.Emit(bench.Row{Series: all[k].series, X: at.X, XUnit: at.XUnit, Y: moved[k].zeroCopyPercent(), YUnit: at.YUnit})
		}
	}
	var j evaluation
	for _, d := range sdpbench.FlowControls() {
		from, pays := zeroCopyThreshold(sizes, gains[d])
		where := "at no size up to " + strconv.Itoa(sizes[len(sizes)-1])
		if pays {
			where = "from " + strconv.Itoa(from)
		}
		j.addNote(pays && from <= zeroCopyPays, "%s: zero-copy is faster %s B (%.2f times at %d B)", d, where, gains[d][len(sizes)-1], sizes[len(sizes)-1])
	}
	return j.makeVerdict(), nil
}

// A zeroCopyShare accumulates the share of bytes transferred without a copy.
type zeroCopyShare struct{ bytes, all int64 }

// countingRounds returns the rounds of a streamer, in MB/s.
func (d *zeroCopyShare) countingRounds(s *sdpbench.Streamer) measure.Round {
	return func(ctx context.Context) (float64, error) {
		f, err := s.Round(ctx)
		d.bytes += f.ZeroCopy
		d.all += f.Bytes
		return f.MBps(), err
	}
}

func (d *zeroCopyShare) zeroCopyPercent() float64 {
	return 100 * float64(d.bytes) / float64(max(d.all, 1))
}

// zeroCopyThreshold returns the smallest size from which on every gain is at least 1.
func zeroCopyThreshold(sizes []int, gains []float64) (from int, pays bool) {
	for i := len(sizes) - 1; i >= 0 && gains[i] >= 1; i-- {
		from, pays = sizes[i], true
	}
	return from, pays
}

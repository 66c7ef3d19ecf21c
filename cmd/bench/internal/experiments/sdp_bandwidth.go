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
		Run: sdpBandwidth,
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
func greedyReads(r *bench.Run) bool {
	words := r.Words("reads")
	return words[len(words)-1] == "any"
}

func sdpBandwidth(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes))
	r.Step("opening connections")
	all, err := openSockets(ctx, sdpbench.Config{},
		variant{"", sdpbench.Config{Buffers: paperBuffers, BufferBytes: paperBytes, ZeroCopy: -1}},
		variant{defaultSuffix, sdpbench.Config{}})
	defer all.close()
	if err != nil {
		return bench.Verdict{}, err
	}
	var j evaluation
	over := map[sdpbench.Transport]*extreme{sdpbench.RDMA: {}, sdpbench.NIC: {}} // over credit
	for _, size := range sizes {
		r.Step("%d B", size)
		samples, err := streamPoint(ctx, r, all, size)
		if err != nil {
			return bench.Verdict{}, err
		}
		at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.MegabytesPerSec}
		ratios := r.EmitAgainst(at, samples[0], samples[1:]...)
		for d, e := range over {
			if size >= overCreditFrom && size <= overCreditTo {
				e.keepMin(measure.MedianRatio(samples[all.indexOf(d, "")].Figures, samples[all.indexOf(sdpbench.Credit, "")].Figures), "with %d B", size)
			}
		}
		if limit, ok := overTCP[size]; ok {
			j.atLeast(fmt.Sprintf("%s of %d B over tcp", sdpbench.NIC, size), ratios[all.indexOf(sdpbench.NIC, defaultSuffix)-1], limit)
		}
	}
	for _, d := range []sdpbench.Transport{sdpbench.RDMA, sdpbench.NIC} {
		if e := over[d]; e.seen {
			j.atLeast(fmt.Sprintf("%s over %s at worst %s", d, sdpbench.Credit, e.where), e.value, overCredit)
		}
	}
	return j.makeVerdict(), nil
}

// streamPoint measures streams of all connections with messages of one size, in MB/s.
func streamPoint(ctx context.Context, r *bench.Run, all sockets, size int) ([]bench.Sample, error) {
	var set seriesSet
	for _, s := range all {
		o := sdpbench.StreamOptions{Size: size, Greedy: greedyReads(r)}
		set.addSeries(s.series, s.NewStreamer(o, r.Duration("time")).Rounds(sdpbench.Flow.MBps))
	}
	return set.runAlternating(ctx, r.Int("rounds"))
}

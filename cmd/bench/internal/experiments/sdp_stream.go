package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

func init() {
	register(&bench.Experiment{
		Name:   "sdp-bandwidth",
		Source: "SDP fig. 6b",
		Layer:  bench.LayerSDP,
		Claims: sdpBandwidthClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "16,64,256,512,1KiB,2KiB,4KiB,8KiB,16KiB,64KiB,256KiB,1MiB", Quick: "64,1KiB,64KiB,1MiB", Max: 16 << 20, Doc: "bytes of a Write"},
			{Name: "reads", Kind: bench.Words, Default: "message", Choices: []string{"message", "any"}, Doc: "the reader reads one message at a time, or any available data up to 64 KiB"},
			delayParam(),
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round"},
		},
		Run: runFunc(sdpBandwidth),
	})
}

// Buffer configurations of the paper.
const (
	paperBuffers  = 8
	paperBytes    = 8 << 10
	largerBytes   = 32 << 10
	defaultSuffix = "-default"
)

func sdpBandwidthClaims() (claims []bench.Statement) {
	nic, rdma, credit := string(sdpbench.NIC), string(sdpbench.RDMA), string(sdpbench.Credit)
	over := func(of []string, over string, at bench.Points, least float64) bench.Comparison {
		return bench.Ratio{Of: of, Over: []string{over}, Unit: measure.MegabytesPerSec, At: at, Limit: bench.AtLeast(least)}
	}
	for _, size := range []int{256, 512, 1 << 10, 2 << 10, 4 << 10} {
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf("With 8 buffers of 8 KB and Writes of %s, RDMA-based and NIC-assisted flow control have at least 8 times the bandwidth of credit-based.", formatBytes(size)),
			Paper:    "almost an order of magnitude better from 256 B to 4 KB", Number: 10,
			Compare: over([]string{rdma, nic}, credit, bench.At(float64(size), measure.Bytes), 8),
			Because: fmt.Sprintf("credit-based has 8 messages of %s in flight and the others 64 KB, so that equal round trips allow at most %d times; more needs a fixed cost of each message beside them",
				formatBytes(size), paperBytes/size),
		})
	}
	claims = append(claims, bench.Statement{
		Sentence: "With 8 buffers of 8 KB, RDMA-based and NIC-assisted flow control have at least the bandwidth of credit-based at each size.",
		Paper:    "RDMA-based achieves the best performance, credit-based the worst",
		Compare:  over([]string{rdma, nic}, credit, bench.Everywhere(measure.Bytes), 1),
	}, bench.Statement{
		Sentence: "From 256 B to 4 KB NIC-assisted flow control has at least 0.9 times the bandwidth of RDMA-based.",
		Paper:    "very close to RDMA-based", Number: 1,
		Compare: over([]string{nic}, rdma, bench.Between(256, 4<<10, measure.Bytes), 0.9),
	})
	for _, c := range []struct {
		size  int
		least float64
	}{{64, 10}, {1 << 10, 3}, {64 << 10, 1}, {1 << 20, 1}} {
		claims = append(claims, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("With default options and Writes of %s, SDP has at least %.0f times the bandwidth of Go's TCP, which makes a system call for each Write.", formatBytes(c.size), c.least),
			Compare:  over([]string{nic + defaultSuffix}, string(sdpbench.TCP), bench.At(float64(c.size), measure.Bytes), c.least),
		})
	}
	claims = append(claims, delayClaims()...)
	return append(claims, bench.Statement{
		Source:   bench.Adapter,
		Sentence: "With default options and Writes of 64 B to 1 MiB, SDP has at least the bandwidth of Go's TCP with writer and reader of package bufio, as in most programs.",
		Compare:  over([]string{nic + defaultSuffix}, bufferedTCP, bench.Between(64, 1<<20, measure.Bytes), 1),
	})
}

// bufferedTCP is the series of TCP with buffers of package bufio.
const bufferedTCP = "tcp-bufio"

// greedyReads reports whether the parameter reads selects a greedy reader.
func greedyReads(r *run) bool {
	words := r.Words("reads")
	return words[len(words)-1] == "any"
}

func sdpBandwidth(ctx context.Context, r *run) error {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes))
	r.Step("opening connections")
	all, err := openSockets(ctx, sdpbench.Config{}, append([]variant{
		{"", sdpbench.Config{Buffers: paperBuffers, BufferBytes: paperBytes, ZeroCopy: -1}},
		{defaultSuffix, sdpbench.Config{}},
	}, delayVariants(positive(r.Pauses("delay")))...)...)
	defer all.close()
	if err != nil {
		return err
	}
	longer, err := measureDelays(ctx, r, all)
	if err != nil {
		return err
	}
	for _, size := range sizes {
		r.Step("%d B", size)
		var set seriesSet
		for _, s := range all {
			if s.Impair != "" && !slices.Contains(delaySizes, size) {
				continue
			}
			o := sdpbench.StreamOptions{Size: size, Greedy: greedyReads(r)}
			set.addSeries(s.series, s.NewStreamer(o, r.Duration("time")).Rounds(sdpbench.Flow.MBps))
			if s.Transport == sdpbench.TCP {
				o.Buffered = true
				set.addSeries(bufferedTCP, s.NewStreamer(o, r.Duration("time")).Rounds(sdpbench.Flow.MBps))
			}
		}
		samples, err := r.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
		if err != nil {
			return err
		}
		emitDelayModel(r, all, size, longer, samples)
	}
	return nil
}

func init() {
	register(&bench.Experiment{
		Name:   "sdp-utilization",
		Source: "SDP fig. 9",
		Layer:  bench.LayerSDP,
		Claims: sdpUtilizationClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "16,64,256,512,1KiB,2KiB,4KiB,8KiB,16KiB,32KiB", Quick: "512,8KiB", Max: largerBytes, Doc: "bytes of a Write"},
			{Name: "bytes", Kind: bench.Ints, Default: "8KiB,32KiB", Min: 64, Max: 1 << 20, Doc: "bytes of each of 8 buffers"},
			{Name: "reads", Kind: bench.Words, Default: "message", Choices: []string{"message", "any"}, Doc: "the reader reads one message at a time, or any available data up to 64 KiB"},
			{Name: "think", Kind: bench.Pauses, Default: "0,10us", Doc: "computations of the reader for each KiB: 0, as in the paper, or a time that makes it slower than the writer"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "30ms", Doc: "length of a round"},
		},
		Run: runFunc(sdpUtilization),
	})
}

// slowReader is the suffix of the series whose reader computes for 10 us a KiB.
const slowReader = "-think-10us"

func sdpUtilizationClaims() []bench.Statement {
	const small, large = "% of 64 KiB", "% of 256 KiB"
	credit := string(sdpbench.Credit)
	packed := func(suffix string) []string {
		return []string{string(sdpbench.RDMA) + suffix, string(sdpbench.NIC) + suffix}
	}
	use := func(of []string, unit string, at bench.Points, limit bench.Limit) bench.Comparison {
		return bench.Value{Of: of, Unit: unit, At: at, Limit: limit}
	}
	return []bench.Statement{
		{
			Sentence: "With 8 buffers of 8 KB, RDMA-based and NIC-assisted flow control use at least 95 % of the buffer with messages of 512 B and more.",
			Paper:    "peak at 512 B",
			Compare:  use(packed(""), small, bench.From(512, measure.Bytes), bench.AtLeast(95)),
			Because:  "here the reader is not slower than the writer, whose time to fill the buffer again is part of the average; a slower one fills it",
			Evidence: use(packed(slowReader), small, bench.From(512, measure.Bytes), bench.AtLeast(95)),
		},
		{
			Sentence: "They do where the reader computes for 10 us a KiB, so that it is slower than the writer.",
			Paper:    "the receiver is not able to receive data as fast",
			Compare:  use(packed(slowReader), small, bench.From(512, measure.Bytes), bench.AtLeast(95)),
		},
		{
			Sentence: "Below 8 KB they use at least 1.5 times as much of the buffer as credit-based flow control.",
			Paper:    "much higher",
			Compare: bench.Ratio{Of: packed(""), Over: []string{credit}, Unit: small, At: bench.Between(16, 4<<10, measure.Bytes),
				Limit: bench.AtLeast(1.5)},
		},
		{
			Sentence: "Credit-based flow control uses less than 95 % with messages below 8 KB.",
			Paper:    "100 % only for 8 KB or higher",
			Compare:  use([]string{credit, credit + slowReader}, small, bench.Between(1, 8<<10-1, measure.Bytes), bench.AtMost(95)),
		},
		{
			Sentence: "It uses at least 95 % with messages of 8 KB and more.",
			Paper:    "100 % for 8 KB or higher",
			Compare:  use([]string{credit}, small, bench.From(8<<10, measure.Bytes), bench.AtLeast(95)),
			Because:  "a buffer that the reader has emptied is free until its credit has come back and the writer has filled it",
		},
		{
			Sentence: "With 8 buffers of 32 KB it uses at most 25 % with messages up to 8 KB.",
			Paper:    "25 % at most", Number: 25,
			Compare: use([]string{credit, credit + slowReader}, large, bench.Between(1, 8<<10, measure.Bytes), bench.AtMost(25)),
		},
		{
			Sentence: "It does with messages of 16 and 32 KB, too.",
			Paper:    "25 % at most",
			Compare:  use([]string{credit, credit + slowReader}, large, bench.Between(16<<10, 32<<10, measure.Bytes), bench.AtMost(25)),
			Because:  "a message takes the share of a buffer of 32 KB that it fills, and the paper's maximum of 25 % is the 8 KB of its largest message",
		},
	}
}

func sdpUtilization(ctx context.Context, r *run) error {
	r.Plan(len(r.Ints("bytes")) * (1 + len(r.Ints("sizes"))*len(r.Pauses("think"))))
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
	for _, think := range r.Pauses("think") {
		suffix := ""
		if think > 0 {
			suffix = "-think-" + plainTime(think)
		}
		work := sdpbench.CalibrateWork(1024*think) / 1024
		for _, size := range r.Ints("sizes") {
			r.Step("%d B, buffers of %d B, %v of computation a KiB", size, bytes, think)
			var set seriesSet
			for _, s := range all {
				o := sdpbench.StreamOptions{Size: size, Greedy: greedyReads(r), MeasureUse: true, Compute: work}
				set.addSeries(s.series+suffix, s.NewStreamer(o, r.Duration("time")).Rounds(sdpbench.Flow.BufferUse))
			}
			if _, err := r.measurePoint(ctx, &set, atSize(size, total)); err != nil {
				return err
			}
		}
	}
	return nil
}

func init() {
	register(&bench.Experiment{
		Name:   "sdp-zerocopy",
		Source: "SDP sec. 2.2",
		Layer:  bench.LayerSDP,
		Claims: zeroCopyClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,256KiB,512KiB,1MiB,2MiB,4MiB", Quick: "16KiB,64KiB,2MiB", Min: zeroCopyFrom, Max: 16 << 20, Doc: "bytes of a Write, and of the matching Read"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round"},
		},
		Run: runFunc(sdpZeroCopy),
	})
}

const (
	zeroCopySuffix = "-zero-copy"
	withoutCopy    = "% without a copy" // unit of the share
	zeroCopyFrom   = 4 << 10            // threshold in bytes, below all measured sizes
)

func zeroCopyClaims() (claims []bench.Statement) {
	over := func(d sdpbench.Transport, from float64) bench.Comparison {
		return bench.Ratio{Of: []string{string(d) + zeroCopySuffix}, Over: []string{string(d)}, Unit: measure.MegabytesPerSec,
			At: bench.From(from, measure.Bytes), Limit: bench.AtLeast(1)}
	}
	for _, d := range sdpbench.FlowControls() {
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf("Above 32 KB zero-copy is at least as fast as copies, with %s.", d),
			Paper:    "beneficial for large messages, above 32 KB",
			Compare:  over(d, 32<<10+1),
			Because:  "an RDMA read in software copies as well, and the exchange of control messages costs a round trip for each Write",
		})
	}
	return append(claims, bench.Statement{
		Source:   bench.Adapter,
		Sentence: "From 1 MiB, SDP's default threshold, it is, with the default mode.",
		Compare:  over(sdpbench.NIC, 1<<20),
	})
}

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
	for _, size := range sizes {
		r.Step("%d B", size)
		var set seriesSet
		moved := make([]sdpbench.Flow, len(all)) // sums of all rounds
		for i, s := range all {
			set.addSeries(s.series, countingRounds(&moved[i], s.NewStreamer(sdpbench.StreamOptions{Size: size}, r.Duration("time"))))
		}
		at := atSize(size, measure.MegabytesPerSec)
		if _, err := r.measurePoint(ctx, &set, at); err != nil {
			return err
		}
		at.YUnit = withoutCopy
		for _, d := range sdpbench.FlowControls() {
			k := all.indexOf(d, zeroCopySuffix)
			r.Emit(bench.Row{Series: all[k].series, X: at.X, XUnit: at.XUnit, Y: moved[k].ZeroCopyPercent(), YUnit: at.YUnit})
		}
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

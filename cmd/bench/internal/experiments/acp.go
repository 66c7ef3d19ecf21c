package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

// acpSizes opens a job and a pair of processes as its baseline, and calls point for each size.
func acpSizes(ctx context.Context, r *run, ranks int, point func(context.Context, *run, *acpbench.Job, *verbsbench.Pair, int) error) error {
	sizes := r.Ints("sizes")
	r.Step("%d ranks", ranks)
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: ranks})
	if err != nil {
		return err
	}
	defer job.Close()
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	for _, size := range sizes {
		r.Step("%d B", size)
		if err := point(ctx, r, job, pair, size); err != nil {
			return err
		}
	}
	return nil
}

// channelSeries returns the series of a channel.
func channelSeries(c acpbench.Channel) string {
	how := "mirrored"
	if c.Imm {
		how = "imm"
	}
	if c.Copy {
		how += "-copy"
	}
	return fmt.Sprintf("acp-%s-%s", how, sizeName(c.SlotSize))
}

// sizeName formats a number of bytes.
func sizeName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	default:
		return fmt.Sprintf("%dB", n)
	}
}

func init() {
	register(&bench.Experiment{
		Name:   "acp-gma",
		Source: "ACP fig. 6",
		Layer:  bench.LayerACP,
		Claims: acpCopyClaims(),
		Axes:   []bench.Axis{{Name: "length of a copy", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,32KiB,256KiB,1MiB", Quick: "8,32KiB", Max: 2 << 20, Doc: "bytes of a copy"},
			{Name: "ranks", Kind: bench.Ints, Default: "2,3", Quick: "2", Min: 2, Max: 64, Doc: "ranks of the jobs; with at least 3, copies between two remote ranks are measured too"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "1000", Quick: "300", Doc: "copies in a round"},
		},
		Run: runFunc(acpGMA),
	})
}

// acpCopyClaims returns the statements. They are our own: the paper shows two curves of time over
// size and draws no conclusion from them.
func acpCopyClaims() (claims []bench.Statement) {
	over := func(dir acpbench.Direction, ranks int, most float64) bench.Comparison {
		return bench.Ratio{Of: []string{string(dir)}, Over: []string{string(verbsbench.RCRead)}, Unit: usOnRanks(ranks),
			At: bench.Between(1, 32<<10, measure.Bytes), Limit: bench.AtMost(most)}
	}
	const slowMode = "with more ranks than processors, the asker and the target often run on the same one: posting, two switches of processes and the response follow one another"
	for _, c := range []struct {
		ranks   int
		dir     acpbench.Direction
		most    float64
		because string
	}{
		{2, acpbench.RemoteToLocal, 1.5, ""},
		{2, acpbench.LocalToRemote, 1.5, ""},
		{3, acpbench.RemoteToLocal, 1.5, slowMode},
		{3, acpbench.LocalToRemote, 1.5, slowMode},
		{3, acpbench.RemoteToRemote, 3, slowMode},
	} {
		claims = append(claims, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("In a job of %d ranks a copy %s of up to 32 KiB takes at most %.1f times as long as a bare RC read, at each size.", c.ranks, c.dir, c.most),
			Compare:  over(c.dir, c.ranks, c.most), Because: c.because,
		})
	}
	return claims
}

func acpGMA(ctx context.Context, r *run) error {
	r.Plan(len(r.Ints("ranks")) * (1 + len(r.Ints("sizes"))))
	for _, ranks := range r.Ints("ranks") {
		err := acpSizes(ctx, r, ranks, func(ctx context.Context, r *run, job *acpbench.Job, pair *verbsbench.Pair, size int) error {
			return acpCopyPoint(ctx, r, ranks, job, pair, size)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func acpCopyPoint(ctx context.Context, r *run, ranks int, job *acpbench.Job, pair *verbsbench.Pair, size int) error {
	read, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCRead, Size: size})
	if err != nil {
		return err
	}
	iters := r.Int("iters")
	var set seriesSet
	set.addMeans(string(verbsbench.RCRead), func(into *measure.Latency) measure.Round { return read.LatencyRounds(iters, into) })
	for _, dir := range []acpbench.Direction{acpbench.RemoteToLocal, acpbench.LocalToRemote, acpbench.RemoteToRemote} {
		if dir != acpbench.RemoteToRemote || ranks > 2 {
			set.addSeries(string(dir), job.Copies(dir, size, iters))
		}
	}
	if _, err := r.measurePoint(ctx, &set, atSize(size, usOnRanks(ranks))); err != nil {
		return err
	}
	return read.Close(ctx)
}

func init() {
	register(&bench.Experiment{
		Name:   "acp-bandwidth",
		Source: "ACP fig. 7",
		Layer:  bench.LayerACP,
		Claims: acpBandwidthClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "4KiB,64KiB,1MiB,4MiB", Quick: "64KiB,1MiB", Max: 64 << 20, Doc: "bytes of a message"},
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,16KiB,64KiB,256KiB", Quick: "4KiB,64KiB", Max: 4 << 20, Doc: "bytes of a slot; 2 at the sender and 8 at the receiver"},
			{Name: "copies", Kind: bench.Words, Default: "no,yes", Choices: []string{"no", "yes"}, Doc: "long messages are sent from the user buffer (no) or copied to the sender's slots (yes)"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "megabytes", Kind: bench.Int, Default: "128", Quick: "32", Doc: "bytes in a round, in MiB"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round of the bare stream"},
		},
		Run: runFunc(acpBandwidth),
	})
}

const (
	claimedSlot  = 64 << 10         // slot size of the claims
	bareStream   = "rc-write-64KiB" // the speed of the network
	streamSuffix = "-stream"        // many messages in flight
)

func acpBandwidthClaims() []bench.Statement {
	paper := channelSeries(acpbench.Channel{SlotSize: claimedSlot, Copy: true})
	small := channelSeries(acpbench.Channel{SlotSize: 4 << 10, Copy: true})
	imm := channelSeries(acpbench.Channel{SlotSize: claimedSlot, Imm: true})
	peak := func(of, over string, limit bench.Limit) bench.Comparison {
		return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: measure.MegabytesPerSec, At: bench.Everywhere(measure.Bytes), Peak: true, Limit: limit}
	}
	const copies = "the copies into and out of the slots take the processors that the adapter in software needs"
	return []bench.Statement{
		{
			Sentence: "With slots of 64 KiB, the peak bandwidth of a ping-pong through the paper's channel (mirrored indices, copies) is at least 0.9 times that of RC writes of 64 KiB.",
			Paper:    "2.9 GB/s from slots of 64 KB on, close to the maximum of the network", Number: 1,
			Compare: peak(paper, bareStream, bench.AtLeast(0.9)), Because: copies,
		},
		{
			Sentence: "It depends on the slot size: with slots of 4 KiB the peak is at most 0.7 times that with slots of 64 KiB.",
			Paper:    "depends heavily on the slot size",
			Compare:  peak(small, paper, bench.AtMost(0.7)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "With immediate data and without a copy at the sender, the peak of a ping-pong with slots of 64 KiB is at least 0.9 times that of RC writes.",
			Compare:  peak(imm, bareStream, bench.AtLeast(0.9)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "A stream through the same channel, of many messages in flight, has at least 0.9 times the peak of RC writes.",
			Compare:  peak(imm+streamSuffix, bareStream, bench.AtLeast(0.9)),
		},
	}
}

func acpBandwidth(ctx context.Context, r *run) error {
	r.Plan(1 + len(r.Ints("sizes")))
	return acpSizes(ctx, r, 2, acpBandwidthPoint)
}

func acpBandwidthPoint(ctx context.Context, r *run, job *acpbench.Job, pair *verbsbench.Pair, size int) error {
	write, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCWrite, Size: claimedSlot})
	if err != nil {
		return err
	}
	var set seriesSet
	set.addSeries(bareStream, write.Rounds(r.Duration("time"), verbsbench.Flow.MBps))
	// Limit the number of short messages, whose time does not depend on their bytes.
	count := max(16, min(20000, r.Int("megabytes")<<20/size))
	for _, slot := range r.Ints("slot-sizes") {
		for _, imm := range []bool{true, false} {
			for _, copies := range r.Words("copies") {
				c := acpbench.Channel{SlotSize: slot, Imm: imm, Copy: copies == "yes"}
				half := job.PingPong(c, size, max(8, count/16), nil)
				set.addSeries(channelSeries(c), func(ctx context.Context) (float64, error) {
					us, err := half(ctx)
					return float64(size) / us, err
				})
				set.addSeries(channelSeries(c)+streamSuffix, job.Stream(c, size, count))
			}
		}
	}
	if _, err := r.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec)); err != nil {
		return err
	}
	return write.Close(ctx)
}

func init() {
	register(&bench.Experiment{
		Name:   "acp-pingpong",
		Source: "ACP fig. 8",
		Layer:  bench.LayerACP,
		Claims: acpPingPongClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "8", Max: 4 << 20, Doc: "bytes of a message"},
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,16KiB,64KiB,256KiB", Quick: "64KiB", Max: 4 << 20, Doc: "bytes of a slot; 2 at the sender and 8 at the receiver"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round; fewer of messages above 4 KiB"},
		},
		Run: runFunc(acpPingPong),
	})
}

func acpPingPongClaims() []bench.Statement {
	mirrored, imm := channelSeries(acpbench.Channel{SlotSize: claimedSlot}), channelSeries(acpbench.Channel{SlotSize: claimedSlot, Imm: true})
	over := func(of, over string, limit bench.Limit) bench.Comparison {
		return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: measure.Microseconds, At: bench.At(claimedAt, measure.Bytes), Limit: limit}
	}
	return []bench.Statement{
		{
			Sentence: "A message of 8 bytes through a channel with mirrored indices takes about 4 times as long as an RC send (3 to 5 times).",
			Paper:    "around 6 us, about four times the network",
			Compare:  over(mirrored, string(verbsbench.RCSend), bench.Within(3, 5)),
			Because:  "the writes of message and index leave in one batch of packets, and a write in software costs little more in a batch",
		},
		{
			Sentence: "With immediate data it takes at most 0.9 times as long as with mirrored indices.",
			Paper:    "immediate data would reduce the overhead significantly",
			Compare:  over(imm, mirrored, bench.AtMost(0.9)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "With immediate data it takes at most 1.3 times as long as an RC send.",
			Compare:  over(imm, string(verbsbench.RCSend), bench.AtMost(1.3)),
		},
	}
}

func acpPingPong(ctx context.Context, r *run) error {
	r.Plan(1 + len(r.Ints("sizes")))
	return acpSizes(ctx, r, 2, acpPingPoint)
}

func acpPingPoint(ctx context.Context, r *run, job *acpbench.Job, pair *verbsbench.Pair, size int) error {
	iters := r.roundTrips(size)
	send, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCSend, Size: size})
	if err != nil {
		return err
	}
	var set seriesSet
	set.addPing(string(verbsbench.RCSend), send, iters)
	for _, slot := range r.Ints("slot-sizes") {
		for _, imm := range []bool{true, false} {
			c := acpbench.Channel{SlotSize: slot, Imm: imm}
			set.addEvents(channelSeries(c), func(into *measure.Latency) measure.Round { return job.PingPong(c, size, iters, into) })
		}
	}
	if _, err := r.measurePoint(ctx, &set, atSize(size, measure.Microseconds)); err != nil {
		return err
	}
	return send.Close(ctx)
}

package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "acp-bandwidth",
		Source: "ACP fig. 7",
		Layer:  bench.LayerACP,
		Claim:  "With slots of 64 KiB the best bandwidth of a channel is at least 0.9 times that of RC writes of 64 KiB.",
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "4KiB,64KiB,1MiB,4MiB", Quick: "64KiB,1MiB", Max: 64 << 20, Doc: "bytes of a message"},
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,16KiB,64KiB,256KiB", Quick: "64KiB", Doc: "bytes of a slot; 2 at the sender and 8 at the receiver"},
			{Name: "copies", Kind: bench.Words, Default: "no,yes", Quick: "no", Choices: []string{"no", "yes"}, Doc: "long messages are sent from the user buffer (no) or copied to the sender's slots (yes)"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "megabytes", Kind: bench.Int, Default: "256", Quick: "64", Doc: "bytes in a round, in MiB"},
			{Name: "time", Kind: bench.Duration, Default: "60ms", Quick: "20ms", Doc: "length of a round of the bare stream"},
		},
		Run: acpBandwidth,
	})
}

// Limit of a channel over RC writes, and the slot size of the claim.
const (
	channelOverWrite = 0.9
	claimedSlot      = 64 << 10
)

func acpBandwidth(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	var best extreme
	err := acpSizes(ctx, r, 2, func(job *acpbench.Job, pair *verbsbench.Pair, size int) error {
		return acpBandwidthPoint(ctx, r, job, pair, size, &best)
	})
	if err != nil {
		return bench.Verdict{}, err
	}
	var j evaluation
	if best.seen {
		j.atLeast(best.where+" over rc-write", best.value, channelOverWrite)
	}
	return j.makeVerdict(), nil
}

func acpBandwidthPoint(ctx context.Context, r *bench.Run, job *acpbench.Job, pair *verbsbench.Pair, size int, best *extreme) error {
	write, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCWrite, Size: claimedSlot})
	if err != nil {
		return err
	}
	var set seriesSet
	set.addSeries(string(verbsbench.RCWrite)+"-64KiB", write.Rounds(r.Duration("time"), verbsbench.Flow.MBps))
	var kinds []acpbench.Channel
	for _, slot := range r.Ints("slot-sizes") {
		for _, imm := range []bool{true, false} {
			for _, copies := range r.Words("copies") {
				kinds = append(kinds, acpbench.Channel{SlotSize: slot, Imm: imm, Copy: copies == "yes"})
			}
		}
	}
	for _, c := range kinds {
		// Limit the number of short messages, whose time does not depend on their bytes.
		count := max(16, min(20000, r.Int("megabytes")<<20/size))
		set.addSeries(channelSeries(c), job.Stream(c, size, count))
	}
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	ratios := r.EmitAgainst(bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.MegabytesPerSec}, samples[0], samples[1:]...)
	for i, c := range kinds {
		if c.SlotSize == claimedSlot {
			best.keepMax(ratios[i], "%s with messages of %s", samples[1+i].Series, sizeName(size))
		}
	}
	return write.Close(ctx)
}

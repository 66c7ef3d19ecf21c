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
	r.Plan(1 + len(sizes))
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
	bench.Register(&bench.Experiment{
		Name:   "acp-gma",
		Source: "ACP fig. 6",
		Layer:  bench.LayerACP,
		Claim:  "A copy of 8 bytes from the global memory of another rank takes at most 1.5 times a bare RC read.",
		Axes:   []bench.Axis{{Name: "length of a copy", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,32KiB,256KiB,1MiB", Quick: "8,32KiB", Max: 2 << 20, Doc: "bytes of a copy"},
			{Name: "ranks", Kind: bench.Int, Default: "3", Quick: "2", Min: 2, Max: 64, Doc: "ranks of the job; with at least 3, copies between two remote ranks are measured too"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "1000", Quick: "300", Doc: "copies in a round"},
		},
		Run: evaluated(acpGMA),
	})
}

// copyOverRead is the limit of a copy over a read. A copy also creates a handle.
const copyOverRead = 1.5

func acpGMA(ctx context.Context, r *run) error {
	return acpSizes(ctx, r, r.Int("ranks"), acpCopyPoint)
}

func acpCopyPoint(ctx context.Context, r *run, job *acpbench.Job, pair *verbsbench.Pair, size int) error {
	read, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCRead, Size: size})
	if err != nil {
		return err
	}
	iters := r.Int("iters")
	var set seriesSet
	set.addMeans(string(verbsbench.RCRead), func(into *measure.Latency) measure.Round { return read.LatencyRounds(iters, into) })
	for _, dir := range []acpbench.Direction{acpbench.RemoteToLocal, acpbench.LocalToRemote, acpbench.RemoteToRemote} {
		if dir != acpbench.RemoteToRemote || r.Int("ranks") > 2 {
			set.addSeries(string(dir), job.Copies(dir, size, iters))
		}
	}
	_, ratios, err := r.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	if err != nil {
		return err
	}
	if size == 8 {
		r.atMost("remote-to-local over rc-read", ratios[0], copyOverRead)
	}
	return read.Close(ctx)
}

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
		Run: evaluated(acpBandwidth),
	})
}

// Limit of a channel over RC writes, and the slot size of the claim.
const (
	channelOverWrite = 0.9
	claimedSlot      = 64 << 10
)

func acpBandwidth(ctx context.Context, r *run) error {
	var best extreme
	err := acpSizes(ctx, r, 2, func(ctx context.Context, r *run, job *acpbench.Job, pair *verbsbench.Pair, size int) error {
		return acpBandwidthPoint(ctx, r, job, pair, size, &best)
	})
	if err != nil {
		return err
	}
	if best.seen {
		r.atLeast(best.where+" over rc-write", best.value, channelOverWrite)
	}
	return nil
}

func acpBandwidthPoint(ctx context.Context, r *run, job *acpbench.Job, pair *verbsbench.Pair, size int, best *extreme) error {
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
	samples, ratios, err := r.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
	if err != nil {
		return err
	}
	for i, c := range kinds {
		if c.SlotSize == claimedSlot {
			best.keepMax(ratios[i], "%s with messages of %s", samples[1+i].Series, sizeName(size))
		}
	}
	return write.Close(ctx)
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "acp-pingpong",
		Source: "ACP fig. 8",
		Layer:  bench.LayerACP,
		Claim: "A message of 8 bytes through a channel with immediate data takes at most 1.3 times as long as an RC send. " +
			"The paper reports 4 times the network's latency with mirrored indices.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,16KiB", Quick: "8", Max: maxPing, Doc: "bytes of a message"},
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,64KiB", Quick: "64KiB", Doc: "bytes of a slot; 2 at the sender and 8 at the receiver"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round"},
		},
		Run: evaluated(acpPingPong),
	})
}

// immOverSend is the limit of a message through a channel over an RC send.
const immOverSend = 1.3

func acpPingPong(ctx context.Context, r *run) error {
	return acpSizes(ctx, r, 2, acpPingPoint)
}

func acpPingPoint(ctx context.Context, r *run, job *acpbench.Job, pair *verbsbench.Pair, size int) error {
	iters := r.Int("iters")
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
	samples, ratios, err := r.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	if err != nil {
		return err
	}
	if size == 8 {
		for i, ratio := range ratios {
			if i%2 == 0 {
				r.atMost(samples[1+i].Series+" over rc-send", ratio, immOverSend)
			} else {
				r.addNote(true, "%s over rc-send %.2f (the paper: 4)", samples[1+i].Series, ratio)
			}
		}
	}
	return send.Close(ctx)
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "acp-slots",
		Source: "ACP figs. 9, 10",
		Layer:  bench.LayerACP,
		Claim:  "The number of slots of a channel does not affect the latency of a ping-pong (within 10 %).",
		Axes:   []bench.Axis{{Name: "slots", Unit: slotsUnit}},
		Params: []bench.Param{
			{Name: "slots", Kind: bench.Ints, Default: "2,4,8,16", Quick: "2,8", Max: 64, Doc: "slots of one side; the other side has 2 (sender) or 8 (receiver)"},
			{Name: "size", Kind: bench.Int, Default: "1KiB", Max: maxPing, Doc: "bytes of a message"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round"},
		},
		Run: evaluated(acpSlots),
	})
}

const (
	slotsUnit  = "slots"
	slotsAlike = 1.1
)

func acpSlots(ctx context.Context, r *run) error {
	counts := r.Ints("slots")
	r.Plan(2)
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
	if err != nil {
		return err
	}
	defer job.Close()
	for _, imm := range []bool{false, true} {
		r.Step("imm: %v", imm)
		var set seriesSet
		var at []int
		for _, sender := range []bool{true, false} {
			for _, n := range counts {
				c := acpbench.Channel{SlotSize: 64 << 10, Imm: imm, SendSlots: 2, RecvSlots: 8}
				series := "send-slots"
				if sender {
					c.SendSlots = n
				} else {
					c.RecvSlots, series = n, "receive-slots"
				}
				if imm {
					series += "-imm"
				}
				at = append(at, n)
				set.addEvents(series, func(into *measure.Latency) measure.Round { return job.PingPong(c, r.Int("size"), r.Int("iters"), into) })
			}
		}
		samples, err := set.runAlternating(ctx, r.Int("rounds"))
		if err != nil {
			return err
		}
		for i, s := range samples {
			first := samples[i-i%len(counts)]
			ratio := measure.MedianRatio(s.Figures, first.Figures)
			r.Emit(bench.Row{Series: s.Series, X: float64(at[i]), XUnit: slotsUnit, Y: measure.Median(s.Figures), YUnit: measure.Microseconds, Stats: s.Stats})
			if i%len(counts) > 0 {
				r.atMost(fmt.Sprintf("%s: %d over %d slots", s.Series, at[i], counts[0]), ratio, slotsAlike)
				r.atMost("and the inverse", 1/ratio, slotsAlike)
			}
		}
	}
	return nil
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "acp-connect",
		Source: "ACP figs. 11, 12",
		Layer:  bench.LayerACP,
		Claim:  "Connecting a channel takes longer with more buffer memory.",
		Axes:   []bench.Axis{{Name: "memory of the receiver's slots", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,64KiB,1MiB", Quick: "4KiB,1MiB", Doc: "bytes of a slot"},
			{Name: "slots", Kind: bench.Ints, Default: "2,8", Quick: "8", Doc: "slots on both sides"},
			{Name: "count", Kind: bench.Int, Default: "200", Quick: "30", Doc: "channels at each point, opened one after the other"},
		},
		Run: acpConnect,
	})
}

func acpConnect(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	sizes, slots := r.Ints("slot-sizes"), r.Ints("slots")
	r.Plan(len(sizes) * len(slots))
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
	if err != nil {
		return bench.Verdict{}, err
	}
	defer job.Close()
	var least, most struct{ bytes, us float64 }
	for _, size := range sizes {
		for _, n := range slots {
			r.Step("%d slots of %s", n, sizeName(size))
			for _, imm := range []bool{false, true} {
				c := acpbench.Channel{SlotSize: size, SendSlots: n, RecvSlots: n, Imm: imm}
				connect, free, err := job.Connect(ctx, c, r.Int("count"))
				if err != nil {
					return bench.Verdict{}, err
				}
				suffix := ""
				if imm {
					suffix = "-imm"
				}
				bytes := float64(n * size)
				row := bench.Row{X: bytes, XUnit: measure.Bytes, YUnit: measure.Microseconds}
				row.Series, row.Y = "connect-sender"+suffix, connect
				r.Emit(row)
				row.Series, row.Y = "free-receiver"+suffix, free
				r.Emit(row)
				if least.bytes == 0 || bytes < least.bytes {
					least.bytes, least.us = bytes, connect
				}
				if bytes > most.bytes {
					most.bytes, most.us = bytes, connect
				}
			}
		}
	}
	return bench.Verdict{Holds: most.us > least.us*slotsAlike && most.bytes > least.bytes,
		Reason: fmt.Sprintf("%.0f us with %s and %.0f us with %s", least.us, sizeName(int(least.bytes)), most.us, sizeName(int(most.bytes)))}, nil
}

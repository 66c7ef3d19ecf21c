package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

func init() {
	register(&bench.Experiment{
		Name:   "acp-slots",
		Source: "ACP figs. 9, 10",
		Layer:  bench.LayerACP,
		Claims: acpSlotsClaims(),
		Axes:   []bench.Axis{{Name: "slots", Unit: slotsUnit}},
		Params: []bench.Param{
			{Name: "slots", Kind: bench.Ints, Default: "2,4,8,16", Quick: "2,8", Max: 64, Doc: "slots of one side; the other side has 2 (sender) or 8 (receiver)"},
			{Name: "sizes", Kind: bench.Ints, Default: "8,1KiB,64KiB,256KiB,1MiB", Quick: "1KiB,256KiB", Max: 4 << 20, Doc: "bytes of a message; a slot has 64 KiB"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round; fewer of messages above 4 KiB"},
		},
		Run: runFunc(acpSlots),
	})
}

const (
	slotsUnit  = "slots"
	sendSlots  = "send-slots"
	recvSlots  = "receive-slots"
	immSuffix  = "-imm"
	slotsAlike = 1.1 // ratio up to which times are equal
)

// usOfSize returns the unit of the time of a message.
func usOfSize(size int) string { return fmt.Sprintf("%s of %s", measure.Microseconds, sizeName(size)) }

func acpSlotsClaims() (claims []bench.Statement) {
	for _, side := range []struct{ series, source, name string }{
		{sendSlots, "ACP fig. 9", "send buffer"},
		{recvSlots, "ACP fig. 10", "receive buffer"},
	} {
		for _, c := range []struct {
			name    string
			sizes   []int
			because string
		}{
			{"that fit into a slot of 64 KiB", []int{8, 1 << 10, 64 << 10}, ""},
			{"of several slots", []int{256 << 10, 1 << 20}, "a message of several slots is sent as far as there are free ones, and more of them overlap copies and writes"},
		} {
			var all bench.All
			for _, size := range c.sizes {
				all = append(all, bench.Flat{Of: []string{side.series, side.series + immSuffix}, Unit: usOfSize(size), At: bench.Everywhere(slotsUnit), Limit: bench.AtMost(slotsAlike)})
			}
			claims = append(claims, bench.Statement{
				Source:   side.source,
				Sentence: fmt.Sprintf("The number of slots of the %s does not affect the time of a ping-pong of messages %s (within 10 %%).", side.name, c.name),
				Paper:    "does not affect the performance",
				Compare:  all, Because: c.because,
			})
		}
	}
	return claims
}

func acpSlots(ctx context.Context, r *run) error {
	sizes := r.Ints("sizes")
	r.Plan(2 * len(sizes))
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
	if err != nil {
		return err
	}
	defer job.Close()
	for _, size := range sizes {
		for _, imm := range []bool{false, true} {
			r.Step("%s, imm: %v", sizeName(size), imm)
			if err := slotsPoint(ctx, r, job, size, imm); err != nil {
				return err
			}
		}
	}
	return nil
}

// roundTrips returns the number of round trips of a round: fewer of messages above 4 KiB.
func (r *run) roundTrips(size int) int {
	return max(10, min(r.Int("iters"), r.Int("iters")*(4<<10)/size))
}

// slotsPoint measures all numbers of slots with messages of one size.
func slotsPoint(ctx context.Context, r *run, job *acpbench.Job, size int, imm bool) error {
	iters := r.roundTrips(size)
	var set seriesSet
	var at []int
	for _, series := range []string{sendSlots, recvSlots} {
		for _, n := range r.Ints("slots") {
			c := acpbench.Channel{SlotSize: claimedSlot, Imm: imm, SendSlots: n, RecvSlots: 8}
			if series == recvSlots {
				c.SendSlots, c.RecvSlots = 2, n
			}
			name := series
			if imm {
				name += immSuffix
			}
			at = append(at, n)
			set.addEvents(name, func(into *measure.Latency) measure.Round { return job.PingPong(c, size, iters, into) })
		}
	}
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	for i, s := range samples {
		r.Emit(bench.Row{Series: s.Series, X: float64(at[i]), XUnit: slotsUnit, Y: measure.Median(s.Figures), YUnit: usOfSize(size), Rounds: s.Figures, Stats: s.Stats})
	}
	return nil
}

func init() {
	register(&bench.Experiment{
		Name:   "acp-connect",
		Source: "ACP figs. 11, 12",
		Layer:  bench.LayerACP,
		Claims: acpConnectClaims(),
		Axes:   []bench.Axis{{Name: "memory of the receiver's slots", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,64KiB,1MiB", Quick: "4KiB,1MiB", Max: 4 << 20, Doc: "bytes of a slot"},
			{Name: "slots", Kind: bench.Ints, Default: "2,8", Quick: "8", Max: 64, Doc: "slots on both sides"},
			{Name: "count", Kind: bench.Int, Default: "200", Quick: "30", Doc: "channels at each point, opened one after the other"},
		},
		Run: runFunc(acpConnect),
	})
}

// Series of channels with mirrored indices; those with immediate data have immSuffix.
var (
	connectSeries = [2]string{"connect-sender", "connect-receiver"}
	freeSeries    = [2]string{"free-sender", "free-receiver"}
)

func acpConnectClaims() []bench.Statement {
	all := bench.Everywhere(measure.Bytes)
	grows := func(series string) bench.Comparison {
		return bench.Growth{Of: []string{series, series + immSuffix}, Unit: measure.Microseconds, At: all, Limit: bench.AtLeast(1.5)}
	}
	over := func(of, over string, most float64) bench.Comparison {
		return bench.All{
			bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: measure.Microseconds, At: all, Limit: bench.AtMost(most)},
			bench.Ratio{Of: []string{of + immSuffix}, Over: []string{over + immSuffix}, Unit: measure.Microseconds, At: all, Limit: bench.AtMost(most)},
		}
	}
	return []bench.Statement{
		{
			Source:   "ACP fig. 11",
			Sentence: "Connecting a channel takes the sender at least 1.5 times as long with the most buffer memory as with the least.",
			Paper:    "increases with slots and their size",
			Compare:  grows(connectSeries[0]),
		},
		{
			Source:   "ACP sec. IV.B",
			Sentence: "It takes the receiver at most 1.25 times as long as the sender.",
			Paper:    "almost the same or shorter",
			Compare:  over(connectSeries[1], connectSeries[0], 1.25),
		},
		{
			Source:   "ACP fig. 12",
			Sentence: "Freeing a channel takes the receiver at least 1.5 times as long with the most buffer memory as with the least.",
			Paper:    "increases with slots and their size",
			Compare:  grows(freeSeries[1]),
			Because:  "deregistering memory of a software adapter unpins nothing, so that its time does not depend on the size",
		},
		{
			Source:   "ACP sec. IV.B",
			Sentence: "It takes the sender at most a quarter of the receiver's time.",
			Paper:    "negligible, the sender does not wait for the response",
			Compare:  over(freeSeries[0], freeSeries[1], 0.25),
			Because:  "our sender does not wait for the receiver either, but the receiver has no memory to unpin that would make it slower",
		},
	}
}

func acpConnect(ctx context.Context, r *run) error {
	sizes, slots := r.Ints("slot-sizes"), r.Ints("slots")
	r.Plan(len(sizes) * len(slots))
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
	if err != nil {
		return err
	}
	defer job.Close()
	for _, size := range sizes {
		for _, n := range slots {
			r.Step("%d slots of %s", n, sizeName(size))
			for _, imm := range []bool{false, true} {
				times, err := job.Connect(ctx, acpbench.Channel{SlotSize: size, SendSlots: n, RecvSlots: n, Imm: imm}, r.Int("count"))
				if err != nil {
					return err
				}
				suffix := ""
				if imm {
					suffix = immSuffix
				}
				row := bench.Row{X: float64(n * size), XUnit: measure.Bytes, YUnit: measure.Microseconds}
				for i := range 2 {
					row.Series, row.Y = connectSeries[i]+suffix, times.Connect[i]
					r.Emit(row)
					row.Series, row.Y = freeSeries[i]+suffix, times.Free[i]
					r.Emit(row)
				}
			}
		}
	}
	return nil
}

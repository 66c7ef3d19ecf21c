package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

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

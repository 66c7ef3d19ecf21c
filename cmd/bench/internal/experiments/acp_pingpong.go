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
		Run: acpPingPong,
	})
}

// immOverSend is the limit of a message through a channel over an RC send.
const immOverSend = 1.3

func acpPingPong(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	var j evaluation
	err := acpSizes(ctx, r, 2, func(job *acpbench.Job, pair *verbsbench.Pair, size int) error {
		return acpPingPoint(ctx, r, job, pair, size, &j)
	})
	if err != nil {
		return bench.Verdict{}, err
	}
	return j.makeVerdict(), nil
}

func acpPingPoint(ctx context.Context, r *bench.Run, job *acpbench.Job, pair *verbsbench.Pair, size int, j *evaluation) error {
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
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.Microseconds}
	ratios := r.EmitAgainst(at, samples[0], samples[1:]...)
	if size == 8 {
		for i, ratio := range ratios {
			if i%2 == 0 {
				j.atMost(samples[1+i].Series+" over rc-send", ratio, immOverSend)
			} else {
				j.addNote(true, "%s over rc-send %.2f (the paper: 4)", samples[1+i].Series, ratio)
			}
		}
	}
	return send.Close(ctx)
}

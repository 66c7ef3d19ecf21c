package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/acpbench"
	"github.com/softrnic/softrnic/internal/bench/measure"
	"github.com/softrnic/softrnic/internal/bench/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "acp-pingpong",
		Source: "ACP fig. 8",
		Layer:  bench.LayerACP,
		Claim: "A message of 8 bytes takes at most 1.3 times an RC send through a channel that signals by immediate data, " +
			"where the paper has 4 times the network's latency with mirrored indices.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "8,64,1KiB,4KiB,16KiB", Quick: "8", Max: maxPing, Doc: "bytes of a message"},
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,64KiB", Quick: "64KiB", Doc: "bytes of a slot; 2 at the sender and 8 at the receiver"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "400", Doc: "round trips in a round"},
		},
		Tour: bench.Settings{},
		Run:  acpPingPong,
	})
}

// immOverSend is how long a message through a channel may take, over a bare send.
const immOverSend = 1.3

func acpPingPong(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	sizes, slots := r.Ints("sizes"), r.Ints("slot-sizes")
	r.Plan(1 + len(sizes))
	r.Step("ranks")
	job, pair, end, err := openACP(ctx, 2)
	defer end()
	if err != nil {
		return bench.Verdict{}, err
	}
	var j judge
	for _, size := range sizes {
		r.Step("%d B", size)
		if err := acpPingPoint(ctx, r, job, pair, size, slots, &j); err != nil {
			return bench.Verdict{}, err
		}
	}
	return j.verdict(), nil
}

func acpPingPoint(ctx context.Context, r *bench.Run, job *acpbench.Job, pair *verbsbench.Pair, size int, slots []int, j *judge) error {
	iters := r.Int("iters")
	send, err := pair.PingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCSend, Size: size})
	if err != nil {
		return err
	}
	var turns lineup
	turns.addPing(string(verbsbench.RCSend), send, iters)
	for _, slot := range slots {
		for _, imm := range []bool{true, false} {
			c := acpbench.Channel{SlotSize: slot, Imm: imm}
			turns.addEvents(channelSeries(c), func(into *measure.Latency) measure.Round { return job.PingPong(c, size, iters, into) })
		}
	}
	samples, err := turns.run(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.Microseconds}
	ratios := r.EmitAgainst(at, samples[0], samples[1:]...)
	if size == 8 {
		for i, ratio := range ratios {
			if i%2 == 0 {
				j.atMost(samples[1+i].Series, ratio, immOverSend)
			} else {
				j.note(true, "%s %.2f (the paper: 4)", samples[1+i].Series, ratio)
			}
		}
	}
	return send.Close(ctx)
}

// channelSeries names a kind of channel.
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

// sizeName writes a number of bytes.
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

// openACP opens a job and the pair of processes that it is compared with. The caller calls end, also after an
// error.
func openACP(ctx context.Context, ranks int) (job *acpbench.Job, pair *verbsbench.Pair, end func(), err error) {
	var open []func()
	end = func() { closeAll(open) }
	if job, err = acpbench.Open(ctx, acpbench.Config{Ranks: ranks}); err != nil {
		return nil, nil, end, err
	}
	open = append(open, job.Close)
	if pair, err = verbsbench.OpenPair(ctx, verbsbench.Config{}); err != nil {
		return nil, nil, end, err
	}
	open = append(open, pair.Close)
	return job, pair, end, nil
}

package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
)

func init() {
	register(&bench.Experiment{
		Name:   "acp-progress",
		Source: "ACP sec. IV",
		Layer:  bench.LayerACP,
		Claims: acpProgressClaims(),
		Axes:   []bench.Axis{{Name: "processors on which a process may run", Unit: processorsUnit}},
		Params: overlapParams("1MiB", "a message or copy"),
		Run:    runFunc(acpProgress),
	})
}

// Series of a computation beside messages and copies of global memory.
const (
	acpCalls      = "acp-calls"      // progress in calls only, as in the paper
	acpBackground = "acp-background" // and by the goroutine of acp.Options.Progress
	acpCopies     = "acp-copy"
)

func acpProgressClaims() []bench.Statement {
	return []bench.Statement{
		{
			Sentence: "If channels make progress in calls only, at least 30 % of a message of 1 MiB is left when a computation of the same length ends.",
			Paper:    "protocols are progressed implicitly, in calls",
			Compare:  leftAt(acpCalls, 2, bench.AtLeast(30)),
		},
		{
			Source:   bench.Adapter, // the paper leaves a progress thread to future work
			Sentence: "With a background goroutine at most 10 % is left.",
			Compare:  leftAt(acpBackground, 2, bench.AtMost(10)),
			Because:  "the goroutine takes over 1 ms after the last call, and until then the message waits as without it",
		},
		{
			Source:   bench.Adapter,
			Sentence: "With it a computation on a machine with two processors hides at least 0.9 of the message.",
			Compare:  overlapAt(acpBackground, 2, bench.AtLeast(0.9)), Because: twoProcessors,
		},
		{
			Source:   bench.Adapter,
			Sentence: "The background goroutine takes at most 5 % of the processor time of a rank that computes, without traffic.",
			Compare:  stolenAt(acpBackground, stolenIdle, bench.AtMost(5)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "A computation on a machine with two processors hides at least 0.9 of a copy of global memory, which needs no goroutine of the library.",
			Compare:  overlapAt(acpCopies, 2, bench.AtLeast(0.9)), Because: twoProcessors,
		},
	}
}

func acpProgress(ctx context.Context, r *run) error {
	r.Plan(len(r.Ints("processors")))
	for _, processors := range r.Ints("processors") {
		r.Step("%d processors", processors)
		if err := acpProgressPoint(ctx, r, processors); err != nil {
			return err
		}
	}
	return nil
}

func acpProgressPoint(ctx context.Context, r *run, processors int) error {
	channel := acpbench.Channel{SlotSize: claimedSlot, Copy: true} // of the paper: its 8 slots are filled twice
	var targets []overlapTarget
	var idle seriesSet
	for _, background := range []bool{false, true} {
		job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2, Progress: background, Loose: processors > 1})
		if err != nil {
			return err
		}
		defer job.Close()
		series := acpCalls
		if background {
			series = acpBackground
		}
		targets = append(targets, overlapTarget{series, func(ctx context.Context) (overlap.Result, error) {
			return job.OverlapMessages(ctx, channel, r.Int("size"), r.Int("iters"))
		}})
		idle.addSeries(series, job.StolenRounds(r.Duration("time")))
		if !background {
			targets = append(targets, overlapTarget{acpCopies, func(ctx context.Context) (overlap.Result, error) {
				return job.OverlapCopies(ctx, r.Int("size"), r.Int("iters"))
			}})
		}
	}
	return r.measureOverlap(ctx, processors, targets, &idle)
}

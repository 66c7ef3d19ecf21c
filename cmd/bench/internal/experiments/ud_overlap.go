package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/rdm"
)

func init() {
	register(&bench.Experiment{
		Name:   "ud-rdma-overlap",
		Source: "RCUD sec. 4.2",
		Layer:  bench.LayerVerbs,
		Claims: udOverlapClaims(),
		Axes:   []bench.Axis{{Name: "processors on which a process may run", Unit: processorsUnit}},
		Params: overlapParams("64KiB", "a read; 16 are in flight"),
		Run:    runFunc(udOverlap),
	})
}

// Series of a computation beside reads.
const (
	overlapEvent  = "ud-read-event"
	overlapPoll   = "ud-read-poll"
	overlapNative = "ud-read-native"
)

func udOverlapClaims() []bench.Statement {
	rate := func(of, over string) bench.Comparison {
		return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: measure.MegabytesPerSec, At: bench.At(1, processorsUnit), Limit: bench.AtLeast(1)}
	}
	return []bench.Statement{
		{
			Sentence: "A service that sleeps until an event takes at most 5 % of the processor time of a program that computes, without traffic.",
			Paper:    "blocking mode, to be least obtrusive to the computation",
			Compare:  stolenAt(overlapEvent, stolenIdle, bench.AtMost(5)),
		},
		{
			Sentence: "A service that polls takes at least 30 % without traffic.",
			Paper:    "the polling service thread contends with the application threads",
			Compare:  stolenAt(overlapPoll, stolenIdle, bench.AtLeast(30)),
			Because:  "after empty polls the service yields, and a thread that yields gets little processor time beside one that computes",
		},
		{
			Sentence: "Beside a program that computes, a peer reads at least as fast from a service that sleeps until an event as from one that polls.",
			Paper:    "blocking mode needs to be used to avoid contention",
			Compare:  rate(overlapEvent, overlapPoll),
		},
		{
			Sentence: "While a peer reads all the time, reads that the adapter executes natively take no processor time of a program that computes, up to 5 %.",
			Paper:    "a dedicated processor on the NIC takes care of them",
			Compare:  stolenAt(overlapNative, stolenLoaded, bench.AtMost(5)),
			Because:  "the adapter is software, and its processor is that of the program",
		},
		{
			Source:   bench.Adapter,
			Sentence: "Beside a program that computes, a peer reads at least as fast natively as from a service that sleeps until an event.",
			Compare:  rate(overlapNative, overlapEvent),
		},
		{
			Source:   bench.Adapter,
			Sentence: "A computation on a machine with two processors hides at least 0.9 of its own native reads.",
			Compare:  overlapAt(overlapNative, 2, bench.AtLeast(0.9)), Because: twoProcessors,
		},
		{
			Source:   bench.Adapter,
			Sentence: "A computation on the only processor of its process hides at least 0.9 of its own native reads.",
			Compare:  overlapAt(overlapNative, 1, bench.AtLeast(0.9)), Because: ownProcessor,
		},
		{
			Source:   bench.Adapter,
			Sentence: "When it ends there, at most 10 % of the reads are left: what it does not hide is processor time.",
			Compare:  leftAt(overlapNative, 1, bench.AtMost(10)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "At most 10 % of reads by a service with an event are left when the computation ends there.",
			Compare:  leftAt(overlapEvent, 1, bench.AtMost(10)),
			Because:  "the data of such a read raises no event, so that most of it waits for the next call of the program that reads",
		},
	}
}

// overlapModes has the options of each series. A polling service would take processor time from the
// others, so each series has processes of its own.
var overlapModes = []struct {
	series  string
	options verbsbench.RDMOptions
}{
	{overlapEvent, verbsbench.RDMOptions{Service: rdm.ServeEvent}},
	{overlapPoll, verbsbench.RDMOptions{Service: rdm.ServePoll}},
	{overlapNative, verbsbench.RDMOptions{Native: true}},
}

func udOverlap(ctx context.Context, r *run) error {
	r.Plan(len(r.Ints("processors")) * len(overlapModes))
	for _, processors := range r.Ints("processors") {
		figures := map[string][]bench.Sample{} // by unit
		details := make([]overlapDetails, len(overlapModes))
		for i, mode := range overlapModes {
			r.Step("%s with %d processors", mode.series, processors)
			if err := udOverlapMode(ctx, r, processors, mode.series, mode.options, figures, &details[i]); err != nil {
				return err
			}
		}
		for _, unit := range []string{stolenIdle, stolenLoaded, measure.MegabytesPerSec, overlapUnit} {
			if list := figures[unit]; list != nil {
				r.EmitAgainst(onProcessors(processors, unit), list[0], list[1:]...)
			}
		}
		r.emitDetails(processors, figures[overlapUnit], details)
	}
	return nil
}

// udOverlapMode measures one series and adds its samples. Where a process has both processors, its
// service does not take the one that computes.
func udOverlapMode(ctx context.Context, r *run, processors int, series string, o verbsbench.RDMOptions, figures map[string][]bench.Sample, d *overlapDetails) error {
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{Loose: processors > 1})
	if err != nil {
		return err
	}
	defer pair.Close()
	o.Op, o.Size = verbsbench.RDMRead, r.Int("size")
	target, err := pair.OpenRDM(ctx, o)
	if err != nil {
		return err
	}
	var set seriesSet
	var rates []float64
	units := []string{overlapUnit}
	set.addSeries(series, d.rounds(func(ctx context.Context) (overlap.Result, error) { return target.Overlap(ctx, r.Int("iters")) }))
	if processors == 1 {
		units = append(units, stolenIdle, stolenLoaded)
		set.addSeries(series, target.StolenRounds(r.Duration("time")))
		set.addSeries(series, target.LoadedRounds(r.Duration("time"), &rates))
	}
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	for i, unit := range units {
		figures[unit] = append(figures[unit], samples[i])
	}
	if rates != nil {
		figures[measure.MegabytesPerSec] = append(figures[measure.MegabytesPerSec], bench.Sample{Series: series, Figures: rates})
	}
	return target.Close(ctx)
}

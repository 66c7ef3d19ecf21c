package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
)

func init() {
	register(&bench.Experiment{
		Name:   "mpi-overlap",
		Source: bench.Adapter,
		Layer:  bench.LayerMPI,
		Claims: mpiOverlapClaims(),
		Axes:   []bench.Axis{{Name: "processors on which a process may run", Unit: processorsUnit}},
		Params: append(overlapParams("256KiB", "a message or put"), overParam("rdma")),
		Run:    runFunc(mpiOverlap),
	})
}

// asyncSeries returns the series of a transfer.
func asyncSeries(t mpibench.Transport, a mpibench.Async) string { return string(t) + "-" + string(a) }

func mpiOverlapClaims() []bench.Statement {
	put, send := asyncSeries(mpibench.RDMA, mpibench.AsyncPut), asyncSeries(mpibench.RDMA, mpibench.AsyncSend)
	return []bench.Statement{
		{
			Sentence: "A computation on a machine with two processors hides at least 0.9 of a put of 256 KiB.",
			Compare:  overlapAt(put, 2, bench.AtLeast(0.9)), Because: twoProcessors,
		},
		{
			Sentence: "It hides at least 0.9 of a message of 256 KiB, which the receiver reads from the sender's memory.",
			Compare:  overlapAt(send, 2, bench.AtLeast(0.9)), Because: twoProcessors,
		},
		{
			Sentence: "A computation on the only processor of its process hides at least 0.9 of a put of 256 KiB.",
			Compare:  overlapAt(put, 1, bench.AtLeast(0.9)), Because: ownProcessor,
		},
		{
			Sentence: "When it ends there, at most 10 % of the put are left: what it does not hide is processor time.",
			Compare:  leftAt(put, 1, bench.AtMost(10)),
		},
		{
			Sentence: "On two processors a computation hides no less of a put than over TCP.",
			Compare: bench.Value{Of: []string{put}, Minus: asyncSeries(mpibench.TCP, mpibench.AsyncPut), Unit: overlapUnit, At: bench.At(2, processorsUnit),
				Limit: bench.AtLeast(0)},
		},
		{
			Sentence: "A connected rank takes at most 5 % of the processor time of its program, which computes, without traffic.",
			Compare:  stolenAt(string(mpibench.RDMA), stolenIdle, bench.AtMost(5)),
		},
	}
}

func mpiOverlap(ctx context.Context, r *run) error {
	r.Plan(len(r.Ints("processors")))
	for _, processors := range r.Ints("processors") {
		r.Step("%d processors", processors)
		if err := mpiOverlapPoint(ctx, r, processors); err != nil {
			return err
		}
	}
	return nil
}

func mpiOverlapPoint(ctx context.Context, r *run, processors int) error {
	transports := []mpibench.Transport{mpibench.TCP}
	for _, word := range r.Words("over") {
		transports = append(transports, mpibench.Transport("mpi-"+word))
	}
	var targets []overlapTarget
	var idle seriesSet
	for _, t := range transports {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: t, Ranks: 2, Loose: processors > 1})
		if err != nil {
			return err
		}
		defer job.Close()
		for _, a := range []mpibench.Async{mpibench.AsyncPut, mpibench.AsyncSend} {
			targets = append(targets, overlapTarget{asyncSeries(t, a), func(ctx context.Context) (overlap.Result, error) {
				return job.Overlap(ctx, a, r.Int("size"), r.Int("iters"))
			}})
		}
		idle.addSeries(string(t), job.StolenRounds(r.Duration("time")))
	}
	return r.measureOverlap(ctx, processors, targets, &idle)
}

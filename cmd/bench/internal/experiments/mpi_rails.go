package experiments

import (
	"context"
	"fmt"
	"strconv"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
)

func init() {
	register(&bench.Experiment{
		Name:   "mpi-rails",
		Source: bench.Adapter,
		Layer:  bench.LayerMPI,
		Claims: mpiRailsClaims(),
		Axes:   []bench.Axis{{Name: "operation size", Unit: measure.Bytes}, {Name: "packets lost", Unit: percent}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "64KiB,256KiB,1MiB,4MiB", Quick: "1MiB", Max: 4 << 20, Doc: "bytes of a put or a message"},
			{Name: "rails", Kind: bench.Ints, Default: "1,2,4", Min: 1, Max: 8, OfClaim: true, Doc: "queue pairs between the two ranks"},
			{Name: "losses", Kind: bench.Words, Default: "0.1,1", Quick: "1", Doc: "packet loss in percent, in both directions, for operations of 1 MiB"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "windows", Kind: bench.Int, Default: "2", Quick: "1", Doc: "windows of 64 operations in a round"},
		},
		Run: runFunc(mpiRails),
	})
}

// lossSize is the size of an operation over a link that loses packets.
const lossSize = 1 << 20

// railOps are the operations: puts, and messages by rendezvous, whose data the receiver reads.
var railOps = []string{"put", "message"}

// railSeries returns the series of an operation over n rails.
func railSeries(op string, n int) string { return op + "-rails-" + strconv.Itoa(n) }

func mpiRailsClaims() []bench.Statement {
	var claims []bench.Statement
	for _, op := range railOps {
		of, one := []string{railSeries(op, 2), railSeries(op, 4)}, []string{railSeries(op, 1)}
		ratio := func(at bench.Points, least float64) bench.Comparison {
			return bench.Ratio{Of: of, Over: one, Unit: measure.MegabytesPerSec, At: at, Limit: bench.AtLeast(least)}
		}
		claims = append(claims,
			bench.Statement{
				Source:   bench.Adapter,
				Sentence: fmt.Sprintf("On one adapter, over which rails cannot gain, a %s over 2 and 4 rails has at least 0.9 of the bandwidth over one, from 256 KiB.", op),
				Compare:  ratio(bench.From(256<<10, measure.Bytes), 0.9),
			},
			bench.Statement{
				Source:   bench.Adapter,
				Sentence: fmt.Sprintf("If 1 %% of the packets is lost, a %s of 1 MiB has at least 1.3 times the bandwidth: a loss stops one rail only.", op),
				Compare:  ratio(bench.At(1, percent), 1.3),
			})
	}
	return claims
}

func mpiRails(ctx context.Context, r *run) error {
	losses := r.Words("losses")
	r.Plan(1 + len(r.Ints("sizes")) + len(losses))
	r.Step("opening connections")
	all, err := openRails(ctx, r, "")
	defer all.close()
	if err != nil {
		return err
	}
	for _, size := range r.Ints("sizes") {
		r.Step("operations of %d B", size)
		if err := railPoint(ctx, r, all, size, bench.Point{X: float64(size), XUnit: measure.Bytes}); err != nil {
			return err
		}
	}
	for _, loss := range losses {
		r.Step("%s %% lost", loss)
		if err := lossyRails(ctx, r, loss); err != nil {
			return err
		}
	}
	return nil
}

func lossyRails(ctx context.Context, r *run, loss string) error {
	x, err := parseLoss(loss)
	if err != nil {
		return err
	}
	all, err := openRails(ctx, r, loss)
	defer all.close()
	if err != nil {
		return err
	}
	return railPoint(ctx, r, all, lossSize, bench.Point{X: x, XUnit: percent})
}

// openRails opens a job for each number of rails. The caller must close them, also after an error.
func openRails(ctx context.Context, r *run, loss string) (all jobs, err error) {
	for _, n := range r.Ints("rails") {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: 2, Rails: n, Impair: impairSpec(loss, "0")})
		if err != nil {
			return all, fmt.Errorf("%d rails: %w", n, err)
		}
		all = append(all, job)
	}
	return all, nil
}

// railPoint measures both operations over all numbers of rails, of which the first is the baseline.
func railPoint(ctx context.Context, r *run, all jobs, size int, at bench.Point) error {
	for _, op := range railOps {
		var set seriesSet
		for i, n := range r.Ints("rails") {
			round := all[i].Bandwidth(size, r.Int("windows"))
			if op == "put" {
				round = all[i].OneSidedBandwidth(op, size, r.Int("windows"))
			}
			set.addSeries(railSeries(op, n), round)
		}
		samples, err := set.runAlternating(ctx, r.Int("rounds"))
		if err != nil {
			return err
		}
		at.YUnit = measure.MegabytesPerSec
		r.emitSamples(&set, at, samples)
	}
	return nil
}

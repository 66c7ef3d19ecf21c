package experiments

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	register(&bench.Experiment{
		Name:   "verbs-loss",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: lossClaims(),
		Axes:   []bench.Axis{{Name: "packets lost", Unit: percent}},
		Params: []bench.Param{
			{Name: "losses", Kind: bench.Words, Default: "0.01,0.1,1,5", Quick: "0.1,5", Doc: "packet loss in percent, in both directions"},
			{Name: "delays", Kind: bench.Words, Default: "0,1ms", Doc: "one-way delays"},
			{Name: "series", Kind: bench.Words, Default: "rc-write,rc-read", Quick: "rc-write", Choices: []string{"rc-write", "rc-send", "rc-read"}, Doc: "operations"},
			{Name: "size", Kind: bench.Int, Default: "64KiB", Doc: "bytes of a message"},
			{Name: "depth", Kind: bench.Int, Default: "32", Doc: "messages in flight"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "250ms", Quick: "100ms", Doc: "length of a round, without the time of the messages in flight at its end"},
		},
		Tour: bench.Settings{"losses": "0.1,1", "delays": "0"},
		Run:  runFunc(verbsLoss),
	})
}

const percent = "%" // unit of loss

// failedQPs is the unit of the number of queue pairs that failed.
const failedQPs = "failed queue pairs"

func lossClaims() (claims []bench.Statement) {
	for _, series := range []string{"rc-write", "rc-read"} {
		claims = append(claims,
			bench.Statement{
				Sentence: fmt.Sprintf("At 0.1 %% loss in both directions, a stream of %s has at least half of its lossless goodput.", series),
				Compare: bench.Ratio{Of: []string{series}, Over: []string{series + lossless}, Unit: measure.MegabytesPerSec, At: bench.At(0.1, percent),
					Limit: bench.AtLeast(0.5)},
			},
			bench.Statement{
				Sentence: fmt.Sprintf("Up to 5 %% no queue pair of %s fails with the default retry limits, and all data is correct.", series),
				Compare:  bench.Value{Of: []string{series}, Unit: failedQPs, At: bench.Between(0, 5, percent), Limit: bench.AtMost(0)},
				Exact:    true,
			})
	}
	return claims
}

const lossless = "-lossless" // suffix of a series

func verbsLoss(ctx context.Context, r *run) error {
	losses, delays := r.Words("losses"), r.Words("delays")
	r.Plan(len(losses) * len(delays))
	for _, delay := range delays {
		clean, err := verbsbench.OpenPair(ctx, verbsbench.Config{Impair: impairSpec("", delay)})
		if err != nil {
			return err
		}
		defer clean.Close()
		for _, loss := range losses {
			r.Step("%s %% lost, delay %s", loss, delay)
			if err := lossPoint(ctx, r, clean, loss, delay); err != nil {
				return err
			}
		}
	}
	return nil
}

// impairSpec returns netem options for loss in percent and delay, or "" for neither.
func impairSpec(loss, delay string) string {
	var words []string
	if delay != "0" {
		words = append(words, "delay "+delay+" limit 1000000") // prevents losses by a full queue
	}
	if loss != "" {
		words = append(words, "loss "+loss+"% seed 7")
	}
	return strings.Join(words, " ")
}

// parseLoss returns a loss in percent.
func parseLoss(loss string) (float64, error) {
	x, err := strconv.ParseFloat(loss, 64)
	if err != nil || x <= 0 || x >= 100 {
		return 0, fmt.Errorf("invalid loss %q, want a percentage", loss)
	}
	return x, nil
}

// lossPoint measures every operation with loss, with the lossless stream as the baseline.
func lossPoint(ctx context.Context, r *run, clean *verbsbench.Pair, loss, delay string) error {
	x, err := parseLoss(loss)
	if err != nil {
		return err
	}
	lossy, err := verbsbench.OpenPair(ctx, verbsbench.Config{Impair: impairSpec(loss, delay)})
	if err != nil {
		return err
	}
	defer lossy.Close()
	suffix := ""
	if delay != "0" {
		suffix = "-delay-" + delay
	}
	for _, op := range verbsbench.ParseOps(r.Words("series")) {
		failed := 0.0
		err := measureLoss(ctx, r, clean, lossy, op, x, suffix)
		if errors.Is(err, verbsbench.ErrQPFailed) {
			failed = 1
		} else if err != nil {
			return fmt.Errorf("%s at %s %%: %w", op, loss, err)
		}
		r.Emit(bench.Row{Series: string(op) + suffix, X: x, XUnit: percent, Y: failed, YUnit: failedQPs})
	}
	return nil
}

// measureLoss measures one operation at a loss of x percent, with the lossless stream as the
// baseline.
func measureLoss(ctx context.Context, r *run, clean, lossy *verbsbench.Pair, op verbsbench.Op, x float64, suffix string) error {
	var set seriesSet
	for _, side := range []struct {
		series string
		pair   *verbsbench.Pair
	}{{string(op) + lossless + suffix, clean}, {string(op) + suffix, lossy}} {
		s, err := side.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: op, Size: r.Int("size"), Depth: r.Int("depth")})
		if err != nil {
			return err
		}
		defer s.Close(ctx)
		set.addSeries(side.series, s.Rounds(r.Duration("time"), verbsbench.Flow.MBps))
	}
	_, err := r.measurePoint(ctx, &set, bench.Point{X: x, XUnit: percent, YUnit: measure.MegabytesPerSec})
	return err
}

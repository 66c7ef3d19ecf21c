package experiments

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// An evaluation compares ratios with limits and makes the verdict. The claim holds if all
// checks hold and there is at least one.
type evaluation struct {
	checks  []bench.Check
	remarks []string // comments that do not affect the verdict
}

// atMost checks that ratio is at most limit.
func (j *evaluation) atMost(desc string, ratio, limit float64) {
	j.addCheck(ratio, limit, ratio <= limit, "%s %s (at most %.2f)", desc, formatFigure(ratio, limit, 2, ratio <= limit), limit)
}

// atLeast checks that ratio is at least limit.
func (j *evaluation) atLeast(desc string, ratio, limit float64) {
	j.addCheck(ratio, limit, ratio >= limit, "%s %s (at least %.2f)", desc, formatFigure(ratio, limit, 2, ratio >= limit), limit)
}

// formatFigure formats a figure with the given number of decimals. A figure that misses its
// limit gets as many decimals as needed to differ from the limit, so that no text says that
// 1.05 exceeds 1.05.
func formatFigure(figure, limit float64, decimals int, holds bool) string {
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', decimals, 64) }
	for !holds && figure != limit && text(figure) == text(limit) {
		decimals++
	}
	return text(figure)
}

// addNote adds a check without a limit.
func (j *evaluation) addNote(holds bool, format string, args ...any) {
	j.addCheck(0, 0, holds, format, args...)
}

// addExact adds a check without a limit that also decides in quick runs.
func (j *evaluation) addExact(holds bool, format string, args ...any) {
	j.checks = append(j.checks, bench.Check{Description: fmt.Sprintf(format, args...), Holds: holds, Exact: true})
}

// addCheck adds the check of a figure against a limit, with its description.
func (j *evaluation) addCheck(figure, limit float64, holds bool, format string, args ...any) {
	j.checks = append(j.checks, bench.Check{Description: fmt.Sprintf(format, args...), Figure: figure, Limit: limit, Holds: holds})
}

// addRemark adds a comment for the reader that does not affect the verdict.
func (j *evaluation) addRemark(format string, args ...any) {
	j.remarks = append(j.remarks, fmt.Sprintf(format, args...))
}

// makeVerdict returns the verdict. Its reason marks the checks that do not hold with "NOT".
func (j *evaluation) makeVerdict() bench.Verdict {
	v := bench.Verdict{Holds: len(j.checks) > 0, Checks: j.checks, Remarks: j.remarks}
	why := make([]string, len(j.checks))
	for i, c := range j.checks {
		why[i] = c.Description
		if !c.Holds {
			v.Holds, why[i] = false, "NOT "+c.Description
		}
	}
	v.Reason = strings.Join(why, ", ")
	if len(why) == 0 {
		v.Reason = "no figure of the claim was measured"
	}
	v.Reason = strings.Join(append([]string{v.Reason}, j.remarks...), "; ")
	return v
}

// A run is a running experiment and the evaluation of its claim.
type run struct {
	*bench.Run
	evaluation
}

// evaluated returns the Run function of an experiment whose verdict is that of its evaluation.
func evaluated(do func(context.Context, *run) error) func(context.Context, *bench.Run) (bench.Verdict, error) {
	return func(ctx context.Context, b *bench.Run) (bench.Verdict, error) {
		r := &run{Run: b}
		if err := do(ctx, r); err != nil {
			return bench.Verdict{}, err
		}
		return r.makeVerdict(), nil
	}
}

// measurePoint runs the series alternately, for the number of rounds of the parameter "rounds",
// emits their samples, of which the first is the baseline of the others, and returns the ratios
// of the others to it.
func (r *run) measurePoint(ctx context.Context, set *seriesSet, at bench.Point) (samples []bench.Sample, ratios []float64, err error) {
	if samples, err = set.runAlternating(ctx, r.Int("rounds")); err != nil {
		return nil, nil, err
	}
	return samples, r.EmitAgainst(at, samples[0], samples[1:]...), nil
}

// measureSizes calls latency with each size of the parameter "latency", and bandwidth with each
// of the parameter "bandwidth". It plans one step for each size.
func (r *run) measureSizes(ctx context.Context, latency, bandwidth func(ctx context.Context, size int) error) error {
	r.Plan(len(r.Ints("latency")) + len(r.Ints("bandwidth")))
	for _, size := range r.Ints("latency") {
		r.Step("latency of %d B", size)
		if err := latency(ctx, size); err != nil {
			return err
		}
	}
	for _, size := range r.Ints("bandwidth") {
		r.Step("bandwidth of %d B", size)
		if err := bandwidth(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// atSize returns the point of a number of bytes.
func atSize(size int, unit string) bench.Point {
	return bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: unit}
}

// An extreme is the largest or smallest of several figures, and its location.
type extreme struct {
	value float64
	where string
	seen  bool // there is at least one figure
}

// keepMax keeps the figure if it is the largest so far.
func (e *extreme) keepMax(value float64, where string, args ...any) {
	if !e.seen || value > e.value {
		*e = extreme{value, fmt.Sprintf(where, args...), true}
	}
}

// keepMin keeps the figure if it is the smallest so far.
func (e *extreme) keepMin(value float64, where string, args ...any) {
	if !e.seen || value < e.value {
		*e = extreme{value, fmt.Sprintf(where, args...), true}
	}
}

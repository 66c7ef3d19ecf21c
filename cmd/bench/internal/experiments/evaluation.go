package experiments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
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

package experiments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// evaluation compares ratios with targets and makes the verdict of them: it holds
// if all do, and at least one was measured.
type evaluation struct {
	checks  []bench.Check
	remarks []string // that decide nothing
}

// atMost wants ratio to be no larger than limit.
func (j *evaluation) atMost(what string, ratio, limit float64) {
	j.addCheck(ratio, limit, ratio <= limit, "%s %s (at most %.2f)", what, formatFigure(ratio, limit, 2, ratio <= limit), limit)
}

// atLeast wants ratio to be no smaller than limit.
func (j *evaluation) atLeast(what string, ratio, limit float64) {
	j.addCheck(ratio, limit, ratio >= limit, "%s %s (at least %.2f)", what, formatFigure(ratio, limit, 2, ratio >= limit), limit)
}

// formatFigure is a figure for a reader, with so many decimals. One that does not hold has as
// many as tell it from its limit: 1.05 is not more than 1.05.
func formatFigure(figure, limit float64, decimals int, holds bool) string {
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', decimals, 64) }
	for !holds && figure != limit && text(figure) == text(limit) {
		decimals++
	}
	return text(figure)
}

// addNote adds a finding that no limit decides.
func (j *evaluation) addNote(holds bool, format string, args ...any) {
	j.addCheck(0, 0, holds, format, args...)
}

// addCheck adds the comparison of a figure with its limit, in words.
func (j *evaluation) addCheck(figure, limit float64, holds bool, format string, args ...any) {
	j.checks = append(j.checks, bench.Check{Description: fmt.Sprintf(format, args...), Figure: figure, Limit: limit, Holds: holds})
}

// addRemark adds what the reader should know, and decides nothing.
func (j *evaluation) addRemark(format string, args ...any) {
	j.remarks = append(j.remarks, fmt.Sprintf(format, args...))
}

// makeVerdict marks the checks that do not hold.
func (j *evaluation) makeVerdict() bench.Verdict {
	v := bench.Verdict{Holds: true, Checks: j.checks}
	why := make([]string, len(j.checks))
	for i, c := range j.checks {
		why[i] = c.Description
		if !c.Holds {
			v.Holds, why[i] = false, "NOT "+c.Description
		}
	}
	v.Reason = strings.Join(why, ", ")
	if len(why) == 0 {
		v = bench.Verdict{Reason: "nothing that the claim is about was measured"}
	}
	v.Reason = strings.Join(append([]string{v.Reason}, j.remarks...), "; ")
	return v
}

// An extreme is the largest or smallest of some figures, and where it was.
type extreme struct {
	value float64
	where string
	seen  bool // there was any
}

// keepMax takes note of a figure if it is the largest.
func (e *extreme) keepMax(value float64, where string, args ...any) {
	if !e.seen || value > e.value {
		*e = extreme{value, fmt.Sprintf(where, args...), true}
	}
}

// keepMin takes note of a figure if it is the smallest.
func (e *extreme) keepMin(value float64, where string, args ...any) {
	if !e.seen || value < e.value {
		*e = extreme{value, fmt.Sprintf(where, args...), true}
	}
}

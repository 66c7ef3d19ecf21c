package experiments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// judge compares ratios with targets and makes the verdict of them: it holds
// if all do, and at least one was measured.
type judge struct {
	checks  []bench.Check
	remarks []string // that decide nothing
}

// atMost wants ratio to be no larger than limit.
func (j *judge) atMost(what string, ratio, limit float64) {
	j.check(ratio, limit, ratio <= limit, "%s %s (at most %.2f)", what, apart(ratio, limit, 2, ratio <= limit), limit)
}

// atLeast wants ratio to be no smaller than limit.
func (j *judge) atLeast(what string, ratio, limit float64) {
	j.check(ratio, limit, ratio >= limit, "%s %s (at least %.2f)", what, apart(ratio, limit, 2, ratio >= limit), limit)
}

// apart is a figure for a reader, with so many decimals. One that does not hold has as
// many as tell it from its limit: 1.05 is not more than 1.05.
func apart(figure, limit float64, decimals int, holds bool) string {
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', decimals, 64) }
	for !holds && figure != limit && text(figure) == text(limit) {
		decimals++
	}
	return text(figure)
}

// note adds a finding that no limit decides.
func (j *judge) note(holds bool, format string, args ...any) { j.check(0, 0, holds, format, args...) }

// check adds the comparison of a figure with its limit, in words.
func (j *judge) check(figure, limit float64, holds bool, format string, args ...any) {
	j.checks = append(j.checks, bench.Check{What: fmt.Sprintf(format, args...), Figure: figure, Limit: limit, Holds: holds})
}

// remark adds what the reader should know, and decides nothing.
func (j *judge) remark(format string, args ...any) {
	j.remarks = append(j.remarks, fmt.Sprintf(format, args...))
}

// verdict marks the checks that do not hold.
func (j *judge) verdict() bench.Verdict {
	v := bench.Verdict{Holds: true, Checks: j.checks}
	why := make([]string, len(j.checks))
	for i, c := range j.checks {
		why[i] = c.What
		if !c.Holds {
			v.Holds, why[i] = false, "NOT "+c.What
		}
	}
	v.Why = strings.Join(why, ", ")
	if len(why) == 0 {
		v = bench.Verdict{Why: "nothing that the claim is about was measured"}
	}
	v.Why = strings.Join(append([]string{v.Why}, j.remarks...), "; ")
	return v
}

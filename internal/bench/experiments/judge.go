package experiments

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/bench"
)

// judge compares ratios with targets and makes the verdict of them: it holds
// if all do, and at least one was measured.
type judge struct {
	missed  int
	why     []string
	remarks []string // that decide nothing
}

// atMost wants ratio to be no larger than limit.
func (j *judge) atMost(what string, ratio, limit float64) {
	j.note(ratio <= limit, "%s %.2f (at most %.2f)", what, ratio, limit)
}

// atLeast wants ratio to be no smaller than limit.
func (j *judge) atLeast(what string, ratio, limit float64) {
	j.note(ratio >= limit, "%s %.2f (at least %.2f)", what, ratio, limit)
}

// note adds a finding, and marks one that does not hold.
func (j *judge) note(holds bool, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if !holds {
		why = "NOT " + why
		j.missed++
	}
	j.why = append(j.why, why)
}

// remark adds what the reader should know, and decides nothing.
func (j *judge) remark(format string, args ...any) {
	j.remarks = append(j.remarks, fmt.Sprintf(format, args...))
}

func (j *judge) verdict() bench.Verdict {
	v := bench.Verdict{Holds: j.missed == 0, Why: strings.Join(j.why, ", ")}
	if len(j.why) == 0 {
		v = bench.Verdict{Why: "nothing that the claim is about was measured"}
	}
	v.Why = strings.Join(append([]string{v.Why}, j.remarks...), "; ")
	return v
}

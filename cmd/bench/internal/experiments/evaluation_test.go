package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// TestVerdictDigits checks that a figure which misses its limit by little is printed with
// enough digits.
func TestVerdictDigits(t *testing.T) {
	for want, say := range map[string]func(j *evaluation){
		"x 1.05 (at most 1.05)":       func(j *evaluation) { j.atMost("x", 1.05, 1.05) },
		"x 1.05 (at least 1.05)":      func(j *evaluation) { j.atLeast("x", 1.0501, 1.05) },
		"NOT x 1.0502 (at most 1.05)": func(j *evaluation) { j.atMost("x", 1.05019, 1.05) },
		"NOT x 1.051 (at most 1.05)":  func(j *evaluation) { j.atMost("x", 1.0509, 1.05) },
		"NOT x 0.998 (at least 1.00)": func(j *evaluation) { j.atLeast("x", 0.9978, 1) },
		"NOT x 1.20 (at most 1.05)":   func(j *evaluation) { j.atMost("x", 1.2, 1.05) },
	} {
		var j evaluation
		say(&j)
		require.Equal(t, want, j.makeVerdict().Reason)
	}
	require.Equal(t, "1.00", formatFigure(1, 1, 2, false), "it had to be more")
}

// requireVerdict compares verdicts without their checks, whose texts are in the reason.
func requireVerdict(t *testing.T, want, v bench.Verdict) {
	t.Helper()
	v.Checks, v.Remarks = nil, nil
	require.Equal(t, want, v)
}

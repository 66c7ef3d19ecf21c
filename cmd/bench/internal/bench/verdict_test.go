package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIsInconclusive checks which quick runs decide the claim.
func TestIsInconclusive(t *testing.T) {
	for name, c := range map[string]struct {
		checks []Check
		want   bool
	}{
		"holds":             {[]Check{{Figure: 0.5, Limit: 1, Holds: true}, {Holds: true}}, false},
		"holds near":        {[]Check{{Figure: 0.85, Limit: 1, Holds: true}}, true},
		"near and beyond":   {[]Check{{Figure: 1.1, Limit: 1}, {Figure: 1.3, Limit: 1}}, false},
		"near":              {[]Check{{Figure: 0.9, Limit: 1}}, true},
		"exact":             {[]Check{{Figure: 0.9, Limit: 1, Exact: true}}, false},
		"exact, no limit":   {[]Check{{Exact: true}}, false},
		"without a limit":   {[]Check{{Description: "no limit"}}, true},
		"without any check": {nil, true},
	} {
		res := &Result{Quick: true, Verdict: Verdict{Holds: len(c.checks) > 0, Checks: c.checks}}
		for _, check := range c.checks {
			res.Verdict.Holds = res.Verdict.Holds && check.Holds
		}
		require.Equal(t, c.want, res.IsInconclusive(), name)
		res.Err = context.Canceled
		require.False(t, res.IsInconclusive(), name)
		full := &Result{Verdict: res.Verdict}
		require.False(t, full.IsInconclusive(), name)
	}
}

func TestFailedChecks(t *testing.T) {
	v := Verdict{Checks: []Check{{Description: "a", Exact: true}, {Description: "b"}, {Description: "c", Exact: true, Holds: true}}}
	require.Equal(t, []string{"a"}, v.FailedChecks())
}

func TestDecisive(t *testing.T) {
	require.Nil(t, Verdict{}.Decisive())
	v := Verdict{Checks: []Check{{Description: "a", Figure: 1.1, Limit: 1}, {Description: "b", Figure: 2, Limit: 1}, {Description: "c", Figure: 0.1, Limit: 1, Holds: true}}}
	require.Equal(t, "b", v.Decisive().Description)
	require.Equal(t, "c", Verdict{Checks: v.Checks[2:]}.Decisive().Description)
}

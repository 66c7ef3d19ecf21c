package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuickState checks which states quick runs support.
func TestQuickState(t *testing.T) {
	for want, checks := range map[State][]Check{
		Agrees:  {{Figure: 0.5, Limit: 1, Holds: true}, {Holds: true}},
		NeedRun: {{Figure: 0.85, Limit: 1, Holds: true}},
		Differs: {{Figure: 1.1, Limit: 1}, {Figure: 1.3, Limit: 1}},
	} {
		res := &Result{Verdict: Verdict{Holds: true, Checks: checks}}
		for _, c := range checks {
			res.Verdict.Holds = res.Verdict.Holds && c.Holds
		}
		require.Equal(t, want, res.QuickState())
		res.Err = context.Canceled
		require.Equal(t, Failed, res.QuickState())
	}
	for _, checks := range [][]Check{nil, {{Description: "no limit"}}, {{Figure: 0.9, Limit: 1}}} {
		require.Equal(t, NeedRun, (&Result{Verdict: Verdict{Checks: checks}}).QuickState())
	}
	require.Nil(t, Verdict{}.Decisive())
	v := Verdict{Checks: []Check{{Description: "a", Figure: 1.1, Limit: 1}, {Description: "b", Figure: 2, Limit: 1}, {Description: "c", Figure: 0.1, Limit: 1, Holds: true}}}
	require.Equal(t, "b", v.Decisive().Description)
	require.Equal(t, "c", Verdict{Checks: v.Checks[2:]}.Decisive().Description)
}

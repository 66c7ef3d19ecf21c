package pingpong

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// busyCQ returns a completion at each poll.
type busyCQ struct{ verbs.CQ }

func (busyCQ) Poll([]verbs.WC) (int, error) { return 1, nil }

// TestWaitEndsOnFastPath cancels the context of a test that never waits for a completion.
func TestWaitEndsOnFastPath(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := &endpoint{Options: &Options{}, cq: busyCQ{}}
	for calls := 1; ; calls++ {
		if _, err := e.pollCompletions(ctx, make([]verbs.WC, 1)); err != nil {
			require.ErrorIs(t, err, context.Canceled)
			return
		}
		require.LessOrEqual(t, calls, contextCheckPolls)
	}
}

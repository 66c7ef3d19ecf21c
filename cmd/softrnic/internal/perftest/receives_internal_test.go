package perftest

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// A flushedCQ has one failed completion, and calls polled after each Poll.
type flushedCQ struct {
	verbs.CQ
	polled func()
}

func (q *flushedCQ) Poll(wcs []verbs.WC) (int, error) {
	defer q.polled()
	wcs[0] = verbs.WC{Status: verbs.WCWRFlushErr, Opcode: verbs.WCRecv}
	return 1, nil
}

// TestReceiveUntilDisconnected checks that a completion that the peer's disconnecting has flushed does
// not fail a run whose end the peer has announced, and does fail one whose peer is gone.
func TestReceiveUntilDisconnected(t *testing.T) {
	for name, test := range map[string]struct {
		read error // the result of reading the peer's message
		want verbs.WCStatus
	}{
		"announced": {nil, verbs.WCSuccess},
		"gone":      {io.ErrUnexpectedEOF, verbs.WCWRFlushErr},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, alive := watch.Start(t.Context(), time.Minute)
			defer alive.Stop()
			a := &pendingRead{done: make(chan struct{})}
			announce := func() {
				a.err = test.read
				close(a.done)
			}
			run := &bandwidthRun{endpoint: &endpoint{plan: &plan{}, cq: &flushedCQ{polled: announce}}, alive: alive,
				clock: newClock(), wcs: make([]verbs.WC, 1), qps: make([]runQP, 1)}
			err := run.receiveUntilPeerEnds(ctx, a)
			if test.want == verbs.WCSuccess {
				require.NoError(t, err)
				return
			}
			var failed *verbs.CompletionError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, test.want, failed.Status)
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, alive := watch.Start(t.Context(), time.Minute)
		defer alive.Stop()
		run := &bandwidthRun{endpoint: &endpoint{plan: &plan{}, cq: &flushedCQ{polled: cancel}}, alive: alive,
			clock: newClock(), wcs: make([]verbs.WC, 1), qps: make([]runQP, 1)}
		err := run.receiveUntilPeerEnds(ctx, &pendingRead{done: make(chan struct{})})
		require.ErrorIs(t, err, context.Canceled)
	})
}

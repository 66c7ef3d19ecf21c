package rdm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// sleepy is a queue without completions.
type sleepy struct {
	verbs.CQ
	waits chan error // reports whether the sleep had ended before it began
}

func (q sleepy) ReqNotify(bool) error { return nil }
func (q sleepy) Len() int             { return 0 }

func (q sleepy) Wait(ctx context.Context) error {
	q.waits <- ctx.Err()
	<-ctx.Done()
	return ctx.Err()
}

// TestServiceSleepsBehindTheWoken checks that the service sleeps while a woken leader waits for a
// processor, instead of polling and competing for the processor.
func TestServiceSleepsBehindTheWoken(t *testing.T) {
	e := &Endpoint{served: make(chan struct{}), leading: true}
	e.leaderCtx, e.wakeLeader = context.WithCancel(t.Context())
	e.serviceCtx, e.stopService = context.WithCancel(t.Context())
	e.wakeLeader()
	q := sleepy{waits: make(chan error, 1)}
	go e.runService(q, ServeEvent)
	require.NoError(t, <-q.waits)
	e.mu.Lock()
	e.err = ErrClosed
	e.mu.Unlock()
	e.stopService()
	<-e.served
	require.Empty(t, q.waits)
}

package rdm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// sleepy is a queue to which nothing comes.
type sleepy struct {
	verbs.CQ
	waits chan error // whether the sleep was over before it began
}

func (q sleepy) ReqNotify(bool) error { return nil }
func (q sleepy) Len() int             { return 0 }

func (q sleepy) Wait(ctx context.Context) error {
	q.waits <- ctx.Err()
	<-ctx.Done()
	return ctx.Err()
}

// The service sleeps, too, while a leader that has been woken waits for a processor.
// It used to look again and again until then, and kept him from it.
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

package rdm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/progress"
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
	e := &Endpoint{served: make(chan struct{})}
	leader := woken{make(chan struct{}), make(chan struct{})}
	e.progress = progress.New(&e.mu, leader)
	e.serviceCtx, e.stopService = context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		left <- e.progress.Wait(t.Context(), leader)
	}()
	<-leader.blocked
	q := sleepy{waits: make(chan error, 1)}
	go e.runService(q, ServeEvent)
	require.NoError(t, <-q.waits)
	e.mu.Lock()
	e.err = ErrClosed
	e.mu.Unlock()
	e.stopService()
	<-e.served
	require.Empty(t, q.waits)
	close(leader.scheduled)
	require.NoError(t, <-left)
}

// woken is a source whose leader was woken and waits for a processor.
type woken struct{ blocked, scheduled chan struct{} }

func (woken) Prepare(progress.Waitable) {}
func (woken) Poll() bool                { return true }

func (w woken) Block(context.Context) error {
	close(w.blocked)
	<-w.scheduled
	return nil
}

func (w woken) Ready() bool {
	select {
	case <-w.scheduled:
		return true
	default:
		return false
	}
}

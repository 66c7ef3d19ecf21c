package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// maxConcurrent is how many connections Each works on at a time.
const maxConcurrent = 256

// ForEach calls do for 0 to n-1, many at a time, and waits for all. The first
// error ends the context of the others, and is returned.
func ForEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	room := make(chan struct{}, maxConcurrent)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		room <- struct{}{}
		calls.Go(func() {
			if err := do(ctx, i); err != nil {
				cancel(err) // counts if it is the first
			}
			<-room
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

// ForFirstThenEach is Each that calls do for 0 alone before all others, so that what refuses
// every connection, such as parameters that do not fit, is the error of the first.
func ForFirstThenEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	if err := do(ctx, 0); err != nil {
		return err
	}
	return ForEach(ctx, n-1, func(ctx context.Context, i int) error { return do(ctx, i+1) })
}

// PollWait waits for completions as PollWait does, and gives the context's cause if
// that ends.
func PollWait(ctx context.Context, cq verbs.CQ, wcs []verbs.WC) (int, error) {
	n, err := cq.PollWait(ctx, wcs)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return n, err
}

// ExplainIdle says what did not come when nothing happened any more. Other errors
// stay as they are.
func ExplainIdle(err error, format string, args ...any) error {
	if errors.Is(err, watch.ErrIdle) {
		return fmt.Errorf("%w: %s", err, fmt.Sprintf(format, args...))
	}
	return err
}

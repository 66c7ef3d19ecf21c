package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// maxConcurrent is the maximum number of concurrent calls of ForEach.
const maxConcurrent = 256

// ForEach calls do for 0 to n-1, up to maxConcurrent at a time, and waits for all calls. The first
// error cancels the context of the others and is returned.
func ForEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	slots := make(chan struct{}, maxConcurrent)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		slots <- struct{}{}
		calls.Go(func() {
			if err := do(ctx, i); err != nil {
				cancel(err) // counts if it is the first
			}
			<-slots
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

// ForFirstThenEach calls do for 0 and, after it has succeeded, for the others as ForEach does. So
// an error that concerns every connection, such as a mismatch of parameters, is the error of the
// first.
func ForFirstThenEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	if err := do(ctx, 0); err != nil {
		return err
	}
	return ForEach(ctx, n-1, func(ctx context.Context, i int) error { return do(ctx, i+1) })
}

// PollWait calls cq.PollWait and returns the cause of the context's end, if ctx has ended.
func PollWait(ctx context.Context, cq verbs.CQ, wcs []verbs.WC) (int, error) {
	n, err := cq.PollWait(ctx, wcs)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return n, err
}

// ExplainIdle adds the formatted progress to an error that wraps watch.ErrIdle. It returns other
// errors as they are.
func ExplainIdle(err error, format string, args ...any) error {
	if errors.Is(err, watch.ErrIdle) {
		return fmt.Errorf("%w: %s", err, fmt.Sprintf(format, args...))
	}
	return err
}

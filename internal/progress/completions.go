package progress

import (
	"context"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
	"github.com/softrnic/softrnic/verbs"
)

// Completions receives the completions of a CQ for a Source: Block without the lock, Poll
// with it. Its zero value with a CQ is ready for use.
type Completions struct {
	CQ  verbs.CQ
	wcs [64]verbs.WC
	n   int   // received by Block or Receive, not handled yet
	err error // of the CQ, not returned by Poll yet
}

// Block blocks until completions have arrived, which the next Poll handles, ctx has ended,
// or the CQ has failed. It returns the error in the latter two cases, that of the CQ once
// more from the next Poll.
func (c *Completions) Block(ctx context.Context) error {
	n, err := c.CQ.PollWait(ctx, c.wcs[:])
	c.n = n
	switch {
	case n > 0 || err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	c.err = err
	return err
}

// A memoryWaiter is a CQ whose waits can also end when a peer changes memory, since the goroutine that
// waits executes the peer's requests.
type memoryWaiter interface {
	WaitUntil(ctx context.Context, ready func() bool) error
}

// Polls before BlockUntil yields the processor, and before it sleeps between polls, on a device that
// cannot tell when memory changes.
const (
	spinRounds  = 200
	yieldRounds = 5000
	pollSleep   = 50 * time.Microsecond
)

// BlockUntil is Block for programs that poll memory: it also returns when ready reports true. ready
// is called often, and must be fast.
func (c *Completions) BlockUntil(ctx context.Context, ready func() bool) error {
	w, ok := c.CQ.(memoryWaiter)
	for round := 0; !ready() && !c.Receive(); round++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case ok:
			if err := w.WaitUntil(ctx, ready); err != nil && ctx.Err() == nil {
				c.err = err
				return err
			}
		case round < spinRounds:
		case round < yieldRounds:
			runtime.Gosched()
			sched.Yield()
		default:
			time.Sleep(pollSleep)
		}
	}
	return nil
}

// Receive is Block that does not wait. It reports whether the next Poll has completions or
// an error.
func (c *Completions) Receive() bool {
	if !c.Pending() {
		c.n, c.err = c.CQ.Poll(c.wcs[:])
	}
	return c.Pending()
}

// Pending reports whether Block or Receive has left completions or an error for Poll.
func (c *Completions) Pending() bool { return c.n > 0 || c.err != nil }

// Poll passes the pending completions to handle, polls until the CQ is empty, and returns
// the error of the CQ. It reports whether there were completions. handle must not keep the
// slice.
func (c *Completions) Poll(handle func([]verbs.WC)) (handled bool, err error) {
	for {
		c.Receive()
		n, err := c.n, c.err
		c.n, c.err = 0, nil
		if n > 0 {
			handled = true
			handle(c.wcs[:n])
		}
		if err != nil || n < len(c.wcs) {
			return handled, err
		}
	}
}

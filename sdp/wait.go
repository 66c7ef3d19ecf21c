package sdp

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/internal/progress"
)

// waitFor blocks until w is ready, d expires or the connection fails, which makes all conditions
// ready. The first waiter polls the CQ on behalf of all (package progress). c.mu must be held; it
// is released while waiting.
func (c *Conn) waitFor(w progress.Waitable, d *deadline) {
	if c.core.HeldBytes() > 0 { // events may have made space for held-back data
		c.core.ReleaseHeld()
		c.postPending()
	}
	c.recordBufferUse()
	for !w.Ready() && !d.expired() {
		_ = c.progress.Wait(d.ctx, w) // d may have a new context then
	}
}

// waitForTimeout waits for w, at most for timeout and until d expires.
func (c *Conn) waitForTimeout(w progress.Waitable, timeout time.Duration, d *deadline) {
	limit := newDeadline()
	limit.set(time.Now().Add(timeout))
	stop := d.ctx.AfterFunc(limit.ctx.Cancel)
	c.waitFor(w, limit)
	stop()
	limit.set(time.Time{})
}

// source is the CQ of a connection as the Source of the progress engine.
type source Conn

// Prepare implements progress.Source.
func (*source) Prepare(progress.Waitable) {}

// Block implements progress.Source. It receives completions that Poll handles. A failure of the CQ
// fails the connection, which ends all waits.
func (s *source) Block(ctx context.Context) error {
	n, err := s.cq.PollWait(ctx, s.wcs[:])
	s.received = n
	if err == nil || ctx.Err() != nil {
		return nil
	}
	s.pollErr = err
	return err
}

// Poll implements progress.Source.
func (s *source) Poll() (handled bool) {
	c := (*Conn)(s)
	if n, err := c.received, c.pollErr; n > 0 || err != nil {
		c.received, c.pollErr = 0, nil
		c.handleCompletions(c.wcs[:n])
		if err != nil {
			c.core.Fail(err)
		}
		return true
	}
	for !c.tornDown && c.cq.Len() > 0 {
		n, err := c.cq.Poll(c.wcs[:])
		c.handleCompletions(c.wcs[:n])
		if err != nil {
			c.core.Fail(err)
			return true
		}
		handled = true
	}
	return handled
}

// pollCompletions handles available completions without a system call and reports whether there
// were any. It does nothing while another call polls, or after teardown.
func (c *Conn) pollCompletions() bool { return c.progress.Poll() }

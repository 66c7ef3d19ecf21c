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

// source is the CQ of a connection as the Source of the progress engine. The engine's Poll handles
// available completions without a system call and reports whether there were any; it does nothing
// while another call polls, or after teardown.
type source Conn

// Prepare implements progress.Source.
func (*source) Prepare(progress.Waitable) {}

// Block implements progress.Source. A failure of the CQ ends all waits; Poll fails the connection.
func (s *source) Block(ctx context.Context) error { return s.arrived.Block(ctx) }

// Poll implements progress.Source. It does not read the socket if no completion is queued.
func (s *source) Poll() bool {
	c := (*Conn)(s)
	if !c.arrived.Pending() && (c.tornDown || c.cq.Len() == 0) {
		return false
	}
	handled, err := c.arrived.Poll(c.handleCompletions)
	if err != nil && !c.tornDown {
		c.core.Fail(err)
	}
	return handled || err != nil
}

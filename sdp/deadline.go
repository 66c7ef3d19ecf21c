package sdp

import (
	"os"
	"time"

	"github.com/softrnic/softrnic/internal/cancelctx"
)

// A deadline is the deadline of one direction of a connection, guarded by the connection's lock.
type deadline struct {
	ctx   *cancelctx.Context // context of the current waiters
	timer *time.Timer        // cancels ctx at the deadline, or nil
	at    time.Time          // the deadline, or zero
}

func newDeadline() *deadline { return &deadline{ctx: cancelctx.New(os.ErrDeadlineExceeded)} }

// expired reports whether the deadline has passed.
func (d *deadline) expired() bool { return d.ctx.Canceled() }

// set sets the deadline to t. The zero time means no deadline.
func (d *deadline) set(t time.Time) {
	if d.timer != nil && !d.timer.Stop() {
		d.ctx.Cancel() // the timer is about to fire
	}
	d.timer, d.at = nil, t
	wait := time.Until(t)
	if !t.IsZero() && wait <= 0 {
		d.ctx.Cancel()
		return
	}
	if d.expired() {
		d.ctx = cancelctx.New(os.ErrDeadlineExceeded)
	}
	if !t.IsZero() {
		d.timer = time.AfterFunc(wait, d.ctx.Cancel)
	}
}

// wakeAndKeep wakes the waiters, so that they check their conditions again, and keeps the
// deadline.
func (d *deadline) wakeAndKeep() {
	if !d.expired() {
		d.ctx.Cancel()
		d.set(d.at)
	}
}

// cancel wakes the waiters and makes the deadline expire.
func (d *deadline) cancel() { d.ctx.Cancel() }

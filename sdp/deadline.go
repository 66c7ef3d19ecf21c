package sdp

import (
	"os"
	"time"

	"github.com/softrnic/softrnic/internal/cancelctx"
)

// deadline is that of one direction of a connection, whose lock guards it.
type deadline struct {
	moment *cancelctx.Context // who waits now waits for this one
	timer  *time.Timer        // which ends it, or nil
	at     time.Time          // when that is, or zero
}

func newDeadline() *deadline { return &deadline{moment: cancelctx.New(os.ErrDeadlineExceeded)} }

// expired reports whether the time has come.
func (d *deadline) expired() bool { return d.moment.Canceled() }

// set makes t the time; the zero time is never.
func (d *deadline) set(t time.Time) {
	if d.timer != nil && !d.timer.Stop() {
		d.moment.Cancel() // its timer was about to
	}
	d.timer, d.at = nil, t
	wait := time.Until(t)
	if !t.IsZero() && wait <= 0 {
		d.moment.Cancel()
		return
	}
	if d.expired() {
		d.moment = cancelctx.New(os.ErrDeadlineExceeded)
	}
	if !t.IsZero() {
		d.timer = time.AfterFunc(wait, d.moment.Cancel)
	}
}

// wakeAndKeep has the waiter look again, and keeps the time.
func (d *deadline) wakeAndKeep() {
	if !d.expired() {
		d.moment.Cancel()
		d.set(d.at)
	}
}

// cancel ends the moment, so that who waits looks again.
func (d *deadline) cancel() { d.moment.Cancel() }

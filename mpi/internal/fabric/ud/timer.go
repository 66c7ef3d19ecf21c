package ud

import (
	"time"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

const (
	// batchTime is the maximum delay of coalesced messages while the program computes.
	batchTime = 50 * time.Microsecond

	// pollInterval is the interval of polls while the program does not call, so that
	// other ranks get replies and do not time out.
	pollInterval = 20 * time.Millisecond
)

// armTimer sets the timer to the next deadline.
func (f *Fabric) armTimer(now nack.Time) {
	at := now + nack.Time(pollInterval)
	if d := f.core.Deadline(); d != 0 {
		at = min(at, d)
	}
	if f.unsent > 0 {
		at = min(at, now+nack.Time(batchTime))
	}
	if f.closed || f.armed != 0 && f.armed <= at {
		return
	}
	f.armed = at
	f.timer.Reset(time.Duration(max(0, at-now)))
}

// onTimer polls and handles deadlines. A leader handles the completions itself.
func (f *Fabric) onTimer() {
	f.host.Do(func(*protocol.Core) {
		if f.closed {
			return
		}
		f.armed = 0
		switch {
		case f.host.Leading():
		case f.pollShared != nil:
			f.pollShared()
		default:
			f.pollCompletions()
		}
		f.core.Advance(f.clock())
		f.dispatchAndTransmit()
	})
}

package ud

import (
	"time"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/reliability/nack"
)

const (
	// batchTime is how long messages wait for others, of a program that sends
	// and then computes.
	batchTime = 50 * time.Microsecond

	// pollInterval is how often somebody looks what has come, if the program does not:
	// so that others are answered, and do not take it for lost.
	pollInterval = 20 * time.Millisecond
)

// armTimer makes the timer ring when something is due.
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

// onTimer is the timer's. If somebody is in Block, he handles what comes.
func (f *Fabric) onTimer() {
	f.host.Do(func(*protocol.Core) {
		if f.closed {
			return
		}
		f.armed = 0
		if f.o.PollShared != nil {
			f.o.PollShared()
		}
		for n := len(f.timerWCs); n == len(f.timerWCs) && f.o.PollShared == nil && !f.blocked.Load(); {
			n = f.pollCQ(f.timerWCs[:])
			f.handleCompletions(f.timerWCs[:n])
		}
		f.core.Advance(f.clock())
		f.dispatchAndTransmit()
	})
}

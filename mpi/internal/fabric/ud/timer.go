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

	// pulse is how often somebody looks what has come, if the program does not:
	// so that others are answered, and do not take it for lost.
	pulse = 20 * time.Millisecond
)

// arm makes the timer ring when something is due.
func (f *Fabric) arm(now nack.Time) {
	at := now + nack.Time(pulse)
	if d := f.core.Deadline(); d != 0 {
		at = min(at, d)
	}
	if f.kept > 0 {
		at = min(at, now+nack.Time(batchTime))
	}
	if f.closed || f.armed != 0 && f.armed <= at {
		return
	}
	f.armed = at
	f.timer.Reset(time.Duration(max(0, at-now)))
}

// late is the timer's. If somebody is in Block, he handles what comes.
func (f *Fabric) late() {
	f.host.Do(func(*protocol.Core) {
		if f.closed {
			return
		}
		f.armed = 0
		if f.o.Look != nil {
			f.o.Look()
		}
		for n := len(f.mine); n == len(f.mine) && f.o.Look == nil && !f.blocked.Load(); {
			n = f.poll(f.mine[:])
			f.look(f.mine[:n])
		}
		f.core.Advance(f.now())
		f.settle()
	})
}

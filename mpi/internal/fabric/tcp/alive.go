package tcp

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// The system of a rank acknowledges what is sent to it although its process is stopped.
// So ranks that have something under way to another send it a ping now and then, which
// the goroutine that reads answers, whatever the program does. A rank from which nothing
// comes, and whose system takes nothing more either, is lost after Options.GiveUp.

// checksPerGiveUp is the number of liveness checks of a connection within GiveUp.
const checksPerGiveUp = 20

// livenessLoop looks after all connections, until the fabric is closed.
func (f *Fabric) livenessLoop() {
	tick := time.NewTicker(max(f.o.GiveUp/checksPerGiveUp, time.Millisecond))
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		f.host.Do(func(*protocol.Core) {
			for _, l := range f.links {
				if l != nil && l.conn != nil && !l.failed && !f.closed {
					l.checkAlive(min(now.Sub(last), 2*f.o.GiveUp/checksPerGiveUp))
				}
			}
		})
		last = now
	}
}

// livenessState is the liveness state of the other end of a connection. The engine's lock guards it.
type livenessState struct {
	sent         bool          // something, since the other end has shown that it is there
	pinged       bool          // so has a ping been
	silence      time.Duration // since the first of it, as far as this process has run
	queuedBefore int           // bytes that waited when it was looked at last
}

// markAlive notes a sign of life.
func (l *link) markAlive() { l.liveness = livenessState{queuedBefore: l.liveness.queuedBefore} }

// checkAlive is called when so much time has passed: time in which this process did not
// run does not count.
func (l *link) checkAlive(passed time.Duration) {
	waiting := len(l.queue)
	if waiting < l.liveness.queuedBefore {
		l.markAlive() // its system takes what is sent
	}
	l.liveness.queuedBefore = waiting
	if !l.liveness.sent {
		return
	}
	if l.liveness.silence += passed; l.liveness.silence >= l.f.o.GiveUp {
		l.f.failLink(l, fmt.Errorf("no answer for %v", l.f.o.GiveUp))
		return
	}
	if !l.liveness.pinged {
		l.liveness.pinged = true
		l.sendFrame(&frame{Kind: pingFrame}, nil)
	}
}

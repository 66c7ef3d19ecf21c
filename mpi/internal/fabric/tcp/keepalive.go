package tcp

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// TCP acknowledges data although the receiving process is stopped. So a rank with data in flight sends pings, which the
// peer answers while its program computes. A rank that sends nothing, and whose socket accepts
// nothing either, fails after Options.GiveUp.

// checksPerGiveUp is the number of liveness checks of a connection within GiveUp.
const checksPerGiveUp = 20

// livenessLoop checks all connections until the fabric is closed.
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
				if l != nil && l.socket != nil && !l.failed && !f.closed.Load() {
					l.checkAlive(min(now.Sub(last), 2*f.o.GiveUp/checksPerGiveUp))
				}
			}
		})
		last = now
	}
}

// A livenessState is the liveness state of the other end of a connection. The engine's
// lock guards it.
type livenessState struct {
	sent         bool          // data was sent since the last sign of liveness
	pinged       bool          // a ping was sent since then
	silence      time.Duration // running time of this process since then
	queuedBefore int           // length of the send queue at the last check
}

// markAlive records a sign of liveness.
func (l *link) markAlive() { l.liveness = livenessState{queuedBefore: l.liveness.queuedBefore} }

// checkAlive checks liveness after the time passed, which does not include time in
// which this process did not run.
func (l *link) checkAlive(passed time.Duration) {
	waiting := len(l.queue.pendingBytes())
	if waiting < l.liveness.queuedBefore {
		l.markAlive() // the peer's system accepts data
	}
	l.liveness.queuedBefore = waiting
	if !l.liveness.sent {
		return
	}
	if l.liveness.silence += passed; l.liveness.silence >= l.f.o.GiveUp {
		l.f.failLink(l, fmt.Errorf("no reply for %v", l.f.o.GiveUp))
		return
	}
	if !l.liveness.pinged {
		l.liveness.pinged = true
		l.sendFrame(&frame{Kind: pingFrame}, nil)
	}
}

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

// watches is the number of liveness checks of a connection within GiveUp.
const watches = 20

// watch looks after all connections, until the fabric is closed.
func (f *Fabric) watch() {
	tick := time.NewTicker(max(f.o.GiveUp/watches, time.Millisecond))
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
				if l != nil && l.conn != nil && !l.down && !f.closed {
					l.checkAlive(min(now.Sub(last), 2*f.o.GiveUp/watches))
				}
			}
		})
		last = now
	}
}

// alive is the liveness state of the other end of a connection. The engine's lock guards it.
type alive struct {
	sent    bool          // something, since the other end has shown that it is there
	pinged  bool          // so has a ping been
	silence time.Duration // since the first of it, as far as this process has run
	taken   int           // bytes that waited when it was looked at last
}

// heard notes a sign of life.
func (l *link) heard() { l.alive = alive{taken: l.alive.taken} }

// checkAlive is called when so much time has passed: time in which this process did not
// run does not count.
func (l *link) checkAlive(passed time.Duration) {
	waiting := len(l.queue)
	if waiting < l.alive.taken {
		l.heard() // its system takes what is sent
	}
	l.alive.taken = waiting
	if !l.alive.sent {
		return
	}
	if l.alive.silence += passed; l.alive.silence >= l.f.o.GiveUp {
		l.f.lose(l, fmt.Errorf("no answer for %v", l.f.o.GiveUp))
		return
	}
	if !l.alive.pinged {
		l.alive.pinged = true
		l.sendFrame(&frame{Kind: pingFrame}, nil)
	}
}

package broker

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// maxWatchDelay bounds the time between two attempts to reach a broker that ends connections at
// once, such as a process of another user that holds the name.
const maxWatchDelay = time.Second

// A watch is an attempt of a process to notice the ends of others.
type watch struct {
	l        *net.UnixListener // of the broker's name, if this process is the broker
	c        *net.UnixConn     // to the broker, or nil
	orphaned bool              // the broker has ended, and its children hold the name
}

// startWatch makes this process the broker, or else connects it to the broker. It does not block. It
// is called before the process takes a slot, so that the broker knows of each process with a slot,
// whenever that is killed.
func (g *group) startWatch() (w watch) {
	var err error
	if w.l, err = g.listenName(brokerName); err == nil {
		g.serveName(w.l, g.sweepAfter)
		return w
	}
	w.l = nil
	c, err := g.dialName(brokerName)
	if err != nil || !g.trackConn(c) {
		return w
	}
	pid, err := checkPeer(c)
	if w.orphaned = err == nil && hasEnded(pid); err == nil && !w.orphaned {
		if _, err = c.Write([]byte{requestWatch, protocolVersion}); err == nil {
			w.c = c
			return w
		}
	}
	g.untrackConn(c)
	return w
}

// watchAddress serves as the broker, or watches the broker until it ends, in turn, until the group is
// closed.
func (g *group) watchAddress(w watch) {
	for delay := time.Millisecond; !g.isClosed(); delay = min(2*delay, maxWatchDelay) {
		start := time.Now()
		switch {
		case w.l != nil:
			g.sweepRepeatedly() // the last broker may have missed processes, and has ended itself
			<-g.done
			w.l.Close()
			return
		case w.c != nil:
			_, _ = w.c.Read(make([]byte, 1)) // until the broker ends
			g.untrackConn(w.c)
		case w.orphaned:
			g.sweepSlots() // again with the next attempt
		}
		if time.Since(start) > maxWatchDelay {
			delay = time.Millisecond
		} else {
			g.pause(delay)
		}
		w = g.startWatch()
	}
	w.close(g)
}

// close releases an attempt of a closed group.
func (w watch) close(g *group) {
	if w.l != nil {
		w.l.Close()
	}
	if w.c != nil {
		g.untrackConn(w.c)
	}
}

// sweepDelays are the times between the sweeps of a new broker: it does not know which processes end.
var sweepDelays = []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second}

// sweepRepeatedly sweeps until all slots of processes that are ending are free.
func (g *group) sweepRepeatedly() {
	for _, delay := range sweepDelays {
		if !g.pause(delay) {
			return
		}
		g.sweepSlots()
	}
}

// maxEnding bounds the time that the end of a process takes. On a busy machine it may take a second.
const maxEnding = time.Minute

// sweepAfter sweeps after the connection of a process has ended, until the process has no slot. The
// system closes the descriptors of an ending process one after the other, those of its slots perhaps
// after its connection.
func (g *group) sweepAfter(pid int) {
	start := time.Now()
	for delay := time.Duration(0); g.pause(delay); delay = min(2*delay+time.Millisecond, maxWatchDelay) {
		if owners := g.sweepSlots(); !owners[pid] && !owners[unknownOwner] || time.Since(start) > maxEnding {
			return
		}
	}
}

// sweepSlots frees the slots of processes that have ended, and returns the processes of the others.
func (g *group) sweepSlots() (owners map[int]bool) {
	owners = make(map[int]bool)
	_ = g.update(func(t *table) error { // the next sweep, or the next owner of a slot, does the rest
		for slot := range Slots {
			if !t.isUsed(slot) {
				continue
			}
			pid, alive := g.slotOwner(slot)
			if alive {
				owners[pid] = true
			} else {
				g.releaseSlot(t, slot)
			}
		}
		return nil
	})
	return owners
}

// unknownOwner stands for a process that cannot be asked.
const unknownOwner = -1

// slotOwner returns the process that has a slot, 0 if it is in another PID namespace. alive is false if
// there is none: it may have ended and left the slot's name to children of fork.
func (g *group) slotOwner(slot int) (pid int, alive bool) {
	c, err := g.dialName(slot)
	if err != nil {
		return unknownOwner, !errors.Is(err, syscall.ECONNREFUSED)
	}
	defer c.Close()
	pid, err = checkPeer(c)
	return pid, err != nil || !hasEnded(pid)
}

// isAlive reports whether a process has a slot.
func (g *group) isAlive(slot int) bool {
	_, alive := g.slotOwner(slot)
	return alive
}

// pause waits for some time, and reports whether the group is still open.
func (g *group) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.done:
		return false
	}
}

func (g *group) isClosed() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// trackConn registers a connection to be closed with the group. It closes the connection and
// returns false if the group is closed.
func (g *group) trackConn(c *net.UnixConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isClosed() {
		c.Close()
		return false
	}
	g.conns[c] = struct{}{}
	return true
}

// untrackConn closes a connection.
func (g *group) untrackConn(c *net.UnixConn) {
	g.mu.Lock()
	delete(g.conns, c)
	g.mu.Unlock()
	c.Close()
}

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

// watchAddress makes this process the broker, or watches the broker until it ends, in turn,
// until the group is closed.
func (g *group) watchAddress() {
	for delay := time.Millisecond; !g.isClosed(); delay = min(2*delay, maxWatchDelay) {
		l, err := g.listenName(brokerName)
		if err == nil {
			g.serveName(l, g.sweepRepeatedly)
			g.sweepRepeatedly() // the last broker may have missed processes, and has ended itself
			<-g.done
			l.Close()
			return
		}
		start := time.Now()
		g.watchBroker()
		if time.Since(start) > maxWatchDelay {
			delay = time.Millisecond
			continue
		}
		g.pause(delay)
	}
}

// watchBroker returns when the connection to the broker has ended.
func (g *group) watchBroker() {
	c, err := g.dialName(brokerName)
	if err != nil || !g.trackConn(c) {
		return
	}
	defer g.untrackConn(c)
	if pid, err := checkPeer(c); err != nil || hasEnded(pid) { // children hold its name
		g.sweepSlots() // again with the next attempt
		return
	}
	if _, err := c.Write([]byte{requestWatch, protocolVersion}); err == nil {
		_, _ = c.Read(make([]byte, 1)) // until the broker ends
	}
}

// sweepDelays are the times between sweeps after the end of a process: the system closes its
// descriptors one after the other, those of its slots perhaps after its connection.
var sweepDelays = []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second}

// sweepRepeatedly sweeps until all slots of a process that is ending are free.
func (g *group) sweepRepeatedly() {
	for _, delay := range sweepDelays {
		if !g.pause(delay) {
			return
		}
		g.sweepSlots()
	}
}

// sweepSlots frees the slots of processes that have ended.
func (g *group) sweepSlots() {
	_ = g.update(func(t *table) error { // the next sweep, or the next owner of a slot, does the rest
		for slot := range Slots {
			if t.isUsed(slot) && !g.isAlive(slot) {
				g.releaseSlot(t, slot)
			}
		}
		return nil
	})
}

// isAlive reports whether a process has a slot. It may have ended and left the slot's name to
// children of fork.
func (g *group) isAlive(slot int) bool {
	c, err := g.dialName(slot)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED)
	}
	defer c.Close()
	pid, err := checkPeer(c)
	return err != nil || !hasEnded(pid)
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

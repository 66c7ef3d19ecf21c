package sdp

import (
	"slices"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// handleInterrupt serves a connection that has an event and no call that would: the interrupt
// handler of the design (section 5.2). It is the adapter's own goroutine that calls, which
// must not wait, nor do what takes long: it leaves that to watch.
func (s *Stack) handleInterrupt(cq verbs.CQ) bool {
	if !s.mu.TryLock() {
		return false
	}
	c := s.conns[cq]
	s.mu.Unlock()
	if c == nil {
		return true
	}
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	if c.closed { // it may be the end, which wakes others
		return false
	}
	c.inHandler = true
	c.handleEvent()
	c.inHandler = false
	return !c.resizePending()
}

// serveEvents serves connections whose events interrupt has left to it, and those of events that
// came while somebody else served the adapter.
func (s *Stack) serveEvents() {
	defer s.goroutines.Done()
	for {
		cq, err := s.channel.Wait(s.ctx)
		if cq == nil {
			if err != nil {
				return
			}
			continue
		}
		s.mu.Lock()
		c := s.conns[cq]
		s.mu.Unlock()
		if c != nil {
			c.mu.Lock()
			c.handleEvent()
			c.mu.Unlock()
		}
	}
}

// idlePollInterval is how long after its last call a connection is looked after by
// events. In between, who calls again soon does its own work, and no event
// wakes anybody for it.
const idlePollInterval = 5 * time.Millisecond

// runIdlePoller hands connections over to their events when no call has been there for a while.
func (s *Stack) runIdlePoller() {
	defer s.goroutines.Done()
	timer := time.NewTimer(idlePollInterval)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.idleWake:
		}
		for busy := true; busy; {
			timer.Reset(idlePollInterval)
			select {
			case <-s.ctx.Done():
				return
			case <-timer.C:
			}
			busy = s.pollIdleConns()
		}
	}
}

// pollIdleConns looks at the connections once, and reports whether any remain.
func (s *Stack) pollIdleConns() bool {
	s.mu.Lock()
	list := s.idleConns
	s.idleConns = nil
	s.mu.Unlock()
	list = slices.DeleteFunc(list, (*Conn).handOverToEvents)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idleConns = append(s.idleConns, list...)
	return len(s.idleConns) > 0
}

// addIdle puts a connection on the patrol's way.
func (s *Stack) addIdle(c *Conn) {
	s.mu.Lock()
	s.idleConns = append(s.idleConns, c)
	s.mu.Unlock()
	select {
	case s.idleWake <- struct{}{}:
	default:
	}
}

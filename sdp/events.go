package sdp

import (
	"slices"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// handleInterrupt serves a connection outside of calls, as the interrupt handler of section 5.2 of
// the paper of package flow does. The adapter's goroutine calls it, so it must not block or do slow
// work; it returns false to leave the event to serveEvents.
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
	if c.closed { // teardown may follow, which wakes other goroutines
		return false
	}
	c.inHandler = true
	c.handleEvent()
	c.inHandler = false
	return !c.resizePending()
}

// serveEvents serves the connections that handleInterrupt has left, and events that arrived while
// another goroutine served the adapter.
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

// idlePollInterval is the time after its last call, 5 ms, at which a connection is handed over to
// events. A program that calls again earlier handles its completions itself, and no event wakes
// another goroutine.
const idlePollInterval = 5 * time.Millisecond

// runIdlePoller hands connections without recent calls over to events.
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

// pollIdleConns checks the listed connections once and reports whether any remain.
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

// addIdle adds a connection to the idle poller's list.
func (s *Stack) addIdle(c *Conn) {
	s.mu.Lock()
	s.idleConns = append(s.idleConns, c)
	s.mu.Unlock()
	select {
	case s.idleWake <- struct{}{}:
	default:
	}
}

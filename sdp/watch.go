package sdp

import (
	"slices"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// interrupt serves a connection that has an event and no call that would: the interrupt
// handler of the design (section 5.2). It is the adapter's own goroutine that calls, which
// must not wait, nor do what takes long: it leaves that to watch.
func (s *Stack) interrupt(cq verbs.CQ) bool {
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
	c.hasty = true
	c.event()
	c.hasty = false
	return !c.toResize()
}

// watch serves connections whose events interrupt has left to it, and those of events that
// came while somebody else served the adapter.
func (s *Stack) watch() {
	defer s.work.Done()
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
			c.event()
			c.mu.Unlock()
		}
	}
}

// patrolEvery is how long after its last call a connection is looked after by
// events. In between, who calls again soon does its own work, and no event
// wakes anybody for it.
const patrolEvery = 5 * time.Millisecond

// patrol hands connections over to their events when no call has been there for a while.
func (s *Stack) patrol() {
	defer s.work.Done()
	timer := time.NewTimer(patrolEvery)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.kick:
		}
		for busy := true; busy; {
			timer.Reset(patrolEvery)
			select {
			case <-s.ctx.Done():
				return
			case <-timer.C:
			}
			busy = s.round()
		}
	}
}

// round looks at the connections once, and reports whether any remain.
func (s *Stack) round() bool {
	s.mu.Lock()
	list := s.recent
	s.recent = nil
	s.mu.Unlock()
	list = slices.DeleteFunc(list, (*Conn).handOver)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, list...)
	return len(s.recent) > 0
}

// list puts a connection on the patrol's way.
func (s *Stack) list(c *Conn) {
	s.mu.Lock()
	s.recent = append(s.recent, c)
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

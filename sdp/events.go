package sdp

import (
	"slices"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// lockCall begins an API call in one direction, behind those before it. unlockCall ends it.
func (c *Conn) lockCall(direction *sync.Mutex) {
	direction.Lock()
	c.mu.Lock()
	c.enterCall()
}

func (c *Conn) unlockCall(direction *sync.Mutex) {
	defer direction.Unlock()
	defer c.mu.Unlock()
	c.exitCall()
}

// enterCall begins an API call, which exitCall ends. The call serves the connection, so it
// disarms the CQ to prevent an event handler from contending for the lock.
func (c *Conn) enterCall() {
	if c.armed {
		c.armed = false
		c.cq.Disarm()
	}
}

// exitCall ends an API call. If completions must be handled before the next call, it arms the CQ;
// otherwise it passes the connection to the idle poller.
func (c *Conn) exitCall() {
	c.recordBufferUse()
	c.calls++
	switch {
	case c.tornDown || c.progress.Leading():
	case c.needsPromptService():
		c.armCQ()
		c.teardownIfDone()
	case !c.armed && !c.onIdleList:
		c.onIdleList = true
		c.stack.addIdle(c)
	}
}

// needsPromptService reports whether the next completion must be handled without a call. Data
// held back with RDMA flow control waits for a call.
func (c *Conn) needsPromptService() bool {
	return c.closed || c.core.Closing() || c.flowControl != flow.RDMA && c.core.HeldBytes() > 0
}

// armCQ requests an event for the next completion, and handles those already there.
func (c *Conn) armCQ() {
	if c.armed {
		return
	}
	c.armed = true
	if err := c.cq.ReqNotify(false); err != nil {
		c.core.Fail(err)
		return
	}
	c.progress.Poll()
}

// handleEvent handles the CQ event: available completions. It flushes held-back data without
// coalescing, because no call has come to add more (section 5.2 of the paper of package flow).
// c.mu must be held.
func (c *Conn) handleEvent() {
	c.armed = false
	if c.tornDown {
		return
	}
	c.resizeBuffers() // deferred by handleInterrupt
	if c.progress.Leading() {
		return // the polling call arms the CQ when it exits
	}
	if c.needsPromptService() {
		c.armCQ()
	}
	c.runOutsideCall(func() { c.progress.Poll() })
	if c.needsPromptService() && c.core.HeldBytes() > 0 {
		c.core.Flush()
		c.postPending()
	}
	c.teardownIfDone()
	if !c.tornDown && !c.armed && !c.onIdleList {
		c.onIdleList = true
		c.stack.addIdle(c)
	}
}

// runOutsideCall calls f, without posting data in the RDMA mode.
func (c *Conn) runOutsideCall(f func()) {
	c.core.HoldData(c.flowControl == flow.RDMA && !c.closed && !c.core.Closing())
	f()
	c.core.HoldData(false)
}

// handOverToEvents arms the CQ if no call has come since the last round of the idle poller. It
// reports whether the idle poller can drop the connection.
func (c *Conn) handOverToEvents() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tornDown || c.armed || c.progress.Leading() { // a polling call lists the connection again when it exits
		c.onIdleList = false
		return true
	}
	if c.calls != c.callsSeen {
		c.callsSeen = c.calls
		return false
	}
	c.onIdleList = false
	c.runOutsideCall(c.armCQ)
	c.teardownIfDone()
	return true
}

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

package sdp

import (
	"errors"
	"os"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// waitCond is what a call waits for.
type waitCond int

const (
	waitReadable   waitCond = iota // something to read, or the end
	waitWritable                   // room in the send buffer
	waitSourceRead                 // the end of an RDMA READ
	waitSinkEnd                    // of a SinkAvail
	waitSinkData                   // the same, or the end of reading
	waitSinkWrite                  // of an RDMA WRITE
	waitOfferEnd                   // of a SrcAvail
	waitCanOffer                   // the right time for one
	waitPeerSink                   // memory of the peer to write to
	waitClosed                     // of the connection
	numWaitConds
)

// isMet reports whether a call need not wait any more.
func (c *Conn) isMet(w waitCond) bool {
	if c.core.Err() != nil {
		return true
	}
	switch w {
	case waitReadable, waitWritable, waitPeerSink:
		if c.closed || w == waitReadable && c.readShut || w != waitReadable && c.writeShut {
			return true
		}
	case waitSinkData:
		if c.closed || c.readShut {
			return true
		}
	} // others wait for memory that is lent
	switch w {
	case waitReadable:
		return c.core.Buffered() > 0 || c.core.Finished() || c.core.PeerSourceLen() > 0
	case waitWritable:
		return c.core.Writable() || c.core.Closing()
	case waitSourceRead:
		return !c.core.ReadingPeerSource()
	case waitSinkEnd, waitSinkData:
		return !c.core.SinkActive()
	case waitSinkWrite:
		return !c.core.WritingPeerSink()
	case waitPeerSink:
		return c.core.PeerSinkLen() > 0
	case waitCanOffer:
		return c.core.CanOffer() || c.core.PeerSinkLen() > 0
	case waitOfferEnd:
		return !c.core.Offering() || c.core.PeerSinkLen() > 0
	}
	return c.tornDown
}

// waiter is a call that waits.
type waiter struct {
	wake chan struct{}
}

// waitFor returns when a wish may be granted, or d has ended. The first to wait
// serves the adapter for all, and hands that on when it has what it wants. The
// lock is held, but not meanwhile.
func (c *Conn) waitFor(w waitCond, d *deadline) {
	if c.core.HeldBytes() > 0 { // room for it may have come outside of calls
		if w == waitReadable && c.writing.TryLock() { // for an answer, perhaps; nobody adds to it
			c.core.Flush()
			c.writing.Unlock()
		} else {
			c.core.ReleaseHeld()
		}
		c.postPending()
	}
	c.recordUse()
	for !c.isMet(w) && !d.expired() {
		if !c.polling {
			c.waitCompletions(d)
			continue
		}
		me := &waiter{make(chan struct{}, 1)}
		c.waiters[w] = me
		m := d.moment
		c.mu.Unlock()
		select {
		case <-me.wake:
		case <-m.Done():
		}
		c.mu.Lock()
		c.waiters[w] = nil
	}
	c.wakeWaiters()
}

// waitCompletions waits for completions and handles them.
func (c *Conn) waitCompletions(d *deadline) {
	c.polling = true
	m := d.moment
	c.mu.Unlock()
	n, err := c.cq.PollWait(m, c.wcs[:])
	c.mu.Lock()
	c.polling = false
	c.handleCompletions(c.wcs[:n])
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.failConn(err)
	}
}

// pollCompletions handles the completions that are there, without a system call, and
// reports whether there were any. They are the pumping call's if there is one, and nobody's
// once the connection has ended, whose memory may be gone.
func (c *Conn) pollCompletions() (some bool) {
	for !c.polling && !c.tornDown && c.cq.Len() > 0 {
		n, err := c.cq.Poll(c.wcs[:])
		c.handleCompletions(c.wcs[:n])
		if err != nil {
			c.failConn(err)
			return true
		}
		some = true
	}
	return some
}

// maxExtraPolls is how many looks in a row find nothing before a writer is thought to be no
// faster than the reader.
const maxExtraPolls = 4

// pollForWriter has a look at the adapter for a reader who has given the peer a receive, while the writer
// is faster. That one has filled what there was and waits for the acknowledgement, which brings
// word of the receive: a reader who looks when nothing is left to be read has it wait so long.
func (c *Conn) pollForWriter() {
	if c.polling || c.tornDown {
		return
	}
	c.extraPolls--
	n, err := c.cq.Poll(c.wcs[:])
	if n > 0 {
		c.handleCompletions(c.wcs[:n])
	}
	if err != nil {
		c.failConn(err)
	}
}

// handleCompletions handles completions.
func (c *Conn) handleCompletions(wcs []verbs.WC) {
	for i := range wcs {
		c.core.HandleCompletion(&wcs[i])
		if len(c.core.Receives()) > 32 {
			c.postPending()
		}
	}
	c.completions += uint64(len(wcs))
	c.postPending()
	if len(wcs) > 0 {
		c.extraPolls = 0
		if c.flowControl == flow.NIC && c.core.RingHalfFull() {
			c.extraPolls = maxExtraPolls
		}
	}
	if c.core.Offering() && c.core.SpillRing() > 0 {
		c.postPending()
	}
	c.applyResize()
	c.signalUrgent()
	if c.closed {
		c.discardUnread()
	}
	c.recordUse()
	c.wakeWaiters()
}

// wakeWaiters wakes those who have what they wait for and, if nobody pumps, one who
// will.
func (c *Conn) wakeWaiters() {
	needed := !c.polling
	for w, me := range c.waiters {
		if me != nil && (needed || c.isMet(waitCond(w))) {
			needed = false
			select {
			case me.wake <- struct{}{}:
			default:
			}
		}
	}
}

// postPending gives the adapter what the core has for it.
func (c *Conn) postPending() {
	if rs := c.core.Receives(); len(rs) > 0 {
		if _, err := c.qp.PostRecv(rs); err != nil {
			c.failConn(err)
		}
	}
	if ss := c.core.Sends(); len(ss) > 0 {
		if _, err := c.qp.PostSend(ss); err != nil {
			c.failConn(err)
		}
	}
	c.core.ClearPosted()
}

// failConn ends a connection that the adapter has failed.
func (c *Conn) failConn(err error) { c.core.Fail(err) }

// enterCall is the beginning of every call that ends with leave: it looks after the
// connection now, so no event need wake watch, which would wait for the lock.
func (c *Conn) enterCall() {
	if c.armed {
		c.armed = false
		c.cq.Disarm()
	}
}

// exitCall is the end of every call: who looks after the connection now?
func (c *Conn) exitCall() {
	c.recordUse()
	c.calls++
	switch {
	case c.tornDown || c.polling:
	case c.needsPromptService():
		c.armCQ()
		c.teardownIfDone()
	case !c.armed && !c.onIdleList:
		c.onIdleList = true
		c.stack.addIdle(c)
	}
}

// needsPromptService reports whether the next completion should be handled at once, even
// if no call comes. What the RDMA design holds back waits for one.
func (c *Conn) needsPromptService() bool {
	return c.closed || c.core.Closing() || c.flowControl != flow.RDMA && c.core.HeldBytes() > 0
}

// armCQ makes interrupt, or watch, take care of the next completion, and takes care of
// those that are there.
func (c *Conn) armCQ() {
	if c.armed {
		return
	}
	c.armed = true
	if err := c.cq.ReqNotify(false); err != nil {
		c.failConn(err)
		return
	}
	c.pollCompletions()
}

// handleEvent handles the one that the queue was armed for: there are completions. What is held
// back leaves now, without company (section 5.2): no call has come to bring any. The
// lock is held.
func (c *Conn) handleEvent() {
	c.armed = false
	if c.tornDown {
		return
	}
	c.applyResize() // what interrupt has left
	if c.polling {
		return // the pump hands over when it leaves
	}
	if c.needsPromptService() {
		c.armCQ()
	}
	c.runOutsideCall((*Conn).pollCompletions)
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

// handOverToEvents is the patrol's: it reports whether it need not look again.
func (c *Conn) handOverToEvents() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tornDown || c.armed || c.polling { // a call that waits lists it again when it leaves
		c.onIdleList = false
		return true
	}
	if c.calls != c.callsSeen {
		c.callsSeen = c.calls
		return false
	}
	c.onIdleList = false
	c.runOutsideCall(func(c *Conn) bool { c.armCQ(); return true })
	c.teardownIfDone()
	return true
}

// runOutsideCall does something outside of any call of the application.
func (c *Conn) runOutsideCall(f func(*Conn) bool) {
	c.core.HoldData(c.flowControl == flow.RDMA && !c.closed && !c.core.Closing())
	f(c)
	c.core.HoldData(false)
}

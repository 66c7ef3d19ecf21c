package sdp

import (
	"context"

	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// A waitCond is a condition that a call waits for.
type waitCond int

const (
	waitReadable   waitCond = iota // data or the end of the stream
	waitWritable                   // space in the send buffer
	waitSourceRead                 // completion of an RDMA READ
	waitSinkEnd                    // completion of a SinkAvail
	waitSinkData                   // completion of a SinkAvail, or CloseRead
	waitSinkWrite                  // completion of an RDMA WRITE
	waitOfferEnd                   // completion of a SrcAvail
	waitCanOffer                   // CanOffer
	waitPeerSink                   // memory offered by the peer
	waitClosed                     // end of the connection
	numWaitConds
)

// A connWait is a waitCond of a connection.
type connWait struct {
	c    *Conn
	cond waitCond
}

// Ready implements progress.Waitable.
func (w *connWait) Ready() bool { return w.c.isMet(w.cond) }

// isMet reports whether a waiting call can continue.
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
	} // the other conditions concern lent memory, which must be reclaimed first
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

// waitFor blocks until w is met, d expires or the connection fails. The first waiter polls the CQ
// on behalf of all (package progress). c.mu must be held; it is released while waiting.
func (c *Conn) waitFor(w waitCond, d *deadline) {
	if c.core.HeldBytes() > 0 { // events may have made space for held-back data
		if w == waitReadable && c.writing.TryLock() { // a request may precede the awaited reply; flush it, since nothing will be coalesced
			c.core.Flush()
			c.writing.Unlock()
		} else {
			c.core.ReleaseHeld()
		}
		c.postPending()
	}
	c.recordBufferUse()
	for !c.isMet(w) && !d.expired() {
		_ = c.progress.Wait(d.ctx, &c.waits[w]) // d may have a new context then
	}
}

// source is the CQ of a connection as the Source of the progress engine.
type source Conn

// Prepare implements progress.Source.
func (*source) Prepare(progress.Waitable) {}

// Block implements progress.Source. It receives completions that Poll handles. A failure of the CQ
// fails the connection, which ends all waits.
func (s *source) Block(ctx context.Context) error {
	n, err := s.cq.PollWait(ctx, s.wcs[:])
	s.received = n
	if err == nil || ctx.Err() != nil {
		return nil
	}
	s.pollErr = err
	return err
}

// Poll implements progress.Source.
func (s *source) Poll() (handled bool) {
	c := (*Conn)(s)
	if n, err := c.received, c.pollErr; n > 0 || err != nil {
		c.received, c.pollErr = 0, nil
		c.handleCompletions(c.wcs[:n])
		if err != nil {
			c.failConn(err)
		}
		return true
	}
	for !c.tornDown && c.cq.Len() > 0 {
		n, err := c.cq.Poll(c.wcs[:])
		c.handleCompletions(c.wcs[:n])
		if err != nil {
			c.failConn(err)
			return true
		}
		handled = true
	}
	return handled
}

// pollCompletions handles available completions without a system call and reports whether there
// were any. It does nothing while another call polls, or after teardown.
func (c *Conn) pollCompletions() bool { return c.progress.Poll() }

// maxExtraPolls is the number of consecutive polls without a completion after which the writer is
// no longer considered faster.
const maxExtraPolls = 4

// pollForWriter polls once for a Read that has posted a receive while the writer is faster. Such
// a writer waits for the acknowledgement that advertises the receive; polling before the data
// runs out saves it that time.
func (c *Conn) pollForWriter() {
	if c.progress.Leading() || c.tornDown {
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
	c.progress.Notify()
}

// handleCompletions handles completions and posts the resulting requests.
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
	c.recordBufferUse()
}

// postPending posts the requests that the core has built.
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

// failConn fails the connection after an adapter error.
func (c *Conn) failConn(err error) { c.core.Fail(err) }

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
		c.failConn(err)
		return
	}
	c.pollCompletions()
}

// handleEvent handles the CQ event: available completions. It flushes held-back data without
// coalescing, because no call has come to add more (section 5.2 of the paper of package flow).
// c.mu must be held.
func (c *Conn) handleEvent() {
	c.armed = false
	if c.tornDown {
		return
	}
	c.applyResize() // deferred by handleInterrupt
	if c.progress.Leading() {
		return // the polling call arms the CQ when it exits
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
	c.runOutsideCall(func(c *Conn) bool { c.armCQ(); return true })
	c.teardownIfDone()
	return true
}

// runOutsideCall calls f, without posting data in the RDMA mode.
func (c *Conn) runOutsideCall(f func(*Conn) bool) {
	c.core.HoldData(c.flowControl == flow.RDMA && !c.closed && !c.core.Closing())
	f(c)
	c.core.HoldData(false)
}

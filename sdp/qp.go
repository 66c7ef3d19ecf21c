package sdp

import (
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// postPending posts the requests that the core has built.
func (c *Conn) postPending() {
	if rs := c.core.Receives(); len(rs) > 0 {
		if _, err := c.qp.PostRecv(rs); err != nil {
			c.core.Fail(err)
		}
	}
	if ss := c.core.Sends(); len(ss) > 0 {
		if _, err := c.qp.PostSend(ss); err != nil {
			c.core.Fail(err)
		}
	}
	c.core.ClearPosted()
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
	c.resizeBuffers()
	c.signalUrgent()
	if c.closed {
		c.discardUnread()
	}
	c.recordBufferUse()
}

// resizeBuffers resizes the buffers if that is due and not deferred, and posts what the peer must
// know.
func (c *Conn) resizeBuffers() {
	if !c.inHandler && c.resizePending() {
		c.applyResize()
		c.postPending()
	}
}

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
	if _, err := c.arrived.Poll(c.handleCompletions); err != nil {
		c.core.Fail(err)
	}
	c.progress.Notify()
}

// signalUrgent sends to the channel if the urgent state has changed. c.mu must be held.
func (c *Conn) signalUrgent() {
	ahead, announced := c.core.Urgent()
	is := ahead > 0 || announced
	if is && (!c.urgentKnown || announced != c.urgentAnnounced) {
		select {
		case c.urgentSignal <- struct{}{}:
		default:
		}
	}
	c.urgentKnown, c.urgentAnnounced = is, announced
}

// discardUnread discards received data after Close.
func (c *Conn) discardUnread() {
	var waste [4096]byte
	for n := c.core.Read(waste[:]); n > 0; n = c.core.Read(waste[:]) {
		c.discarded += uint64(n)
	}
	c.core.RefuseSource()
	c.postPending()
}

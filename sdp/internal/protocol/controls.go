package protocol

import (
	"slices"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// controls are the messages without data that wait to be posted, and those
// that are.
type controls struct {
	ordered         []control // that have their place among the data
	unordered       []control // that go as soon as they may, in this order
	creditUpdateDue bool      // the peer should hear about our receives

	inline [ControlQueue][MaxInline]byte // of message n at n modulo ControlQueue
	depth  uint64                        // so many may be posted and not completed
	sent   uint64                        // posted, since the beginning
	done   uint64                        // and completed
}

type control struct {
	id    bsdh.MID
	flags bsdh.Flags
	ext   [24]byte
	extra []byte // payload
}

// maxQueuedControls bounds the messages that wait. Between two ends that keep to the
// protocol there is one of each kind at most.
const maxQueuedControls = 32

// isOrdered reports whether a message must not change places with data that is
// written before or after it.
func isOrdered(id bsdh.MID) bool {
	switch id {
	case bsdh.MIDSrcAvail, bsdh.MIDDisConn, bsdh.MIDModeChange, bsdh.MIDRdmaWrCompl, bsdh.MIDSinkCancelAck:
		return true
	}
	return false
}

// queueControl queues a message.
func (c *Core) queueControl(m control) {
	q := &c.controls
	if len(q.ordered)+len(q.unordered) >= maxQueuedControls {
		c.violation("%d messages wait for receives, and the peer asks for %v", maxQueuedControls, m.id)
		return
	}
	if isOrdered(m.id) {
		q.ordered = append(q.ordered, m)
	} else {
		q.unordered = append(q.unordered, m)
	}
}

// isQueued reports whether a message has not been posted yet.
func (c *Core) isQueued(id bsdh.MID) bool {
	such := func(m control) bool { return m.id == id }
	return slices.ContainsFunc(c.controls.ordered, such) || slices.ContainsFunc(c.controls.unordered, such)
}

// dropQueued takes back a message that waits, and reports whether it did.
func (c *Core) dropQueued(id bsdh.MID) bool {
	if !c.isQueued(id) {
		return false
	}
	such := func(m control) bool { return m.id == id }
	c.controls.ordered = slices.DeleteFunc(c.controls.ordered, such)
	c.controls.unordered = slices.DeleteFunc(c.controls.unordered, such)
	return true
}

// postUnordered posts messages that data may overtake.
func (c *Core) postUnordered() {
	q := &c.controls
	n := 0
	for n < len(q.unordered) && c.canPostControl(&q.unordered[n]) {
		c.postControl(&q.unordered[n])
		n++
	}
	q.unordered = q.unordered[:copy(q.unordered, q.unordered[n:])]
}

// postOrdered posts the messages whose turn among the data it is. It is false if
// one waits that data must not overtake.
func (c *Core) postOrdered() (free bool) {
	q := &c.controls
	n := 0
	for free = true; n < len(q.ordered); n++ {
		m := &q.ordered[n]
		if c.mustFollowData(m) {
			break
		}
		if free = c.canPostControl(m); !free {
			break
		}
		c.postControl(m)
	}
	q.ordered = q.ordered[:copy(q.ordered, q.ordered[n:])]
	return free
}

// mustFollowData reports whether data, or an offer, goes before a message.
func (c *Core) mustFollowData(m *control) bool {
	switch m.id {
	case bsdh.MIDSrcAvail:
		return c.sender.Unposted() > 0
	case bsdh.MIDDisConn:
		return c.sender.Unposted() > 0 || c.offer.live
	}
	return false
}

// canPostControl reports whether a message has a place in the send queue, and a
// receive at the peer.
func (c *Core) canPostControl(m *control) bool {
	if c.controls.isFull() {
		return false
	}
	if c.peer.FlowControl == flow.NIC {
		return true // the adapter waits
	}
	if len(m.extra) > 0 { // its receive is used until the application reads
		return c.credits.Available() > flow.ReservedCredits
	}
	return c.canSpendCredit(c.peer.Dialed)
}

func (c *Core) postControl(m *control) {
	q := &c.controls
	seq := c.credits.NextSeq()
	h := c.header(m.id, len(m.extra), seq)
	h.Flags |= m.flags
	b := h.Append(q.inline[q.sent%ControlQueue][:0])
	b = append(b, m.ext[:m.id.Extended()]...)
	b = append(b, m.extra...)
	q.sent++
	wr := verbs.SendWR{WRID: kindControl.wrid(q.sent), Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: b}
	if m.id != bsdh.MIDData && m.id != bsdh.MIDRingUpdate {
		wr.Flags |= verbs.SendSolicited
	}
	switch m.id {
	case bsdh.MIDDisConn:
		c.disConnSeq = q.sent
		wr.Flags |= verbs.SendSignaled
	case bsdh.MIDAbortConn:
		c.abortSeq = q.sent
		wr.Flags |= verbs.SendSignaled
	case bsdh.MIDSrcAvailCancel:
		c.offer.cancelSeq = q.sent
		wr.Flags |= verbs.SendSignaled
	case bsdh.MIDModeChange:
		c.mode.recordModeChange(seq)
	case bsdh.MIDRingSwitched:
		c.switchPeerRing()
	}
	if len(m.extra) > 0 {
		c.carried++
	}
	if q.sent%(q.depth/4) == 0 {
		wr.Flags |= verbs.SendSignaled
	}
	c.stats.Controls++
	c.out = append(c.out, wr)
}

func (q *controls) isFull() bool { return q.sent-q.done >= q.depth }

// handleControlDone takes the completion of all controls up to number n.
func (c *Core) handleControlDone(n uint64) {
	q := &c.controls
	if n < q.done || n > q.sent {
		c.Fail(errUnposted)
		return
	}
	q.done = n
	if n >= c.abortSeq {
		c.abortSeq = 0
	}
	if !c.disConnDelivered && c.disConnSeq > 0 && n >= c.disConnSeq {
		c.disConnDelivered = true
		c.sender.CompleteUpTo(flow.MaxPos) // it went behind all data
	}
	c.offer.cancelDelivered = c.offer.cancelDelivered || c.offer.cancelSeq > 0 && n >= c.offer.cancelSeq
}

package protocol

import (
	"slices"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// isOrdered reports whether messages of a kind must keep their order relative to data.
func isOrdered(id bsdh.MID) bool {
	switch id {
	case bsdh.MIDSrcAvail, bsdh.MIDDisConn, bsdh.MIDModeChange, bsdh.MIDRdmaWrCompl, bsdh.MIDSinkCancelAck:
		return true
	}
	return false
}

// maxQueuedControls bounds the queued messages. Between conforming peers at most one message of
// each kind is queued.
const maxQueuedControls = 32

// queueControl queues a message, or fails the connection if the peer provokes too many.
func (c *Core) queueControl(m control) {
	q := &c.controls
	if len(q.ordered)+len(q.unordered) >= maxQueuedControls {
		c.violation("%d control messages queued, no space for %v", maxQueuedControls, m.id)
		return
	}
	if isOrdered(m.id) {
		q.ordered = append(q.ordered, m)
	} else {
		q.unordered = append(q.unordered, m)
	}
}

// isQueued reports whether a message of a kind is queued and not posted.
func (c *Core) isQueued(id bsdh.MID) bool {
	such := func(m control) bool { return m.id == id }
	return slices.ContainsFunc(c.controls.ordered, such) || slices.ContainsFunc(c.controls.unordered, such)
}

// dropQueued removes queued messages of a kind and reports whether there were any.
func (c *Core) dropQueued(id bsdh.MID) bool {
	if !c.isQueued(id) {
		return false
	}
	such := func(m control) bool { return m.id == id }
	c.controls.ordered = slices.DeleteFunc(c.controls.ordered, such)
	c.controls.unordered = slices.DeleteFunc(c.controls.unordered, such)
	return true
}

// postUnordered posts the messages that are not ordered with data.
func (c *Core) postUnordered() {
	q := &c.controls
	n := 0
	for n < len(q.unordered) && c.canPostControl(&q.unordered[n]) {
		c.postControl(&q.unordered[n])
		n++
	}
	q.unordered = q.unordered[:copy(q.unordered, q.unordered[n:])]
}

// postOrdered posts the ordered messages that are due. It returns false if one of them is
// blocked, in which case data must wait.
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

// mustFollowData reports whether unposted data or an offer precedes a message.
func (c *Core) mustFollowData(m *control) bool {
	switch m.id {
	case bsdh.MIDSrcAvail:
		return c.sender.Unposted() > 0
	case bsdh.MIDDisConn:
		return c.sender.Unposted() > 0 || c.offer.live
	}
	return false
}

// canPostControl reports whether the send queue and the peer's receives allow a message.
func (c *Core) canPostControl(m *control) bool {
	if c.controls.isFull() {
		return false
	}
	if c.peer.FlowControl == flow.NIC {
		return true // the adapter waits for a receive
	}
	if len(m.extra) > 0 { // the data occupies its receive until it is read
		return c.credits.Available() > flow.ReservedCredits
	}
	return c.canSpendCredit(c.peer.Dialed)
}

// canSpendCredit reports whether a credit is available for a message. Unless last is set, the
// last credit is reserved for messages that advertise new receives.
func (c *Core) canSpendCredit(last bool) bool {
	left := c.credits.Available()
	return left >= flow.ReservedCredits || left == 1 && (last || c.unadvertised() > 0)
}

// unadvertised returns the number of posted receives that the peer does not know of.
func (c *Core) unadvertised() int { return c.slots.posted - c.advertisedLeft() }

// advertisedLeft returns the number of messages that the peer may still send by the last
// advertisement.
func (c *Core) advertisedLeft() int { return c.advertised.count - int(c.received-c.advertised.atSeq) }

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

// header returns the header of the next message, which advertises the local receives.
func (c *Core) header(id bsdh.MID, payload int, seq uint32) bsdh.Header {
	c.advertised.record(c.received, c.slots.posted)
	c.stats.CreditUpdates++
	h := bsdh.Header{
		MID: id, Bufs: uint16(c.advertised.count), Seq: seq, Ack: c.received,
		Len: uint32(bsdh.HeaderBytes + id.Extended() + payload),
	}
	if c.oob.isPending() {
		h.Flags |= bsdh.OOBPending
		c.oob.announcedToPeer = true
	}
	return h
}

// switchPeerRing directs later data to the peer's new ring, when the RingSwitched is posted.
func (c *Core) switchPeerRing() {
	next := c.ring.next
	c.ring.peerPending = false
	c.peer.Ring, c.peer.RKey, c.peer.Addr = next.Ring, next.RKey, next.Addr
	c.sender.(interface{ SwitchRing(remote int) }).SwitchRing(int(next.Ring))
}

// handleControlDone handles the completion of all control messages up to number n.
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
		c.sender.CompleteUpTo(flow.MaxPos) // it was posted after all data
	}
	c.offer.cancelDelivered = c.offer.cancelDelivered || c.offer.cancelSeq > 0 && n >= c.offer.cancelSeq
}

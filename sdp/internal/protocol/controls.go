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
	stream []control // that have their place among the data
	aside  []control // that go as soon as they may, in this order
	word   bool      // the peer should hear about our receives

	inline [ControlQueue][Inline]byte // of message n at n modulo ControlQueue
	depth  uint64                     // so many may be posted and not completed
	sent   uint64                     // posted, since the beginning
	done   uint64                     // and completed
}

type control struct {
	id    bsdh.MID
	flags bsdh.Flags
	ext   [24]byte
	extra []byte // payload
}

// maxWaiting bounds the messages that wait. Between two ends that keep to the
// protocol there is one of each kind at most.
const maxWaiting = 32

// inStream reports whether a message must not change places with data that is
// written before or after it.
func inStream(id bsdh.MID) bool {
	switch id {
	case bsdh.MIDSrcAvail, bsdh.MIDDisConn, bsdh.MIDModeChange, bsdh.MIDRdmaWrCompl, bsdh.MIDSinkCancelAck:
		return true
	}
	return false
}

// say queues a message.
func (c *Core) say(m control) {
	q := &c.controls
	if len(q.stream)+len(q.aside) >= maxWaiting {
		c.violation("%d messages wait for receives, and the peer asks for %v", maxWaiting, m.id)
		return
	}
	if inStream(m.id) {
		q.stream = append(q.stream, m)
	} else {
		q.aside = append(q.aside, m)
	}
}

// waits reports whether a message has not been posted yet.
func (c *Core) waits(id bsdh.MID) bool {
	such := func(m control) bool { return m.id == id }
	return slices.ContainsFunc(c.controls.stream, such) || slices.ContainsFunc(c.controls.aside, such)
}

// unsay takes back a message that waits, and reports whether it did.
func (c *Core) unsay(id bsdh.MID) bool {
	if !c.waits(id) {
		return false
	}
	such := func(m control) bool { return m.id == id }
	c.controls.stream = slices.DeleteFunc(c.controls.stream, such)
	c.controls.aside = slices.DeleteFunc(c.controls.aside, such)
	return true
}

// pumpAside posts messages that data may overtake.
func (c *Core) pumpAside() {
	q := &c.controls
	n := 0
	for n < len(q.aside) && c.mayControl(&q.aside[n]) {
		c.postControl(&q.aside[n])
		n++
	}
	q.aside = q.aside[:copy(q.aside, q.aside[n:])]
}

// pumpStream posts the messages whose turn among the data it is. It is false if
// one waits that data must not overtake.
func (c *Core) pumpStream() (free bool) {
	q := &c.controls
	n := 0
	for free = true; n < len(q.stream); n++ {
		m := &q.stream[n]
		if c.behindData(m) {
			break
		}
		if free = c.mayControl(m); !free {
			break
		}
		c.postControl(m)
	}
	q.stream = q.stream[:copy(q.stream, q.stream[n:])]
	return free
}

// behindData reports whether data, or an offer, goes before a message.
func (c *Core) behindData(m *control) bool {
	switch m.id {
	case bsdh.MIDSrcAvail:
		return c.sender.Unposted() > 0
	case bsdh.MIDDisConn:
		return c.sender.Unposted() > 0 || c.offer.live
	}
	return false
}

// mayControl reports whether a message has a place in the send queue, and a
// receive at the peer.
func (c *Core) mayControl(m *control) bool {
	if c.controls.full() {
		return false
	}
	if c.peer.Design == flow.NIC {
		return true // the adapter waits
	}
	if len(m.extra) > 0 { // its receive is used until the application reads
		return c.credits.Left() > flow.Reserve
	}
	return c.maySpend(c.peer.Dialed)
}

func (c *Core) postControl(m *control) {
	q := &c.controls
	seq := c.credits.Send()
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
		c.parted = q.sent
		wr.Flags |= verbs.SendSignaled
	case bsdh.MIDAbortConn:
		c.aborting = q.sent
		wr.Flags |= verbs.SendSignaled
	case bsdh.MIDSrcAvailCancel:
		c.offer.cancel = q.sent
		wr.Flags |= verbs.SendSignaled
	case bsdh.MIDModeChange:
		c.mode.sent(seq)
	case bsdh.MIDRingSwitched:
		c.switched()
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

func (q *controls) full() bool { return q.sent-q.done >= q.depth }

// controlDone takes the completion of all controls up to number n.
func (c *Core) controlDone(n uint64) {
	q := &c.controls
	if n < q.done || n > q.sent {
		c.Fail(errUnposted)
		return
	}
	q.done = n
	if n >= c.aborting {
		c.aborting = 0
	}
	if !c.there && c.parted > 0 && n >= c.parted {
		c.there = true
		c.sender.Done(flow.Everything) // it went behind all data
	}
	c.offer.heard = c.offer.heard || c.offer.cancel > 0 && n >= c.offer.cancel
}

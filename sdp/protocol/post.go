package protocol

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/sdp/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// kind is what a request was for, in the top byte of its WRID.
type kind uint8

const (
	kindData    kind = 1 + iota // value: position behind the last byte
	kindControl                 // value: how many controls are done
	kindRead                    // of the peer's memory
	kindWrite                   // to the peer's memory
	kindAlive                   // keepalive
)

func (k kind) wrid(value uint64) uint64 { return uint64(k)<<56 | value }

func split(wrid uint64) (kind, uint64) { return kind(wrid >> 56), wrid & (1<<56 - 1) }

// sge keeps an element where a request can refer to it until it is posted.
func (c *Core) sge(e verbs.SGE) []verbs.SGE {
	c.sges = append(c.sges, e)
	return c.sges[len(c.sges)-1 : len(c.sges) : len(c.sges)]
}

// postData posts a message of the flow control.
func (c *Core) postData(m flow.Message) {
	seq := c.credits.Send()
	wr := verbs.SendWR{WRID: kindData.wrid(m.Pos + uint64(m.Len))}
	if m.Signal {
		wr.Flags = verbs.SendSignaled
	}
	urgent := c.urge.in(m)
	if c.peer.Design == flow.Credit {
		h := c.header(bsdh.MIDData, m.Len, seq)
		if urgent {
			h.Flags |= bsdh.OOBPresent
		}
		h.Append(c.cfg.Send.Bytes[m.Local-bsdh.HeaderBytes : m.Local-bsdh.HeaderBytes])
		wr.Opcode = verbs.WRSend
		wr.SGList = c.sge(c.cfg.Send.SGE(m.Local-bsdh.HeaderBytes, m.Len+bsdh.HeaderBytes))
	} else {
		wr.Opcode = verbs.WRRDMAWriteWithImm
		wr.SGList = c.sge(c.cfg.Send.SGE(m.Local, m.Len))
		wr.RemoteAddr, wr.RKey = c.peer.Addr+uint64(m.Remote), c.peer.RKey
		wr.Imm = uint32(bsdh.MakeImm(uint32(m.Remote), urgent))
	}
	if urgent {
		wr.Flags |= verbs.SendSolicited
	}
	c.carried++
	c.stats.Messages++
	c.out = append(c.out, wr)
}

// header is that of the next message, with a word about our receives.
func (c *Core) header(id bsdh.MID, payload int, seq uint32) bsdh.Header {
	c.word, c.told = c.received, uint16(min(c.slots.posted, 1<<16-1))
	c.stats.Words++
	h := bsdh.Header{
		MID: id, Bufs: c.told, Seq: seq, Ack: c.received,
		Len: uint32(bsdh.HeaderBytes + id.Extended() + payload),
	}
	if c.urge.pending() {
		h.Flags |= bsdh.OOBPending
	}
	return h
}

// controls are the messages without data that wait to be posted, and those
// that are.
type controls struct {
	waiting []control
	inline  [ControlQueue][Inline]byte // of those that are in out
	used    int                        // of inline
	sent    uint64                     // posted, since the beginning
	done    uint64                     // and completed
}

type control struct {
	id    bsdh.MID
	flags bsdh.Flags
	ext   [24]byte
	extra []byte // payload
	hold  bool   // goes behind all data written before
}

// posted makes room for the next inline messages.
func (q *controls) posted() { q.used = 0 }

// say queues a message; behind makes it wait for data written before it.
func (c *Core) say(m control) { c.controls.waiting = append(c.controls.waiting, m) }

// report tells the peer what its flow control waits for, when it is time.
func (c *Core) report() {
	switch r := c.receiver.(type) {
	case *flow.CreditReceiver:
		for slot, ok := r.Free(); ok; slot, ok = r.Free() {
			c.slots.give(slot)
			c.post(1)
		}
		if c.creditsDue() {
			c.update(control{id: bsdh.MIDData})
		}
	case *flow.RDMAReceiver:
		if freed, due := r.Report(c.creditsDue()); due {
			m := control{id: bsdh.MIDRingUpdate}
			binary.BigEndian.PutUint64(m.ext[:], freed)
			c.update(m)
		}
	}
}

// creditsDue reports whether the peer should hear of our receives: half of them
// are new, or it knows of none that it may use for data (section 3.1).
func (c *Core) creditsDue() bool {
	known := int(c.told) - int(c.received-c.word)
	fresh := c.slots.posted - known
	return fresh > 0 && (2*fresh >= c.receiver.Receives() || known <= flow.Reserve)
}

// update queues a word for the flow control, or brings one that waits already
// up to date.
func (c *Core) update(m control) {
	for i := range c.controls.waiting {
		if w := &c.controls.waiting[i]; w.id == m.id && w.extra == nil {
			*w = m
			return
		}
	}
	c.say(m)
}

// pumpControls posts messages without data: those that may overtake data, or
// with behind those that may not.
func (c *Core) pumpControls(behind bool) {
	q := &c.controls
	kept := q.waiting[:0]
	for i, m := range q.waiting {
		if len(kept) > 0 || m.hold && (!behind || c.sender.Unposted() > 0) || !c.mayControl(m) {
			kept = append(kept, q.waiting[i])
			continue
		}
		c.postControl(m)
	}
	q.waiting = kept
}

// mayControl reports whether a message has a place in the send queue, and a
// receive at the peer. The last credit is for a message that gives some.
func (c *Core) mayControl(m control) bool {
	q := &c.controls
	if q.sent-q.done >= ControlQueue || q.used == ControlQueue {
		return false
	}
	if c.peer.Design == flow.NIC {
		return true // the adapter waits
	}
	need := flow.Reserve
	if m.id == bsdh.MIDData || m.id == bsdh.MIDRingUpdate {
		need = 1
	}
	return c.credits.Left() >= need
}

func (c *Core) postControl(m control) {
	q := &c.controls
	seq := c.credits.Send()
	h := c.header(m.id, len(m.extra), seq)
	h.Flags |= m.flags
	b := h.Append(q.inline[q.used][:0])
	b = append(b, m.ext[:m.id.Extended()]...)
	b = append(b, m.extra...)
	q.used++
	q.sent++
	wr := verbs.SendWR{WRID: kindControl.wrid(q.sent), Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: b}
	if q.sent%(ControlQueue/4) == 0 || m.id == bsdh.MIDDisConn {
		wr.Flags |= verbs.SendSignaled
	}
	if m.id != bsdh.MIDData && m.id != bsdh.MIDRingUpdate {
		wr.Flags |= verbs.SendSolicited
	}
	switch m.id {
	case bsdh.MIDDisConn:
		c.parted, c.first = true, !c.finished
	}
	c.stats.Controls++
	c.out = append(c.out, wr)
}

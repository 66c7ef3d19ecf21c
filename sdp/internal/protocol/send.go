package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// A kind is the kind of a send request, in the top byte of its WRID.
type kind uint8

const (
	kindData    kind = 1 + iota // value: position after the last byte
	kindControl                 // value: number of control messages posted
	kindRead                    // RDMA READ of the peer's memory
	kindWrite                   // RDMA WRITE to the peer's memory
	kindAlive                   // probe; see SendKeepAlive
)

func (k kind) wrid(value uint64) uint64 { return uint64(k)<<56 | value }

func splitWRID(wrid uint64) (kind, uint64) { return kind(wrid >> 56), wrid & (1<<56 - 1) }

// stageSGE stores e until the request that refers to it is posted.
func (c *Core) stageSGE(e verbs.SGE) []verbs.SGE {
	c.sges = append(c.sges, e)
	return c.sges[len(c.sges)-1 : len(c.sges) : len(c.sges)]
}

// Write accepts as much of p as the flow control allows and returns the number of bytes. 0 means
// that the caller must wait for a completion. While memory is offered Write accepts nothing,
// because later data must follow the offered bytes.
func (c *Core) Write(p []byte) int { return c.write(p, false) }

// write implements Write and SendUrgent.
func (c *Core) write(p []byte, urgent bool) (n int) {
	if c.err != nil || c.closing || c.offer.live {
		return 0
	}
	for n < len(p) {
		k := c.sender.Write(p[n:])
		if k == 0 {
			break
		}
		n += k
		c.peerSink.live = false // the data voids it on both sides
		c.receiveQuery.wantLend = false
		if urgent && n == len(p) {
			c.oob.setMark(c.sender.EndMessage())
		}
		c.buildRequests()
	}
	c.stats.addWritten(n)
	return n
}

// Writable reports whether Write would accept data.
func (c *Core) Writable() bool { return c.sender.Free() > 0 && !c.offer.live }

// HeldBytes returns the number of written bytes that are not posted.
func (c *Core) HeldBytes() int { return c.sender.Unposted() }

// HoldData suspends, while on is set, the posting of data; received messages are still handled
// and answered. It implements RDMA flow control outside of calls, where the mode makes no
// progress (section 4.2).
func (c *Core) HoldData(on bool) { c.holdData = on }

// ReleaseHeld posts the data that HoldData has held back.
func (c *Core) ReleaseHeld() { c.buildRequests() }

// Flush posts held-back data without coalescing, as far as the flow control allows.
func (c *Core) Flush() {
	if s, ok := c.sender.(*flow.NICSender); ok {
		s.Flush()
	}
	c.buildRequests()
}

// Sends returns the send requests to post, in order. The slice is valid until the next call of a
// method; the memory that the requests refer to belongs to the Core until they complete.
func (c *Core) Sends() []verbs.SendWR { return c.out }

// buildRequests builds the send requests that are allowed: data in order, with the ordered
// control messages in their place, unordered ones first.
func (c *Core) buildRequests() {
	if !c.started || c.err != nil {
		return
	}
	c.postUnordered()
	if c.postOrdered() && !c.holdData && !c.owesSourceReply() {
		for m, ok := c.sender.Next(); ok; m, ok = c.sender.Next() {
			c.postData(m)
		}
		c.postOrdered()
	}
	c.sendReceiveQuery()
	c.postCreditUpdate()
	c.requestFinalAck()
}

// postData builds the request for a data message.
func (c *Core) postData(m flow.Message) {
	seq := c.credits.NextSeq()
	wr := verbs.SendWR{WRID: kindData.wrid(m.End())}
	if m.Signal {
		wr.Flags = verbs.SendSignaled
	}
	if m.DelayAck {
		wr.Flags |= verbs.SendDelayAck
	}
	urgent := c.oob.endsMessage(m.End())
	if c.peer.FlowControl == flow.Credit {
		h := c.header(bsdh.MIDData, m.Len, seq)
		if urgent {
			h.Flags |= bsdh.OOBPresent
		}
		if short, ok := bsdh.MakeShortHeader(h); ok && c.peer.ShortHeaders {
			wr.Opcode, wr.Imm = verbs.WRSendWithImm, uint32(short)
			wr.SGList = c.stageSGE(c.cfg.Send.SGE(m.Local, m.Len))
		} else {
			h.Append(c.cfg.Send.Bytes[m.Local-bsdh.HeaderBytes : m.Local-bsdh.HeaderBytes])
			wr.Opcode = verbs.WRSend
			wr.SGList = c.stageSGE(c.cfg.Send.SGE(m.Local-bsdh.HeaderBytes, m.Len+bsdh.HeaderBytes))
		}
	} else {
		wr.Opcode = verbs.WRRDMAWriteWithImm
		wr.SGList = c.stageSGE(c.cfg.Send.SGE(m.Local, m.Len))
		wr.RemoteAddr, wr.RKey = c.peer.Addr+uint64(m.Remote), c.peer.RKey
		wr.Imm = uint32(bsdh.MakeImm(uint32(m.Remote), urgent))
	}
	if urgent {
		wr.Flags |= verbs.SendSolicited
	}
	c.carried++
	c.receiveQuery.due = true
	c.stats.MessagesSent++
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

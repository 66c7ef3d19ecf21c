package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

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

// SendUrgent is like Write with the last byte of p urgent: the peer's application is notified of
// it as early as possible. If it accepts fewer bytes than len(p), call it again with the rest.
func (c *Core) SendUrgent(p []byte) int {
	if c.err != nil || c.closing || len(p) == 0 {
		return 0
	}
	if !c.oob.isPending() {
		c.oob.announcedToPeer = false
	}
	c.oob.unwritten = true
	n := c.write(p, true)
	c.buildRequests() // send at least the announcement
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

// RequestReceiveUpdate makes the peer report its receives, until the next Write, whenever data
// ahead has used up the receives it reported. It returns true if CanOffer and CanOfferSink may
// become true. Call it when mayLend prevents an offer.
func (c *Core) RequestReceiveUpdate() bool {
	if c.mayLend() || c.err != nil || c.closing {
		return false
	}
	c.receiveQuery.wantLend, c.receiveQuery.due = true, true
	c.buildRequests()
	return true
}

// postPending refills the receives and builds all requests that are due.
func (c *Core) postPending() {
	if c.err == nil {
		c.refillReceives()
		c.scheduleCreditUpdate()
		c.buildRequests()
	}
}

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

// owesSourceReply reports whether the peer waits for the end of an RDMA READ or for a reply to
// its SrcAvailCancel. With NIC flow control the reply is queued behind the data in the adapter;
// no more data may be posted ahead of it, because the peer must spill all of it.
func (c *Core) owesSourceReply() bool {
	return c.peer.FlowControl == flow.NIC && (c.peerSource.live && c.peerSource.cancelled ||
		len(c.controls.unordered) > 0 && (c.isQueued(bsdh.MIDRdmaRdCompl) || c.isQueued(bsdh.MIDSendSm)))
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

// SendKeepAlive probes the peer's adapter by an RDMA WRITE of no bytes. It sends no SDP message
// and does not involve the peer's software. Without an acknowledgement the queue pair fails. It
// returns false if a probe is outstanding.
func (c *Core) SendKeepAlive() bool {
	if c.probing || c.err != nil || !c.started {
		return false
	}
	c.sendProbe(0)
	return true
}

// requestFinalAck sends a probe after the last byte, whose acknowledgement covers all data.
func (c *Core) requestFinalAck() {
	if c.closingWithoutDisConn && !c.probing && !c.flushed && c.sender.Unposted() == 0 && !c.offer.live && !c.sinkWrite.outstanding {
		c.sendProbe(probeAfterLast)
	}
}

// probeAfterLast is the value of the probe after the last byte; see requestFinalAck.
const probeAfterLast = 1

func (c *Core) sendProbe(value uint64) {
	c.probing = true
	c.out = append(c.out, verbs.SendWR{
		WRID: kindAlive.wrid(value), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		RemoteAddr: c.peer.Addr, RKey: c.peer.RKey,
	})
}

package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// CanOffer reports whether the peer accepts a SrcAvail now. Unposted data is sent ahead of the
// SrcAvail.
func (c *Core) CanOffer() bool {
	return c.err == nil && !c.closing && !c.offer.live && !c.peerSink.live &&
		c.mode.send != bsdh.Buffered && c.peer.MaxAdverts > 0 && c.canSpill() && c.mayLend()
}

// Offer advertises the memory with content p, remotely accessible at addr with rkey. The peer may
// read it until [Core.Offered] reports completion. CanOffer must be true.
func (c *Core) Offer(p []byte, addr uint64, rkey uint32) {
	m := control{id: bsdh.MIDSrcAvail}
	bsdh.SrcAvail{Len: uint32(len(p)), RKey: rkey, Addr: addr}.Append(m.ext[:0])
	c.offer = offer{live: true, total: len(p)}
	if c.mode.send == bsdh.Combined { // the standard requires at least one inline byte
		m.extra = []byte{p[0]}
		c.offer.inline = 1
	}
	c.stats.Offers++
	if c.offer.inline == len(p) { // and at least one other byte
		c.offer.inline = 0
		c.endOffer(true)
		return
	}
	c.queueControl(m)
	c.buildRequests()
}

// Offered returns the number of offered bytes that the peer has, and whether the offer is
// complete: all bytes, or as many as the peer wanted.
func (c *Core) Offered() (n int, done bool) {
	return c.offer.inline + c.offer.readByPeer, !c.offer.live
}

// OfferRefused reports whether the peer requested the last offer, or its remainder, as Data
// messages.
func (c *Core) OfferRefused() bool { return c.offer.refused }

// Offering reports whether the peer may still read the offered memory.
func (c *Core) Offering() bool { return c.offer.live }

// CancelOffer reclaims the offered memory. Offered reports the result.
func (c *Core) CancelOffer() {
	if !c.offer.live || c.offer.cancelled {
		return
	}
	c.offer.cancelled = true
	if c.dropQueued(bsdh.MIDSrcAvail) {
		c.offer.inline = 0
		c.endOffer(true)
	} else {
		c.queueControl(control{id: bsdh.MIDSrcAvailCancel})
	}
	c.buildRequests()
}

func (c *Core) endOffer(refused bool) {
	c.offer.live = false
	c.dropQueued(bsdh.MIDSrcAvailCancel)
	c.stats.addWritten(c.offer.inline)
	if refused {
		c.stats.OffersRefused++
	}
}

// handleRdmaRdCompl handles the peer's report that it has read n more bytes.
func (c *Core) handleRdmaRdCompl(n uint32, flags bsdh.Flags) {
	o := &c.offer
	if !o.live || c.isQueued(bsdh.MIDSrcAvail) || uint64(n) > uint64(o.total-o.inline-o.readByPeer) {
		c.violation("RdmaRdCompl of %d bytes exceeds the offer", n)
		return
	}
	o.readByPeer += int(n)
	c.stats.addZeroCopyWritten(int(n))
	if o.inline+o.readByPeer == o.total {
		c.endOffer(false)
	}
	if flags&bsdh.RequestPipe != 0 {
		c.requestPipelined()
	}
}

// handleSendSm handles the peer's request for the remaining bytes as Data messages.
func (c *Core) handleSendSm() {
	if !c.offer.live || c.isQueued(bsdh.MIDSrcAvail) {
		c.violation("SendSm without a SrcAvail")
		return
	}
	c.offer.refused = true
	c.endOffer(true)
}

// SpillRing frees space in the receive ring with NIC flow control by moving unread data
// elsewhere, and returns the number of bytes moved. A caller that waits for the end of an offer
// must call it whenever data has arrived; otherwise both sides can deadlock.
//
// The peer's reply to an offer, and its RDMA READ before, are queued in its adapter behind the
// data that it has written, and that data waits while the local ring is full. If the local
// application only waits for the reply and the peer's only reads, neither makes progress. (If
// both sides offer at once, the SrcAvail is behind the data.)
//
// SpillRing moves at most the length of the peer's send buffer, which suffices unless the peer
// writes more; then the offer must be cancelled. When the cancellation has arrived, the limit
// doubles, to cover the peer's adapter: no more data is posted ahead of the reply (see
// owesSourceReply). The peer announces the length of its send buffer; no memory is offered to a
// peer with more than maxSpill.
func (c *Core) SpillRing() int {
	r, ok := c.receiver.(*flow.NICReceiver)
	if !ok || !c.offer.live || c.slots.posted > 0 || c.err != nil {
		return 0
	}
	n := r.Spill(c.spillLimit())
	c.postPending()
	return n
}

// maxSpill is the maximum send buffer of a peer that gets offers, in bytes.
const maxSpill = 64 << 20

// spillLimit returns the maximum number of bytes outside of the ring.
func (c *Core) spillLimit() int {
	most := int(min(c.peer.Buffer, maxSpill)) + 2*c.cfg.Window // and a receive for the reply
	if c.offer.cancelDelivered {
		most *= 2
	}
	return most
}

// canSpill reports whether the data ahead of a reply to an offer could be moved out of the ring.
func (c *Core) canSpill() bool {
	return c.peer.FlowControl != flow.NIC || c.peer.Buffer <= maxSpill && c.spilledBytes() == 0
}

// spilledBytes returns the number of bytes outside of the ring.
func (c *Core) spilledBytes() int {
	if r, ok := c.receiver.(*flow.NICReceiver); ok {
		return r.Spilled()
	}
	return 0
}

// PeerSinkLen returns the number of bytes that the peer waits for in its own memory, or 0.
func (c *Core) PeerSinkLen() int {
	if !c.peerSink.live || c.sinkWrite.outstanding || c.err != nil {
		return 0
	}
	return int(min(c.peerSink.len, MaxTransfer))
}

// WritePeerSink writes the application's memory, at most PeerSinkLen bytes, to the peer's memory
// by an RDMA WRITE. [Core.PeerSinkWritten] returns the result.
func (c *Core) WritePeerSink(from verbs.SGE) {
	d := &c.peerSink
	if int64(from.Length) > int64(c.PeerSinkLen()) {
		c.Fail(errBeyondAdvert)
		return
	}
	d.live = false
	c.sinkWrite.start(from.Length)
	c.out = append(c.out, verbs.SendWR{
		WRID: kindWrite.wrid(uint64(from.Length)), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: c.stageSGE(from), RemoteAddr: d.addr, RKey: d.rkey,
	})
	m := control{id: bsdh.MIDRdmaWrCompl}
	bsdh.RdmaCompl{Len: from.Length}.Append(m.ext[:0])
	c.queueControl(m)
	c.buildRequests()
}

// PeerSinkWritten returns the number of bytes that WritePeerSink has written, once, and whether
// the write is complete.
func (c *Core) PeerSinkWritten() (n int, done bool) { return c.sinkWrite.takeDone() }

// WritingPeerSink reports whether an RDMA WRITE is outstanding.
func (c *Core) WritingPeerSink() bool { return c.sinkWrite.outstanding }

func (c *Core) handleSinkAvail(ext, payload []byte) {
	s, _ := bsdh.ParseExtended[bsdh.SinkAvail](ext)
	switch {
	case len(payload) > 0:
		c.violation("SinkAvail with %d bytes of data", len(payload))
	case c.mode.send != bsdh.Pipelined && !c.mode.unacked:
		c.violation("SinkAvail in %v mode", c.mode.send)
	case c.peerSink.live:
		c.violation("second SinkAvail, limit %d", c.cfg.MaxAdverts)
	case s.Len == 0:
		c.violation("SinkAvail of 0 bytes")
	case int32(c.carried-s.NonDiscards) < 0:
		c.violation("SinkAvail after %d data messages, %d were sent", s.NonDiscards, c.carried)
	case c.mode.send != bsdh.Pipelined, c.mode.unacked, s.NonDiscards != c.carried, c.sender.Unposted() > 0:
		// It crossed with a mode change (or two, there and back) or with data, which voids it at
		// the peer, too.
	default:
		if c.offer.live { // it crossed with the local SrcAvail and takes precedence
			c.dropQueued(bsdh.MIDSrcAvail)
			c.endOffer(false) // not a refusal: the offered bytes go to the sink
		}
		if c.closing {
			return // DisConn voids it
		}
		c.peerSink = peerSink{live: true, addr: s.Addr, rkey: s.RKey, len: s.Len}
	}
}

// handleSinkWriteDone handles the completion of an RDMA WRITE.
func (c *Core) handleSinkWriteDone() { c.stats.addZeroCopyWritten(c.sinkWrite.complete()) }

// handleSinkAvailCancel handles a SinkAvailCancel. If the SinkAvail is complete, the message that
// completed it is in flight already.
func (c *Core) handleSinkAvailCancel() {
	if c.peerSink.live {
		c.peerSink.live = false
		c.queueControl(control{id: bsdh.MIDSinkCancelAck})
	}
}

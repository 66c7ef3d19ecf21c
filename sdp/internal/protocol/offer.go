package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
)

// An offer is local memory that the peer may read (SrcAvail). At most one exists; the memory
// belongs to the application again when it is not live.
type offer struct {
	live            bool
	cancelled       bool
	cancelSeq       uint64 // control number of the SrcAvailCancel once posted
	cancelDelivered bool   // the peer's adapter has acknowledged the SrcAvailCancel
	total           int    // bytes offered
	inline          int    // of these, sent in the SrcAvail itself
	readByPeer      int    // of these, read by the peer
	refused         bool   // the peer requested the remaining bytes as Data messages
}

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
	c.stats.BytesWritten += uint64(c.offer.inline)
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
	c.stats.BytesWritten += uint64(n)
	c.stats.ZeroCopySent += uint64(n)
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

package protocol

import (
	"github.com/softrnic/softrnic/wire/bsdh"
)

// offer is memory of our application that the peer may read (SrcAvail): there is
// one at a time, and it is the application's again when it is not live.
type offer struct {
	live            bool
	cancelled       bool
	cancelSeq       uint64 // number of the SrcAvailCancel among the controls, when it is posted
	cancelDelivered bool   // and it has arrived at the peer's adapter
	total           int    // bytes
	inline          int    // of these, sent with the SrcAvail itself
	readByPeer      int    // of these, read by the peer
	refused         bool   // the peer wants the rest in messages
}

// CanOffer reports whether the peer takes a SrcAvail now. What has been written
// before goes first by itself.
func (c *Core) CanOffer() bool {
	return c.err == nil && !c.closing && !c.offer.live && !c.peerSink.live &&
		c.mode.send != bsdh.Buffered && c.peer.MaxAdverts > 0 && c.canSpill() && c.mayLend()
}

// Offer advertises memory that p is the content of, at addr in the peer's terms.
// The peer may read it until [Core.Offered] says that it is done. CanOffer is
// true.
func (c *Core) Offer(p []byte, addr uint64, rkey uint32) {
	m := control{id: bsdh.MIDSrcAvail}
	bsdh.SrcAvail{Len: uint32(len(p)), RKey: rkey, Addr: addr}.Append(m.ext[:0])
	c.offer = offer{live: true, total: len(p)}
	if c.mode.send == bsdh.Combined { // the standard wants a byte with it
		m.extra = []byte{p[0]}
		c.offer.inline = 1
	}
	c.stats.Offers++
	if c.offer.inline == len(p) { // and others without it
		c.offer.inline = 0
		c.endOffer(true)
		return
	}
	c.queueControl(m)
	c.buildRequests()
}

// Offered reports how many bytes of the offer the peer has, and whether that is
// the end of it: all, or as many as it wanted.
func (c *Core) Offered() (n int, done bool) {
	return c.offer.inline + c.offer.readByPeer, !c.offer.live
}

// OfferRefused reports whether the peer wanted the last offer, or the rest of it, in messages.
func (c *Core) OfferRefused() bool { return c.offer.refused }

// Offering reports whether the peer may still read what Offer gave it.
func (c *Core) Offering() bool { return c.offer.live }

// CancelOffer asks for the memory back. The answer is in Offered.
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

// handleRdmaRdCompl takes the peer's word that it has read n bytes more.
func (c *Core) handleRdmaRdCompl(n uint32, flags bsdh.Flags) {
	o := &c.offer
	if !o.live || c.isQueued(bsdh.MIDSrcAvail) || uint64(n) > uint64(o.total-o.inline-o.readByPeer) {
		c.violation("RdmaRdCompl of %d bytes, which were not offered", n)
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

// handleSendSm takes the peer's word that it wants the rest in messages.
func (c *Core) handleSendSm() {
	if !c.offer.live || c.isQueued(bsdh.MIDSrcAvail) {
		c.violation("SendSm without a SrcAvail")
		return
	}
	c.offer.refused = true
	c.endOffer(true)
}

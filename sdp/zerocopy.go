package sdp

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// withRegistered calls f with a memory region of p, and deregisters it afterwards. c.mu must be
// held; it is released during the deregistration.
func (c *Conn) withRegistered(p []byte, access verbs.AccessFlags, f func(mr verbs.MR)) error {
	mr, err := c.stack.pd.RegMR(p, access)
	if err != nil {
		return err
	}
	f(mr)
	c.mu.Unlock() // Close blocks until the adapter no longer accesses the memory
	err = mr.Close()
	c.mu.Lock()
	return err
}

// sinkWait is the time that a Write waits for the peer to offer memory, 50 us, if the last Write
// was written to such memory: the next Read usually follows at once.
const sinkWait = 50 * time.Microsecond

// writeDirect transfers as much of p as possible without a copy: into memory that the peer
// offers (SinkAvail), or by offering p to the peer (SrcAvail). It returns 0 if p should be copied.
func (c *Conn) writeDirect(p []byte) (n int, err error) {
	p = p[:min(len(p), protocol.MaxTransfer)]
	if c.lastToSink && c.core.PeerSinkLen() == 0 {
		c.waitForTimeout((*peerSinkOffered)(c), sinkWait, c.writeDeadline)
	}
	if c.lastToSink = c.core.PeerSinkLen() > 0; c.lastToSink {
		return c.writeToSink(p)
	}
	if c.offersToSkip > 0 {
		c.offersToSkip--
		return 0, nil
	}
	if !c.core.CanOffer() && c.core.RequestReceiveUpdate() {
		c.postPending()
		c.waitForTimeout((*offerAllowed)(c), c.stack.options.OfferTime, c.writeDeadline)
	}
	if !c.core.CanOffer() {
		return 0, nil
	}
	mrErr := c.withRegistered(p, verbs.AccessRemoteRead, func(mr verbs.MR) {
		c.core.Offer(p, mr.Addr(), mr.RKey())
		c.core.SpillRing() // unread data may block the reply
		c.postPending()
		c.waitForTimeout((*offerEnded)(c), c.stack.options.OfferTime, c.writeDeadline)
		answered := !c.core.Offering()
		if !answered {
			c.core.CancelOffer()
			c.postPending()
		}
		c.reclaimMemory((*offerEnded)(c), len(p))
		n, _ = c.core.Offered()
		if answered {
			c.recordOfferResult(!c.core.OfferRefused())
		}
	})
	return n, mrErr
}

// maxOfferRefusals bounds the exponent: at most 32 Writes are copied before the next offer.
const maxOfferRefusals = 6

// recordOfferResult records whether the peer wanted the last offer. A peer with small Reads
// prefers copies, and each refused offer costs several messages and the time until the refusal.
// After two consecutive refusals the next Writes make no offer, twice as many each time
// (exponential backoff).
func (c *Conn) recordOfferResult(wanted bool) {
	if wanted {
		c.offerRefusals = 0
		return
	}
	if c.offerRefusals = min(c.offerRefusals+1, maxOfferRefusals); c.offerRefusals > 1 {
		c.offersToSkip = 1 << (c.offerRefusals - 1)
	}
}

// writeToSink writes p to memory offered by the peer (SinkAvail) by an RDMA WRITE.
func (c *Conn) writeToSink(p []byte) (n int, err error) {
	p = p[:min(len(p), c.core.PeerSinkLen())]
	mrErr := c.withRegistered(p, 0, func(mr verbs.MR) {
		c.core.WritePeerSink(mr.SGE(0, len(p)))
		c.postPending()
		c.waitFor((*peerSinkWritten)(c), c.writeDeadline)
		c.reclaimMemory((*peerSinkWritten)(c), len(p))
		n, _ = c.core.PeerSinkWritten()
	})
	return n, mrErr
}

// readFromSource reads memory offered by the peer (SrcAvail) by an RDMA READ. If p is shorter
// than the zero-copy threshold and than the offer, it refuses the offer, because each RDMA READ
// costs a round trip.
func (c *Conn) readFromSource(p []byte) (n int, err error) {
	p = p[:min(len(p), c.core.PeerSourceLen(), protocol.MaxTransfer)]
	if c.zeroCopy <= 0 || len(p) < c.zeroCopy && len(p) < c.core.PeerSourceLen() {
		c.core.RefuseSource()
		c.postPending()
		return 0, nil
	}
	mrErr := c.withRegistered(p, verbs.AccessLocalWrite, func(mr verbs.MR) {
		c.core.ReadPeerSource(mr.SGE(0, len(p)))
		c.postPending()
		c.waitFor((*sourceRead)(c), c.readDeadline)
		c.reclaimMemory((*sourceRead)(c), len(p))
		n, _ = c.core.PeerSourceRead()
	})
	c.lastZeroCopy = true
	return n, mrErr
}

// shouldOfferSink reports whether a Read should offer p to the peer: p is large, and the last
// bytes came by zero-copy.
func (c *Conn) shouldOfferSink(p []byte) bool {
	if c.zeroCopy <= 0 || len(p) < c.zeroCopy || !c.lastZeroCopy {
		return false
	}
	if c.core.CanOfferSink() {
		return true
	}
	c.core.RequestReceiveUpdate()
	c.postPending()
	return false
}

// offerSink offers p to the peer (SinkAvail) and waits until data arrives.
func (c *Conn) offerSink(p []byte) (n int, err error) {
	p = p[:min(len(p), protocol.MaxTransfer)]
	mrErr := c.withRegistered(p, verbs.AccessLocalWrite|verbs.AccessRemoteWrite, func(mr verbs.MR) {
		c.core.OfferSink(mr.Addr(), mr.RKey(), len(p))
		c.postPending()
		c.waitFor((*sinkFilled)(c), c.readDeadline)
		if c.core.SinkActive() {
			c.core.CancelSink()
			c.postPending()
		}
		c.reclaimMemory((*sinkEnded)(c), len(p))
		n, _ = c.core.SinkWritten()
	})
	c.lastZeroCopy = n > 0
	return n, mrErr
}

// reclaimMemory waits, regardless of deadlines, until lent memory of the given length belongs to
// the application again: until the peer has replied or its adapter has failed. A live peer that
// does not reply in time violates the protocol, and the connection is reset.
func (c *Conn) reclaimMemory(w progress.Waitable, bytes int) {
	if w.Ready() {
		return
	}
	timeout := c.stack.returnTime + time.Duration(bytes>>20)*time.Second
	c.waitForTimeout(w, timeout, c.endDeadline)
	if !w.Ready() {
		c.core.Fail(fmt.Errorf("%w: lent memory not returned within %v of the request", ErrProtocol, timeout))
		_ = c.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // the adapter no longer accesses the memory
		c.progress.Notify()
	}
}

// Conditions of zero-copy transfers. Those for lent memory do not end with CloseRead, CloseWrite
// or Close, because the memory must be reclaimed first.
type (
	peerSinkOffered Conn // the peer has offered memory
	offerAllowed    Conn // a SrcAvail may be sent, or is not needed
	offerEnded      Conn // the SrcAvail is complete, or a SinkAvail precedes it
	peerSinkWritten Conn // the RDMA WRITE is complete
	sourceRead      Conn // the RDMA READ is complete
	sinkFilled      Conn // data for the SinkAvail has arrived, or CloseRead was called
	sinkEnded       Conn // the SinkAvail is complete
)

// Ready implements progress.Waitable.
func (c *peerSinkOffered) Ready() bool {
	return c.core.Err() != nil || c.closed || c.writeShut || c.core.PeerSinkLen() > 0
}

// Ready implements progress.Waitable.
func (c *offerAllowed) Ready() bool {
	return c.core.Err() != nil || c.core.CanOffer() || c.core.PeerSinkLen() > 0
}

// Ready implements progress.Waitable.
func (c *offerEnded) Ready() bool {
	return c.core.Err() != nil || !c.core.Offering() || c.core.PeerSinkLen() > 0
}

// Ready implements progress.Waitable.
func (c *peerSinkWritten) Ready() bool { return c.core.Err() != nil || !c.core.WritingPeerSink() }

// Ready implements progress.Waitable.
func (c *sourceRead) Ready() bool { return c.core.Err() != nil || !c.core.ReadingPeerSource() }

// Ready implements progress.Waitable.
func (c *sinkFilled) Ready() bool {
	return c.closed || c.readShut || (*sinkEnded)(c).Ready()
}

// Ready implements progress.Waitable.
func (c *sinkEnded) Ready() bool { return c.core.Err() != nil || !c.core.SinkActive() }

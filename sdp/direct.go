package sdp

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// withRegistered registers the application's memory for as long as f runs. The lock is
// held.
func (c *Conn) withRegistered(p []byte, access verbs.AccessFlags, f func(mr verbs.MR)) error {
	mr, err := c.stack.pd.RegMR(p, access)
	if err != nil {
		return err
	}
	f(mr)
	c.mu.Unlock() // it waits until the adapter does not touch the memory any more
	err = mr.Dereg()
	c.mu.Lock()
	return err
}

// sinkWait is how long a Write waits for the peer to offer memory, if it did so
// the last time: a Read that has just returned is soon called again.
const sinkWait = 50 * time.Microsecond

// writeDirect gives the peer as much of p as it wants to have without a copy: it
// writes it where the peer waits for it, or offers it to be read. 0 means that
// it is to be copied.
func (c *Conn) writeDirect(p []byte) (n int, err error) {
	p = p[:min(len(p), protocol.MaxTransfer)]
	if c.lastToSink && c.core.PeerSinkLen() == 0 {
		c.waitForAtMost(waitPeerSink, sinkWait, c.writeDeadline)
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
		c.waitForAtMost(waitCanOffer, c.stack.options.OfferTime, c.writeDeadline)
	}
	if !c.core.CanOffer() {
		return 0, nil
	}
	lent := c.withRegistered(p, verbs.AccessRemoteRead, func(mr verbs.MR) {
		c.core.Offer(p, mr.Addr(), mr.RKey())
		c.core.SpillRing() // what is here may be in the way of the answer
		c.postPending()
		c.waitForAtMost(waitOfferEnd, c.stack.options.OfferTime, c.writeDeadline)
		answered := !c.core.Offering()
		if !answered {
			c.core.CancelOffer()
			c.postPending()
		}
		c.reclaimMemory(waitOfferEnd, len(p))
		n, _ = c.core.Offered()
		if answered {
			c.recordOfferResult(!c.core.OfferRefused())
		}
	})
	return n, lent
}

// maxOfferRefusals are counted: 32 Writes go by at most before memory is offered again.
const maxOfferRefusals = 6

// recordOfferResult takes note of whether the peer wanted what was offered. One whose Reads are small
// wants copies: each offer costs it and us several messages, and the time until it is refused.
// After two in a row the next Writes do without, twice as many each time.
func (c *Conn) recordOfferResult(wanted bool) {
	if wanted {
		c.offerRefusals = 0
		return
	}
	if c.offerRefusals = min(c.offerRefusals+1, maxOfferRefusals); c.offerRefusals > 1 {
		c.offersToSkip = 1 << (c.offerRefusals - 1)
	}
}

// writeToSink writes to the memory of a waiting peer.
func (c *Conn) writeToSink(p []byte) (n int, err error) {
	p = p[:min(len(p), c.core.PeerSinkLen())]
	lent := c.withRegistered(p, 0, func(mr verbs.MR) {
		c.core.WritePeerSink(mr.SGE(0, len(p)))
		c.postPending()
		c.waitFor(waitSinkWrite, c.writeDeadline)
		c.reclaimMemory(waitSinkWrite, len(p))
		n, _ = c.core.PeerSinkWritten()
	})
	return n, lent
}

// readFromSource reads what the peer offers. Who asks for less at a time than is worth to go
// without a copy gets it in messages: an RDMA READ for each piece is a round trip for each.
func (c *Conn) readFromSource(p []byte) (n int, err error) {
	p = p[:min(len(p), c.core.PeerSourceLen(), protocol.MaxTransfer)]
	if c.zeroCopy <= 0 || len(p) < c.zeroCopy && len(p) < c.core.PeerSourceLen() {
		c.core.RefuseSource()
		c.postPending()
		return 0, nil
	}
	lent := c.withRegistered(p, verbs.AccessLocalWrite, func(mr verbs.MR) {
		c.core.ReadPeerSource(mr.SGE(0, len(p)))
		c.postPending()
		c.waitFor(waitSourceRead, c.readDeadline)
		c.reclaimMemory(waitSourceRead, len(p))
		n, _ = c.core.PeerSourceRead()
	})
	c.lastZeroCopy = true
	return n, lent
}

// shouldOfferSink reports whether a Read is to offer its memory: it is large, and
// what came last was large enough to come without a copy.
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

// offerSink offers memory to the peer and waits until something is there.
func (c *Conn) offerSink(p []byte) (n int, err error) {
	p = p[:min(len(p), protocol.MaxTransfer)]
	lent := c.withRegistered(p, verbs.AccessLocalWrite|verbs.AccessRemoteWrite, func(mr verbs.MR) {
		c.core.OfferSink(mr.Addr(), mr.RKey(), len(p))
		c.postPending()
		c.waitFor(waitSinkData, c.readDeadline)
		if c.core.SinkActive() {
			c.core.CancelSink()
			c.postPending()
		}
		c.reclaimMemory(waitSinkEnd, len(p))
		n, _ = c.core.SinkWritten()
	})
	c.lastZeroCopy = n > 0
	return n, lent
}

// waitForAtMost waits for a wish, at most for a time or until d has ended.
func (c *Conn) waitForAtMost(w waitCond, long time.Duration, d *deadline) {
	limit := newDeadline()
	limit.set(time.Now().Add(long))
	stop := d.moment.AfterFunc(limit.moment.Cancel)
	c.waitFor(w, limit)
	stop()
	limit.set(time.Time{})
}

// returnTime is how long a peer may take to give back lent memory that we want
// to have back. What has to travel meanwhile gets a second more for each MiB.
const returnTime = time.Minute

// reclaimMemory waits until memory of so many bytes that was lent is the application's
// own again, whatever the deadline: until the peer or the adapter has given the
// answer that it owes. The adapter of a peer that is gone is an answer, too. A
// peer that is there and gives none does not keep to SDP.
func (c *Conn) reclaimMemory(w waitCond, bytes int) {
	if c.isMet(w) {
		return
	}
	long := c.stack.returnTime + time.Duration(bytes>>20)*time.Second
	c.waitForAtMost(w, long, c.endDeadline)
	if !c.isMet(w) {
		c.core.Fail(fmt.Errorf("%w: it has not given back memory that was lent to it, %v after it was asked to", ErrProtocol, long))
		_ = c.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // nothing touches it any more
		c.wakeWaiters()
	}
}

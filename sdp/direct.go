package sdp

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// lend registers the application's memory for as long as f runs. The lock is
// held.
func (c *Conn) lend(p []byte, access verbs.AccessFlags, f func(mr verbs.MR)) error {
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

// sinkTime is how long a Write waits for the peer to offer memory, if it did so
// the last time: a Read that has just returned is soon called again.
const sinkTime = 50 * time.Microsecond

// writeDirect gives the peer as much of p as it wants to have without a copy: it
// writes it where the peer waits for it, or offers it to be read. 0 means that
// it is to be copied.
func (c *Conn) writeDirect(p []byte) (n int, err error) {
	p = p[:min(len(p), protocol.MostAtOnce)]
	if c.sinking && c.core.Drain() == 0 {
		c.patience(toDrain, sinkTime, c.writeLimit)
	}
	if c.sinking = c.core.Drain() > 0; c.sinking {
		return c.place(p)
	}
	if c.abstain > 0 {
		c.abstain--
		return 0, nil
	}
	if !c.core.CanOffer() && c.core.Ask() {
		c.post()
		c.patience(toLend, c.stack.options.OfferTime, c.writeLimit)
	}
	if !c.core.CanOffer() {
		return 0, nil
	}
	lent := c.lend(p, verbs.AccessRemoteRead, func(mr verbs.MR) {
		c.core.Offer(p, mr.Addr(), mr.RKey())
		c.core.Spill() // what is here may be in the way of the answer
		c.post()
		c.patience(toOffer, c.stack.options.OfferTime, c.writeLimit)
		answered := !c.core.Offering()
		if !answered {
			c.core.CancelOffer()
			c.post()
		}
		c.reclaim(toOffer, len(p))
		n, _ = c.core.Offered()
		if answered {
			c.learnOffers(!c.core.OfferRefused())
		}
	})
	return n, lent
}

// mostRefusals are counted: 32 Writes go by at most before memory is offered again.
const mostRefusals = 6

// learnOffers takes note of whether the peer wanted what was offered. One whose Reads are small
// wants copies: each offer costs it and us several messages, and the time until it is refused.
// After two in a row the next Writes do without, twice as many each time.
func (c *Conn) learnOffers(wanted bool) {
	if wanted {
		c.refusals = 0
		return
	}
	if c.refusals = min(c.refusals+1, mostRefusals); c.refusals > 1 {
		c.abstain = 1 << (c.refusals - 1)
	}
}

// place writes to the memory of a waiting peer.
func (c *Conn) place(p []byte) (n int, err error) {
	p = p[:min(len(p), c.core.Drain())]
	lent := c.lend(p, 0, func(mr verbs.MR) {
		c.core.Place(mr.SGE(0, len(p)))
		c.post()
		c.wait(toPlace, c.writeLimit)
		c.reclaim(toPlace, len(p))
		n, _ = c.core.Placed()
	})
	return n, lent
}

// fetch reads what the peer offers. Who asks for less at a time than is worth to go
// without a copy gets it in messages: an RDMA READ for each piece is a round trip for each.
func (c *Conn) fetch(p []byte) (n int, err error) {
	p = p[:min(len(p), c.core.Available(), protocol.MostAtOnce)]
	if c.zeroCopy <= 0 || len(p) < c.zeroCopy && len(p) < c.core.Available() {
		c.core.Refuse()
		c.post()
		return 0, nil
	}
	lent := c.lend(p, verbs.AccessLocalWrite, func(mr verbs.MR) {
		c.core.Fetch(mr.SGE(0, len(p)))
		c.post()
		c.wait(toFetch, c.readDeadline)
		c.reclaim(toFetch, len(p))
		n, _ = c.core.Fetched()
	})
	c.large = true
	return n, lent
}

// shouldSink reports whether a Read is to offer its memory: it is large, and
// what came last was large enough to come without a copy.
func (c *Conn) shouldSink(p []byte) bool {
	if c.zeroCopy <= 0 || len(p) < c.zeroCopy || !c.large {
		return false
	}
	if c.core.CanSink() {
		return true
	}
	c.core.Ask()
	c.post()
	return false
}

// sink offers memory to the peer and waits until something is there.
func (c *Conn) sink(p []byte) (n int, err error) {
	p = p[:min(len(p), protocol.MostAtOnce)]
	lent := c.lend(p, verbs.AccessLocalWrite|verbs.AccessRemoteWrite, func(mr verbs.MR) {
		c.core.Sink(mr.Addr(), mr.RKey(), len(p))
		c.post()
		c.wait(toSunk, c.readDeadline)
		if c.core.Sinking() {
			c.core.CancelSink()
			c.post()
		}
		c.reclaim(toSink, len(p))
		n, _ = c.core.Sunk()
	})
	c.large = n > 0
	return n, lent
}

// patience waits for a wish, at most for a time or until d has ended.
func (c *Conn) patience(w wish, long time.Duration, d *deadline) {
	limit := newDeadline()
	limit.set(time.Now().Add(long))
	stop := d.moment.AfterFunc(limit.moment.Cancel)
	c.wait(w, limit)
	stop()
	limit.set(time.Time{})
}

// returnTime is how long a peer may take to give back lent memory that we want
// to have back. What has to travel meanwhile gets a second more for each MiB.
const returnTime = time.Minute

// reclaim waits until memory of so many bytes that was lent is the application's
// own again, whatever the deadline: until the peer or the adapter has given the
// answer that it owes. The adapter of a peer that is gone is an answer, too. A
// peer that is there and gives none does not keep to SDP.
func (c *Conn) reclaim(w wish, bytes int) {
	if c.granted(w) {
		return
	}
	long := c.stack.returnTime + time.Duration(bytes>>20)*time.Second
	c.patience(w, long, c.torn)
	if !c.granted(w) {
		c.core.Fail(fmt.Errorf("%w: it has not given back memory that was lent to it, %v after it was asked to", ErrProtocol, long))
		_ = c.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // nothing touches it any more
		c.notify()
	}
}

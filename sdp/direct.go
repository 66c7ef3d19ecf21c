package sdp

import (
	"net"
	"os"
	"time"

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

// mostDirect bounds one operation.
const mostDirect = 1 << 30

// writeDirect gives the peer as much of p as it wants to have without a copy: it
// writes it where the peer waits for it, or offers it to be read. 0 means that
// it is to be copied.
func (c *Conn) writeDirect(p []byte) (n int, err error) {
	p = p[:min(len(p), mostDirect)]
	if c.core.Drain() > 0 {
		return c.place(p)
	}
	if !c.core.CanOffer() {
		return 0, nil
	}
	lent := c.lend(p, verbs.AccessRemoteRead, func(mr verbs.MR) {
		c.core.Offer(p, mr.Addr(), mr.RKey())
		c.post()
		c.patience(toOffer, c.stack.options.OfferTime, c.writeLimit)
		if c.core.Drain() == 0 && c.core.Offering() {
			c.core.CancelOffer()
			c.post()
		}
		c.settle(toOffer)
		n, _ = c.core.Offered()
	})
	return n, c.failed(lent)
}

// place writes to the memory of a waiting peer.
func (c *Conn) place(p []byte) (n int, err error) {
	p = p[:min(len(p), c.core.Drain())]
	lent := c.lend(p, 0, func(mr verbs.MR) {
		c.core.Place(mr.SGE(0, len(p)))
		c.post()
		c.settle(toPlace)
		n, _ = c.core.Placed()
	})
	return n, c.failed(lent)
}

// smallest Read that is worth an RDMA READ of its own.
const fetchLeast = 4 << 10

// fetch reads what the peer offers. Who asks for a little at a time gets it in
// messages.
func (c *Conn) fetch(p []byte) (n int, err error) {
	p = p[:min(len(p), c.core.Available(), mostDirect)]
	if len(p) < fetchLeast && len(p) < c.core.Available() {
		c.core.Refuse()
		c.post()
		return 0, nil
	}
	lent := c.lend(p, verbs.AccessLocalWrite, func(mr verbs.MR) {
		c.core.Fetch(mr.SGE(0, len(p)))
		c.post()
		c.settle(toFetch)
		n, _ = c.core.Fetched()
	})
	return n, c.failed(lent)
}

// shouldSink reports whether a Read is to offer its memory: it is large, and
// so was what came last.
func (c *Conn) shouldSink(p []byte) bool {
	return c.zeroCopy > 0 && len(p) >= c.zeroCopy && c.stack.options.SinkAvail && c.core.CanSink()
}

// sink offers memory to the peer and waits until something is there.
func (c *Conn) sink(p []byte) (n int, err error) {
	p = p[:min(len(p), mostDirect)]
	lent := c.lend(p, verbs.AccessLocalWrite|verbs.AccessRemoteWrite, func(mr verbs.MR) {
		c.core.Sink(mr.Addr(), mr.RKey(), len(p))
		c.post()
		c.wait(toSink, c.readDeadline)
		if c.core.Sinking() {
			c.core.CancelSink()
			c.post()
		}
		c.settle(toSink)
		n, _ = c.core.Sunk()
	})
	return n, c.failed(lent)
}

// failed is what a lending that brought nothing has to say.
func (c *Conn) failed(lent error) error {
	if lent != nil {
		return lent
	}
	return nil
}

// patience waits for a wish, at most for a time or until d has ended.
func (c *Conn) patience(w wish, long time.Duration, d *deadline) {
	limit := newDeadline()
	limit.set(time.Now().Add(long))
	stop := d.moment.AfterFunc(limit.moment.end)
	c.wait(w, limit)
	stop()
	limit.set(time.Time{})
}

// settle waits for what the peer or the adapter must answer before the
// application's memory is its own again, whatever the deadline. The adapter
// answers in any case: by a failure, if the peer does not.
func (c *Conn) settle(w wish) {
	c.wait(w, c.forever())
}

// forever is a deadline that never comes, but for the end of the connection.
func (c *Conn) forever() *deadline { return newDeadline() }

var _ = net.ErrClosed
var _ = os.ErrDeadlineExceeded

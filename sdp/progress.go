package sdp

import (
	"errors"
	"os"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// wish is what a call waits for.
type wish int

const (
	toRead  wish = iota // something to read, or the end
	toWrite             // room in the send buffer
	toFetch             // the end of an RDMA READ
	toSink              // of a SinkAvail
	toSunk              // the same, or the end of reading
	toPlace             // of an RDMA WRITE
	toOffer             // of a SrcAvail
	toLend              // the right time for one
	toDrain             // memory of the peer to write to
	toClose             // of the connection
	waits
)

// granted reports whether a call need not wait any more.
func (c *Conn) granted(w wish) bool {
	if c.core.Err() != nil {
		return true
	}
	switch w {
	case toRead, toWrite, toDrain:
		if c.closed || w == toRead && c.readShut || w != toRead && c.writeShut {
			return true
		}
	case toSunk:
		if c.closed || c.readShut {
			return true
		}
	} // others wait for memory that is lent
	switch w {
	case toRead:
		return c.core.Buffered() > 0 || c.core.Finished() || c.core.Available() > 0
	case toWrite:
		return c.core.Writable() || c.core.Closing()
	case toFetch:
		return !c.core.Fetching()
	case toSink, toSunk:
		return !c.core.Sinking()
	case toPlace:
		return !c.core.Placing()
	case toDrain:
		return c.core.Drain() > 0
	case toLend:
		return c.core.CanOffer() || c.core.Drain() > 0
	case toOffer:
		return !c.core.Offering() || c.core.Drain() > 0
	}
	return c.ended
}

// waiter is a call that waits.
type waiter struct {
	wake chan struct{}
}

// wait returns when a wish may be granted, or d has ended. The first to wait
// serves the adapter for all, and hands that on when it has what it wants. The
// lock is held, but not meanwhile.
func (c *Conn) wait(w wish, d *deadline) {
	if c.core.Held() > 0 { // room for it may have come outside of calls
		if w == toRead && c.writing.TryLock() { // for an answer, perhaps; nobody adds to it
			c.core.Push()
			c.writing.Unlock()
		} else {
			c.core.Resume()
		}
		c.post()
	}
	c.measure()
	for !c.granted(w) && !d.past() {
		if !c.pumping {
			c.pump(d)
			continue
		}
		me := &waiter{make(chan struct{}, 1)}
		c.waiting[w] = me
		m := d.moment
		c.mu.Unlock()
		select {
		case <-me.wake:
		case <-m.Done():
		}
		c.mu.Lock()
		c.waiting[w] = nil
	}
	c.notify()
}

// pump waits for completions and handles them.
func (c *Conn) pump(d *deadline) {
	c.pumping = true
	m := d.moment
	c.mu.Unlock()
	n, err := c.cq.PollWait(m, c.wcs[:])
	c.mu.Lock()
	c.pumping = false
	c.take(c.wcs[:n])
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.lost(err)
	}
}

// poll handles the completions that are there, without a system call, and
// reports whether there were any. They are the pumping call's if there is one, and nobody's
// once the connection has ended, whose memory may be gone.
func (c *Conn) poll() (some bool) {
	for !c.pumping && !c.ended && c.cq.Len() > 0 {
		n, err := c.cq.Poll(c.wcs[:])
		c.take(c.wcs[:n])
		if err != nil {
			c.lost(err)
			return true
		}
		some = true
	}
	return some
}

// aheadLooks is how many looks in a row find nothing before a writer is thought to be no
// faster than the reader.
const aheadLooks = 4

// look has a look at the adapter for a reader who has given the peer a receive, while the writer
// is faster. That one has filled what there was and waits for the acknowledgement, which brings
// word of the receive: a reader who looks when nothing is left to be read has it wait so long.
func (c *Conn) look() {
	if c.pumping || c.ended {
		return
	}
	c.looks--
	n, err := c.cq.Poll(c.wcs[:])
	if n > 0 {
		c.take(c.wcs[:n])
	}
	if err != nil {
		c.lost(err)
	}
}

// take handles completions.
func (c *Conn) take(wcs []verbs.WC) {
	for i := range wcs {
		c.core.Complete(&wcs[i])
		if len(c.core.Receives()) > 32 {
			c.post()
		}
	}
	c.heard += uint64(len(wcs))
	c.post()
	if len(wcs) > 0 {
		c.looks = 0
		if c.design == flow.NIC && c.core.Crowded() {
			c.looks = aheadLooks
		}
	}
	if c.core.Offering() && c.core.Spill() > 0 {
		c.post()
	}
	c.resize()
	c.signalUrgent()
	if c.closed {
		c.discard()
	}
	c.measure()
	c.notify()
}

// notify wakes those who have what they wait for and, if nobody pumps, one who
// will.
func (c *Conn) notify() {
	needed := !c.pumping
	for w, me := range c.waiting {
		if me != nil && (needed || c.granted(wish(w))) {
			needed = false
			select {
			case me.wake <- struct{}{}:
			default:
			}
		}
	}
}

// post gives the adapter what the core has for it.
func (c *Conn) post() {
	if rs := c.core.Receives(); len(rs) > 0 {
		if _, err := c.qp.PostRecv(rs); err != nil {
			c.lost(err)
		}
	}
	if ss := c.core.Sends(); len(ss) > 0 {
		if _, err := c.qp.PostSend(ss); err != nil {
			c.lost(err)
		}
	}
	c.core.Posted()
}

// lost ends a connection that the adapter has failed.
func (c *Conn) lost(err error) { c.core.Fail(err) }

// enter is the beginning of every call that ends with leave: it looks after the
// connection now, so no event need wake watch, which would wait for the lock.
func (c *Conn) enter() {
	if c.armed {
		c.armed = false
		c.cq.Disarm()
	}
}

// leave is the end of every call: who looks after the connection now?
func (c *Conn) leave() {
	c.measure()
	c.calls++
	switch {
	case c.ended || c.pumping:
	case c.urgent():
		c.arm()
		c.after()
	case !c.armed && !c.listed:
		c.listed = true
		c.stack.list(c)
	}
}

// urgent reports whether the next completion should be handled at once, even
// if no call comes. What the RDMA design holds back waits for one.
func (c *Conn) urgent() bool {
	return c.closed || c.core.Closing() || c.design != flow.RDMA && c.core.Held() > 0
}

// arm makes interrupt, or watch, take care of the next completion, and takes care of
// those that are there.
func (c *Conn) arm() {
	if c.armed {
		return
	}
	c.armed = true
	if err := c.cq.ReqNotify(false); err != nil {
		c.lost(err)
		return
	}
	c.poll()
}

// event handles the one that the queue was armed for: there are completions. What is held
// back leaves now, without company (section 5.2): no call has come to bring any. The
// lock is held.
func (c *Conn) event() {
	c.armed = false
	if c.ended {
		return
	}
	c.resize() // what interrupt has left
	if c.pumping {
		return // the pump hands over when it leaves
	}
	if c.urgent() {
		c.arm()
	}
	c.aside((*Conn).poll)
	if c.urgent() && c.core.Held() > 0 {
		c.core.Push()
		c.post()
	}
	c.after()
	if !c.ended && !c.armed && !c.listed {
		c.listed = true
		c.stack.list(c)
	}
}

// handOver is the patrol's: it reports whether it need not look again.
func (c *Conn) handOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.armed || c.pumping { // a call that waits lists it again when it leaves
		c.listed = false
		return true
	}
	if c.calls != c.seen {
		c.seen = c.calls
		return false
	}
	c.listed = false
	c.aside(func(c *Conn) bool { c.arm(); return true })
	c.after()
	return true
}

// aside does something outside of any call of the application.
func (c *Conn) aside(f func(*Conn) bool) {
	c.core.Calm(c.design == flow.RDMA && !c.closed && !c.core.Closing())
	f(c)
	c.core.Calm(false)
}

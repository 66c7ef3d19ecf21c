package rnic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// CQ is a completion queue. The engine adds completions, with its shard's
// lock held; any goroutine polls.
type CQ struct {
	dev   *Device
	num   uint32
	shard *shard // whose socket a waiter reads; the shard of the first queue pair

	ready  atomic.Int32 // completions waiting: lets Poll see an empty queue without the lock
	failed atomic.Bool  // closed or overrun

	mu      sync.Mutex
	ring    []verbs.WC // grows up to depth
	head    int
	n       int
	depth   int
	armed   arming
	overrun bool
	closed  bool
	users   int // queue pairs

	fired   atomic.Bool           // the armed event happened and no Wait has taken it
	leading atomic.Pointer[shard] // whose socket a waiter of this queue serves, if one does
	wake    chan struct{}
}

// arming is what ReqNotify asked for.
type arming uint8

const (
	disarmed arming = iota
	armedSolicited
	armedAny
)

// CreateCQ makes a completion queue for depth completions. Its memory grows
// with what waits in it.
func (d *Device) CreateCQ(depth int) (verbs.CQ, error) {
	const op = "create CQ"
	if depth < 1 || depth > maxCQE {
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrLimit, Detail: fmt.Sprintf("depth %d is not one of 1 to %d", depth, maxCQE)}
	}
	if d.isClosed() {
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrClosed}
	}
	if err := d.quota.take(kindCQ, op); err != nil {
		return nil, err
	}
	c := &CQ{dev: d, num: d.lastCQ.Add(1), shard: d.shards[0], depth: depth, wake: make(chan struct{}, 1)}
	d.track(c)
	return c, nil
}

// push adds a completion. It is called with the lock of a shard held.
func (c *CQ) push(wc *verbs.WC, solicited bool) {
	c.mu.Lock()
	if c.n == c.depth || c.overrun {
		first := !c.overrun
		c.overrun = true
		c.failed.Store(true)
		c.mu.Unlock()
		if first {
			c.dev.raise(verbs.AsyncEvent{Type: verbs.EventCQErr, CQ: c, Why: &verbs.Failure{
				Event: fmt.Sprintf("a completion queue of %d overran", c.depth),
				Cause: "poll more often, or make it as deep as all queues that report to it together",
			}})
			c.fire()
		}
		return
	}
	if c.n == len(c.ring) {
		c.grow(min(max(2*len(c.ring), 16), c.depth))
	}
	at := c.head + c.n
	if at >= len(c.ring) {
		at -= len(c.ring)
	}
	c.ring[at] = *wc
	c.n++
	c.ready.Store(int32(c.n))
	fire := c.armed == armedAny || c.armed == armedSolicited && solicited
	if fire {
		c.armed = disarmed
	}
	c.mu.Unlock()
	if fire {
		c.fire()
	}
}

func (c *CQ) grow(size int) {
	ring := make([]verbs.WC, size)
	k := copy(ring[:c.n], c.ring[min(c.head, len(c.ring)):])
	copy(ring[k:c.n], c.ring)
	c.ring, c.head = ring, 0
}

// fire notes the event and wakes the waiter: one that is parked, or one that
// is asleep in the socket while the completion came another way.
func (c *CQ) fire() {
	c.fired.Store(true)
	if s := c.leading.Load(); s != nil && s.blocked.Load() {
		s.base.Wake()
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take moves completions to wc.
func (c *CQ) take(wc []verbs.WC) int {
	c.mu.Lock()
	n := min(len(wc), c.n)
	for i := range n {
		wc[i] = c.ring[c.head]
		c.ring[c.head].Why = nil
		c.head++
		if c.head == len(c.ring) {
			c.head = 0
		}
	}
	c.n -= n
	c.ready.Store(int32(c.n))
	c.mu.Unlock()
	return n
}

// Poll implements verbs.CQ. An empty queue makes it read the socket once.
func (c *CQ) Poll(wc []verbs.WC) (int, error) {
	if c.ready.Load() == 0 && len(wc) > 0 {
		c.dev.poll(c.shard, caller{cq: c})
		if c.ready.Load() == 0 {
			return 0, c.state()
		}
	}
	return c.take(wc), nil
}

// state is the error of an empty queue.
func (c *CQ) state() error {
	if !c.dev.closed.Load() && !c.failed.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed || c.dev.isClosed():
		return &verbs.OpError{Op: "poll CQ", Err: verbs.ErrClosed}
	case c.overrun:
		return &verbs.OpError{Op: "poll CQ", Err: verbs.ErrCQOverrun}
	}
	return nil
}

// ReqNotify implements verbs.CQ.
func (c *CQ) ReqNotify(solicitedOnly bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.dev.isClosed() {
		return &verbs.OpError{Op: "arm CQ", Err: verbs.ErrClosed}
	}
	want := armedAny
	if solicitedOnly {
		want = armedSolicited
	}
	c.armed = max(c.armed, want)
	return nil
}

// Wait implements verbs.CQ. The waiter serves the adapter while it waits: the
// first one reads the socket itself, so that its event costs one wake-up.
func (c *CQ) Wait(ctx context.Context) error {
	return c.dev.wait(ctx, c)
}

// event takes the event if it happened.
func (c *CQ) event() bool { return c.fired.Load() && c.fired.CompareAndSwap(true, false) }

// PollWait implements verbs.CQ.
func (c *CQ) PollWait(ctx context.Context, wc []verbs.WC) (int, error) {
	for {
		if n, err := c.Poll(wc); n > 0 || err != nil || len(wc) == 0 {
			return n, err
		}
		if err := c.ReqNotify(false); err != nil {
			return 0, err
		}
		if c.ready.Load() > 0 {
			continue
		}
		if err := c.Wait(ctx); err != nil {
			return 0, err
		}
	}
}

// Resize implements verbs.CQ.
func (c *CQ) Resize(depth int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return &verbs.OpError{Op: "resize CQ", Err: verbs.ErrClosed}
	case depth < 1 || depth > maxCQE:
		return &verbs.OpError{Op: "resize CQ", Err: verbs.ErrLimit, Detail: fmt.Sprintf("depth %d is not one of 1 to %d", depth, maxCQE)}
	case depth < c.n:
		return &verbs.OpError{Op: "resize CQ", Err: verbs.ErrInvalid, Detail: fmt.Sprintf("%d completions are waiting; poll them first", c.n)}
	}
	c.depth = depth
	c.grow(min(max(c.n, 16), depth))
	return nil
}

// Depth implements verbs.CQ.
func (c *CQ) Depth() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.depth
}

// use counts the queue pairs that report to the queue.
func (c *CQ) use(s *shard) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return verbs.ErrClosed
	}
	if c.users == 0 {
		c.shard = s
	}
	c.users++
	return nil
}

func (c *CQ) unuse() {
	c.mu.Lock()
	c.users--
	c.mu.Unlock()
}

// Destroy implements verbs.CQ.
func (c *CQ) Destroy() error {
	c.mu.Lock()
	if !c.closed && c.users > 0 {
		c.mu.Unlock()
		return &verbs.OpError{Op: "destroy CQ", Err: verbs.ErrBusy, Detail: "queue pairs report to it; destroy those first"}
	}
	c.mu.Unlock()
	c.close()
	return nil
}

// close ends the queue and wakes whoever waits on it.
func (c *CQ) close() {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.failed.Store(true)
	c.mu.Unlock()
	if !was {
		c.dev.untrack(c)
		c.dev.quota.give(kindCQ)
		c.fire()
		c.dev.wakeLeaders()
	}
}

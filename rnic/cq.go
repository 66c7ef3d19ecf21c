package rnic

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// CQ is a completion queue. The engine adds completions, with its shard's
// lock held; any goroutine polls.
type CQ struct {
	dev     *Device
	num     uint32
	channel *CompChannel          // gets the armed events, or nil: then Wait does
	shard   atomic.Pointer[shard] // whose socket a waiter reads; the shard of the first queue pair

	ready          atomic.Int32 // completions waiting: lets Poll see an empty queue without the lock
	failed         atomic.Bool  // closed, overrun, or of a device whose link failed
	managementOnly atomic.Bool  // serves management only: whoever waits on it never leads

	mu      sync.Mutex
	ring    []verbs.WC // grows up to depth
	head    int
	n       int
	depth   int
	armed   armState
	overrun bool
	closed  bool
	users   int // queue pairs
	node    eventNode

	pushed        uint64                 // completions ever,
	pushedAtCheck uint64                 // and when findStuck looked last
	blockedCalls  atomic.Int32           // blocked calls of Wait and PollWait
	hint          atomic.Pointer[string] // why nothing could complete while somebody waited

	eventPending  atomic.Bool     // the armed event happened and no Wait has taken it
	pollWaiters   atomic.Int32    // blocked calls of PollWait: each completion is an event to them
	parkedWaiters []chan struct{} // waiters that are asleep and not in a socket
	spareChans    []chan struct{} // for the next ones
	parkedCount   atomic.Int32    // len(parked)
}

// armState is what ReqNotify asked for.
type armState uint8

const (
	disarmed armState = iota
	armedSolicited
	armedAny
)

// CreateCQ makes a completion queue for depth completions. Its memory grows
// with what waits in it.
func (d *Device) CreateCQ(depth int) (verbs.CQ, error) { return d.createCQ(depth, nil) }

func (d *Device) createCQ(depth int, ch *CompChannel) (verbs.CQ, error) {
	const op = "create CQ"
	if depth < 1 || depth > maxCQE {
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrLimit, Detail: fmt.Sprintf("depth %d is not one of 1 to %d", depth, maxCQE)}
	}
	if err := d.checkUsable(op); err != nil {
		return nil, err
	}
	if err := d.quota.reserve(kindCQ, op); err != nil {
		return nil, err
	}
	if ch != nil {
		if err := ch.addUser(op); err != nil {
			d.quota.release(kindCQ)
			return nil, err
		}
	}
	c := &CQ{dev: d, num: d.lastCQ.Add(1), channel: ch, depth: depth}
	c.shard.Store(d.shards[0])
	d.trackCQ(c)
	return c, nil
}

// pushCompletion adds a completion, or returns false if the queue overran and it is lost.
// It is called with the lock of a shard held.
func (c *CQ) pushCompletion(wc *verbs.WC, solicited bool) bool {
	c.mu.Lock()
	if c.n == c.depth || c.overrun {
		first := !c.overrun
		c.overrun = true
		c.failed.Store(true)
		if c.channel != nil && c.armed != disarmed {
			c.armed = disarmed
			c.channel.enqueueEvent(c)
		}
		c.mu.Unlock()
		if first {
			c.dev.raiseEvent(verbs.AsyncEvent{Type: verbs.EventCQErr, CQ: c, Why: &verbs.Failure{
				Event: fmt.Sprintf("a completion queue of %d overran", c.depth),
				Cause: "it is lost: destroy it with its queue pairs; make one as deep as all queues that report to it together, or poll more often",
			}})
			c.wakeWaiters()
		}
		return false
	}
	if c.n == len(c.ring) {
		c.resizeRing(min(max(2*len(c.ring), 16), c.depth))
	}
	at := c.head + c.n
	if at >= len(c.ring) {
		at -= len(c.ring)
	}
	c.ring[at] = *wc
	c.n++
	c.pushed++
	c.ready.Store(int32(c.n))
	event := c.armed == armedAny || c.armed == armedSolicited && solicited
	if event {
		c.armed = disarmed
		if c.channel == nil {
			c.eventPending.Store(true)
		} else {
			c.channel.enqueueEvent(c)
			event = false // nobody else waits for it
		}
	}
	c.mu.Unlock()
	if event || c.pollWaiters.Load() > 0 {
		c.wakeWaiters()
	}
	return true
}

func (c *CQ) resizeRing(size int) {
	ring := make([]verbs.WC, size)
	k := copy(ring[:c.n], c.ring[min(c.head, len(c.ring)):])
	copy(ring[k:c.n], c.ring)
	c.ring, c.head = ring, 0
}

// wakeWaiters makes everyone who waits on the queue look again: those who are parked,
// and one who is asleep in a socket while something came another way.
func (c *CQ) wakeWaiters() {
	for _, s := range c.dev.shards {
		if s.leader.Load() == c && s.asleep.Load() {
			s.socket.Wake()
		}
	}
	if c.parkedCount.Load() == 0 {
		return
	}
	c.dev.wakeups.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wake := range c.parkedWaiters {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// parkWaiter returns a channel for alerts, until unpark. Alerts from before do not
// come: look again after parking.
func (c *CQ) parkWaiter() (wake chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.spareChans); n > 0 {
		wake, c.spareChans = c.spareChans[n-1], c.spareChans[:n-1]
	} else {
		wake = make(chan struct{}, 1)
	}
	c.parkedWaiters = append(c.parkedWaiters, wake)
	c.parkedCount.Store(int32(len(c.parkedWaiters)))
	return wake
}

func (c *CQ) unparkWaiter(wake chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.parkedWaiters, wake)
	c.parkedWaiters = slices.Delete(c.parkedWaiters, i, i+1)
	c.parkedCount.Store(int32(len(c.parkedWaiters)))
	select {
	case <-wake:
	default:
	}
	c.spareChans = append(c.spareChans, wake)
}

// popCompletions moves completions to wc.
func (c *CQ) popCompletions(wc []verbs.WC) int {
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

// purgeQP drops the completions of a queue pair, and keeps the order of the
// others. What they have already raised stays: an event may find nothing.
func (c *CQ) purgeQP(qpn uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := func(i int) *verbs.WC { return &c.ring[(c.head+i)%len(c.ring)] }
	kept := 0
	for i := range c.n {
		if wc := at(i); wc.QPN != qpn {
			if i != kept {
				*at(kept) = *wc
			}
			kept++
		}
	}
	for i := kept; i < c.n; i++ {
		at(i).Why = nil
	}
	c.n = kept
	c.ready.Store(int32(kept))
}

// Poll implements verbs.CQ. An empty queue makes it read the socket once.
func (c *CQ) Poll(wc []verbs.WC) (int, error) {
	if c.ready.Load() == 0 {
		if len(wc) > 0 {
			c.dev.pollShard(c.shard.Load(), caller{cq: c})
		}
		if c.ready.Load() == 0 {
			return 0, c.checkUsable("poll CQ")
		}
	}
	return c.popCompletions(wc), nil
}

// checkUsable is the error that op gets from an empty queue.
func (c *CQ) checkUsable(op string) error {
	if !c.dev.unusable.Load() && !c.failed.Load() {
		return nil
	}
	if err := c.dev.checkUsable(op); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrClosed}
	case c.overrun:
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrCQOverrun}
	}
	return nil
}

// overrunError is the error that comes with the event of a queue that overran.
func (c *CQ) overrunError() error {
	if !c.failed.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.overrun {
		return nil
	}
	return &verbs.OpError{Op: "wait for completion channel", Object: c.String(), Err: verbs.ErrCQOverrun}
}

// String names the queue for errors.
func (c *CQ) String() string { return fmt.Sprintf("CQ %d", c.num) }

// Len implements verbs.CQ.
func (c *CQ) Len() int { return int(c.ready.Load()) }

// ReqNotify implements verbs.CQ. A queue that overran has its event at once.
func (c *CQ) ReqNotify(solicitedOnly bool) error {
	const op = "arm CQ"
	if err := c.dev.checkUsable(op); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrClosed}
	}
	if c.overrun && c.channel != nil {
		c.channel.enqueueEvent(c)
		return nil
	}
	want := armedAny
	if solicitedOnly {
		want = armedSolicited
	}
	c.armed = max(c.armed, want)
	if c.channel != nil {
		for _, s := range c.dev.shards {
			s.requestService() // who asks for an event will not look
		}
	}
	return nil
}

// Disarm implements verbs.CQ.
func (c *CQ) Disarm() {
	c.mu.Lock()
	c.armed = disarmed
	c.mu.Unlock()
	if s := c.shard.Load(); s != nil {
		s.activity.arms.Add(1)
	}
}

// Wait implements verbs.CQ. The waiter serves the adapter while it waits: the
// first one reads the socket itself, so that its event costs one wake-up.
func (c *CQ) Wait(ctx context.Context) error {
	if c.channel != nil {
		const op = "wait for CQ"
		if err := c.checkUsable(op); err != nil {
			return err
		}
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrInvalid,
			Detail: fmt.Sprintf("its events go to %v; wait there, or for completions with PollWait", c.channel)}
	}
	w := waiter{ctx: orBackground(ctx), cq: c}
	return w.wait()
}

// PollWait implements verbs.CQ. Any number of goroutines may share a queue:
// none sleeps while there is a completion. It neither arms the queue nor takes
// the event that ReqNotify asked for.
func (c *CQ) PollWait(ctx context.Context, wc []verbs.WC) (int, error) {
	for {
		if n, err := c.Poll(wc); n > 0 || err != nil || len(wc) == 0 {
			return n, err
		}
		w := waiter{ctx: orBackground(ctx), cq: c, completion: true}
		c.pollWaiters.Add(1)
		err := w.wait()
		c.pollWaiters.Add(-1)
		if err != nil {
			return 0, err
		}
	}
}

// orBackground returns ctx, or a context that never ends if it is nil.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// Resize implements verbs.CQ. A queue that overran stays lost.
func (c *CQ) Resize(depth int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return &verbs.OpError{Op: "resize CQ", Object: c.String(), Err: verbs.ErrClosed}
	case c.overrun:
		return &verbs.OpError{Op: "resize CQ", Object: c.String(), Err: verbs.ErrCQOverrun}
	case depth < 1 || depth > maxCQE:
		return &verbs.OpError{Op: "resize CQ", Err: verbs.ErrLimit, Detail: fmt.Sprintf("depth %d is not one of 1 to %d", depth, maxCQE)}
	case depth < c.n:
		return &verbs.OpError{Op: "resize CQ", Err: verbs.ErrInvalid, Detail: fmt.Sprintf("%d completions are waiting; poll them first", c.n)}
	}
	c.depth = depth
	c.resizeRing(min(max(c.n, 16), depth))
	return nil
}

// Depth implements verbs.CQ.
func (c *CQ) Depth() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.depth
}

// addUser counts the queue pairs that report to the queue. One of management sleeps
// nearly always: were its waiter the leader, each packet of the traffic would
// wake it first.
func (c *CQ) addUser(s *shard, management bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return verbs.ErrClosed
	case c.overrun:
		return verbs.ErrCQOverrun
	}
	if c.users == 0 {
		c.shard.Store(s)
		c.managementOnly.Store(management)
	} else if !management {
		c.managementOnly.Store(false)
	}
	c.users++
	return nil
}

func (c *CQ) removeUser() {
	c.mu.Lock()
	c.users--
	c.mu.Unlock()
}

// Destroy implements verbs.CQ. Destroying twice is safe.
func (c *CQ) Destroy() error { return c.close(false) }

// close ends the queue and wakes whoever waits on it. Without force it refuses
// while queue pairs report to it.
func (c *CQ) close(force bool) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	if c.users > 0 && !force {
		defer c.mu.Unlock()
		return &verbs.OpError{Op: "destroy CQ", Object: c.String(), Err: verbs.ErrBusy,
			Detail: fmt.Sprintf("%d queues of queue pairs report to it; destroy those first", c.users)}
	}
	c.closed = true
	c.failed.Store(true)
	if c.channel != nil {
		c.channel.removeUser(c, force)
	}
	c.mu.Unlock()
	c.dev.untrackCQ(c)
	c.dev.quota.release(kindCQ)
	c.wakeWaiters()
	return nil
}

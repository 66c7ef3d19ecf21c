package impair

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/link"
)

// A Conn is a link with injected faults. It may be used as any link.Conn.
// Delayed packets are sent when they are due and one of WriteBatch, ReadBatch,
// Wait and Flush is called; a blocked Wait wakes up for them.
type Conn struct {
	inner link.Conn
	clock func() int64

	out      outgoing
	in       incoming
	spec     atomic.Pointer[Spec]
	counters counters
	sleepers atomic.Int32 // goroutines in Wait
	closed   atomic.Bool
}

var _ link.Conn = (*Conn)(nil)

// New wraps a link, which the Conn owns from then on. The Spec must be valid.
// The clock returns nanoseconds from any origin; nil is real time.
func New(inner link.Conn, spec Spec, clock func() int64) (*Conn, error) {
	if clock == nil {
		start := time.Now()
		clock = func() int64 { return int64(time.Since(start)) }
	}
	c := &Conn{inner: inner, clock: clock}
	if err := c.SetSpec(spec); err != nil {
		return nil, err
	}
	return c, nil
}

// SetSpec replaces the Spec. Counts of rules and random streams restart;
// delayed packets keep their times. On an error nothing changes.
func (c *Conn) SetSpec(spec Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	local := c.inner.LocalAddr()
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.out.limit = spec.Limit
	if c.out.limit == 0 {
		c.out.limit = DefaultLimit
	}
	c.in.limit = c.out.limit
	c.out.rules = newRules(&spec, Out, newRandom(spec.Seed, local, "rules out"))
	c.in.rules = newRules(&spec, In, newRandom(spec.Seed, local, "rules in"))
	c.out.netem = newNetem(&spec, local.Addr(), newRandom(spec.Seed, local, "netem"), &c.counters)
	c.spec.Store(&spec)
	return nil
}

// Spec returns the Spec in force.
func (c *Conn) Spec() Spec { return *c.spec.Load() }

// Counts returns the counters. It may wait for a WriteBatch in progress.
func (c *Conn) Counts() Counts {
	n := c.counters.snapshot()
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	n.Held = c.out.queue.Len() + c.in.queue.Len()
	for _, list := range [][]*activeRule{c.out.rules.list, c.in.rules.list} {
		for _, r := range list {
			n.Rules = append(n.Rules, RuleCount{r.Rule, r.matched.Load(), r.applied.Load()})
		}
	}
	return n
}

// Unwrap returns the link inside.
func (c *Conn) Unwrap() link.Conn { return c.inner }

// LocalAddr implements link.Conn.
func (c *Conn) LocalAddr() netip.AddrPort { return c.inner.LocalAddr() }

// Caps implements link.Conn.
func (c *Conn) Caps() link.Caps { return c.inner.Caps() }

// Wake implements link.Conn.
func (c *Conn) Wake() { c.inner.Wake() }

// Close implements link.Conn. Delayed packets are lost.
func (c *Conn) Close() error {
	c.closed.Store(true)
	return c.inner.Close()
}

// Wait implements link.Conn. It returns early after sending a delayed packet.
func (c *Conn) Wait(timeout time.Duration) (bool, error) {
	c.sleepers.Add(1) // before NextDue: a packet delayed later wakes this Wait
	defer c.sleepers.Add(-1)
	if due := c.NextDue(); due != 0 {
		until := time.Duration(max(0, due-c.clock()))
		if timeout < 0 || until < timeout {
			timeout = until
		}
	}
	readable, err := c.inner.Wait(timeout)
	if err != nil {
		return false, err
	}
	now := c.clock()
	c.sendDue(now)
	return readable || c.in.hasDue(now), nil
}

// NextDue returns when the next delayed packet is due, on the clock of the
// Conn, or 0 if there is none.
func (c *Conn) NextDue() int64 {
	out, in := c.out.next.Load(), c.in.next.Load()
	if out == 0 || in != 0 && in < out {
		return in
	}
	return out
}

// Flush sends the packets that are due at the given time. Simulations call it
// when their clock has reached NextDue. The error is not nil only when the link
// is closed.
func (c *Conn) Flush(now int64) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.flushDue(now)
}

// sendDue is Flush without waiting for a WriteBatch in progress, which sends
// due packets, too.
func (c *Conn) sendDue(now int64) {
	if due := c.out.next.Load(); due != 0 && due <= now && c.out.mu.TryLock() {
		c.flushDue(now) // the next call into the link returns the same error
		c.out.mu.Unlock()
	}
}

// publishDue publishes the time of the first packet of a queue, and wakes a
// Wait that would miss it.
func (c *Conn) publishDue(next *atomic.Int64, at int64, ok bool) {
	if !ok {
		next.Store(0)
		return
	}
	if before := next.Swap(at); (before == 0 || at < before) && c.sleepers.Load() > 0 {
		c.inner.Wake()
	}
}

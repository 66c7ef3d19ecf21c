package impair

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// outgoing handles outgoing packets. It works on batches before they are
// sealed, because a packet that leaves a GSO group shifts the IPv4
// identification of those behind it.
type outgoing struct {
	mu    sync.Mutex // held for writing to the link inside
	rules rules
	netem netem
	limit int

	queue link.Schedule[*delayedPacket]
	free  []*delayedPacket
	next  atomic.Int64 // see Conn.NextDue

	batch       *link.Batch      // sent instead of the caller's batch
	sentDelayed []*delayedPacket // delayed packets that are in the batch
	paths       map[wire.Path]*wire.Path

	refusals []link.Refusal // refusals of batch, for the caller's next batch
}

// A delayedPacket is a packet to be sent later.
type delayedPacket struct {
	path     wire.Path
	buf      []byte
	delivery delivery
}

// maxPaths bounds the cached paths with an ECN mark.
const maxPaths = 1024

// ECN field of the traffic class, RFC 3168.
const (
	ecnMask = 3
	ecnCE   = 3 // congestion experienced; 0 is not capable
)

// fecn is the congestion bit in byte 4 of the BTH. The ICRC does not cover it.
const fecn = 0x80

// WriteBatch implements link.Conn. An unaffected batch is passed on unchanged.
func (c *Conn) WriteBatch(b *link.Batch) error {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.closed.Load() {
		return net.ErrClosed // also if all packets would be delayed
	}
	defer o.reportRefusals(b)
	now := c.clock()
	if err := c.flushDue(now); err != nil {
		return err
	}
	if !o.netem.active && len(o.rules.list) == 0 {
		return c.inner.WriteBatch(b)
	}
	copying := false
	for i := range b.Len() {
		to, pkt := b.Packet(i)
		f := c.decideDeliveries(now, to, pkt)
		if !copying {
			if f.isUnchanged(now) {
				continue
			}
			copying = true
			o.prepareBatch(b.Cap())
			for j := range i {
				to, pkt := b.Packet(j)
				if err := c.appendPacket(to, pkt, &delivery{}); err != nil {
					return err
				}
			}
		}
		for _, fate := range f.list[:f.n] {
			if fate.due > now {
				c.delayPacket(to, pkt, fate)
			} else if err := c.appendPacket(to, pkt, &fate); err != nil {
				return err
			}
		}
	}
	if !copying {
		return c.inner.WriteBatch(b)
	}
	at, ok := o.queue.Next()
	c.publishDue(&o.next, at, ok)
	return c.sendBatch()
}

// reportRefusals moves the refusals of o.batch to b.
func (o *outgoing) reportRefusals(b *link.Batch) {
	if len(o.refusals) > 0 {
		b.AddRefusals(o.refusals)
		o.refusals = o.refusals[:0]
	}
}

// decideDeliveries applies rules and netem to a packet and returns its
// deliveries.
func (c *Conn) decideDeliveries(now int64, to *wire.Path, pkt []byte) (f deliveries) {
	o := &c.out
	e := o.rules.apply(to.Dst, pkt)
	if e.drop {
		c.counters.dropped.Add(1)
		return f
	}
	capable := to.TrafficClass&ecnMask != 0
	o.netem.addDeliveries(now, len(pkt), capable, &f)
	if e.duplicate {
		c.counters.duplicated.Add(1)
		o.netem.addDeliveries(now, len(pkt), capable, &f)
	}
	for i := range f.n {
		e.applyTo(&f.list[i], len(pkt), &o.rules.random, &c.counters)
	}
	return f
}

// applyTo applies the effect of the rules to a delivery.
func (e *effect) applyTo(f *delivery, bytes int, r *random, c *counters) {
	f.due += e.delay
	if e.corrupt {
		f.addFlip(r.below(8 * bytes))
		c.corrupted.Add(1)
	}
	if e.corruptICRC {
		f.addFlip(8 * (bytes - wire.ICRCLen))
		c.corrupted.Add(1)
	}
	if e.mark {
		f.mark = true
		c.marked.Add(1)
	}
}

// batchBytes is the minimum size of the batch, several GSO groups.
const batchBytes = 4 * link.MaxPacket

// prepareBatch makes o.batch at least as large as the batch it replaces.
func (o *outgoing) prepareBatch(bytes int) {
	if o.batch == nil || o.batch.Cap() < bytes {
		o.batch = link.NewBatch(max(bytes, batchBytes))
	}
}

// appendPacket adds a packet to the batch, which it sends first if full.
func (c *Conn) appendPacket(to *wire.Path, pkt []byte, f *delivery) error {
	o := &c.out
	if f.mark {
		to = o.markedPath(to)
	}
	room := o.batch.Next(to, len(pkt))
	if room == nil {
		if err := c.sendBatch(); err != nil {
			return err
		}
		room = o.batch.Next(to, len(pkt))
	}
	copy(room, pkt)
	if f.mark {
		room[4] |= fecn
	}
	for _, bit := range f.flips[:f.nflip] {
		o.batch.Corrupt(o.batch.Len()-1, bit)
	}
	return nil
}

// markedPath returns the path with Congestion Experienced. The result stays
// valid while it is referred to.
func (o *outgoing) markedPath(to *wire.Path) *wire.Path {
	with := *to
	with.TrafficClass |= ecnCE
	if p := o.paths[with]; p != nil {
		return p
	}
	if o.paths == nil || len(o.paths) == maxPaths {
		o.paths = make(map[wire.Path]*wire.Path)
	}
	p := new(wire.Path)
	*p = with
	o.paths[with] = p
	return p
}

// sendBatch sends the batch and empties it.
func (c *Conn) sendBatch() error {
	o := &c.out
	if o.batch.Len() == 0 {
		return nil
	}
	err := c.inner.WriteBatch(o.batch)
	o.refusals = append(o.refusals, o.batch.Refusals()...)
	o.batch.Reset()
	o.free = append(o.free, o.sentDelayed...)
	o.sentDelayed = o.sentDelayed[:0]
	return err
}

// delayPacket queues a copy of a packet until it is due.
func (c *Conn) delayPacket(to *wire.Path, pkt []byte, f delivery) {
	o := &c.out
	if o.queue.Len() >= o.limit {
		c.counters.overflow.Add(1)
		return
	}
	var h *delayedPacket
	if last := len(o.free) - 1; last >= 0 {
		h, o.free = o.free[last], o.free[:last]
	} else {
		h = new(delayedPacket)
	}
	h.path, h.buf, h.delivery = *to, append(h.buf[:0], pkt...), f
	o.queue.Push(f.due, h)
	c.counters.delayed.Add(1)
}

// flushDue sends the packets that are due. c.out.mu is held.
func (c *Conn) flushDue(now int64) error {
	o := &c.out
	if due, ok := o.queue.Next(); !ok || due > now {
		return nil
	}
	o.prepareBatch(0)
	for {
		h, _, ok := o.queue.PopDue(now)
		if !ok {
			break
		}
		if err := c.appendPacket(&h.path, h.buf, &h.delivery); err != nil {
			return err
		}
		o.sentDelayed = append(o.sentDelayed, h)
	}
	at, ok := o.queue.Next()
	c.publishDue(&o.next, at, ok)
	return c.sendBatch()
}

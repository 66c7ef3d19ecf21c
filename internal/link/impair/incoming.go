package impair

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/link"
)

// incoming handles incoming packets, to which only rules apply. Datagrams
// bypass it while there are no such rules.
type incoming struct {
	mu    sync.Mutex
	rules rules
	limit int

	read  *link.Datagrams // from the link inside
	queue link.Schedule[*arrival]
	free  []*arrival
	next  atomic.Int64 // see Conn.NextDue
}

// An arrival is a datagram queued between the link inside and the reader.
type arrival struct {
	link.Datagram // Buf is the arrival's own
}

// readSlots is the number of datagrams read at once.
const readSlots = 16

// hasDue reports whether a datagram is readable at the given time.
func (in *incoming) hasDue(now int64) bool {
	at := in.next.Load()
	return at != 0 && at <= now
}

// ReadBatch implements link.Conn.
func (c *Conn) ReadBatch(r *link.Datagrams) (int, error) {
	now := c.clock()
	c.sendDue(now)
	in := &c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.rules.list) == 0 && in.queue.Len() == 0 {
		return c.inner.ReadBatch(r)
	}
	if in.read == nil {
		in.read = link.NewDatagrams(readSlots)
	}
	r.Reset()
	for {
		in.popDue(now, r)
		n := 0
		var err error
		if len(r.Msgs()) == 0 {
			n, err = c.inner.ReadBatch(in.read)
			r.AddRefusals(in.read.Refusals())
			for _, d := range in.read.Msgs() {
				c.filterDatagram(now, &d)
			}
		}
		if n == 0 {
			at, ok := in.queue.Next()
			c.publishDue(&in.next, at, ok)
			return len(r.Msgs()), err
		}
	}
}

// popDue moves the datagrams that are due into r.
func (in *incoming) popDue(now int64, r *link.Datagrams) {
	for !r.Full() {
		a, _, ok := in.queue.PopDue(now)
		if !ok {
			return
		}
		d := a.Datagram
		d.Buf = r.Slot(len(r.Msgs()))
		d.Buf = d.Buf[:copy(d.Buf, a.Buf)]
		r.Add(d)
		in.free = append(in.free, a)
	}
}

// filterDatagram applies the rules to every packet of a datagram. Runs of
// unaffected packets stay together.
func (c *Conn) filterDatagram(now int64, d *link.Datagram) {
	start := 0 // of the packets that stay together
	for i := range d.Count() {
		pkt := d.Packet(i)
		e := c.in.rules.apply(d.Src, pkt)
		if e == (effect{}) {
			continue
		}
		c.queueArrival(now, d, start, i, nil)
		start = i + 1
		if e.drop {
			c.counters.dropped.Add(1)
			continue
		}
		copies := 1
		if e.duplicate {
			copies++
			c.counters.duplicated.Add(1)
		}
		for range copies {
			f := delivery{due: now}
			e.applyTo(&f, len(pkt), &c.in.rules.random, &c.counters)
			c.queueArrival(now, d, i, i+1, &f)
		}
	}
	c.queueArrival(now, d, start, d.Count(), nil)
}

// queueArrival queues packets [from, to) of a datagram, with the delivery of
// the only one of them, or nil.
func (c *Conn) queueArrival(now int64, d *link.Datagram, from, to int, f *delivery) {
	in := &c.in
	if from == to {
		return
	}
	due := now
	if f != nil && f.due > now {
		due = f.due
		if in.queue.Len() >= in.limit {
			c.counters.overflow.Add(1)
			return
		}
		c.counters.delayed.Add(1)
	}
	var a *arrival
	if last := len(in.free) - 1; last >= 0 {
		a, in.free = in.free[last], in.free[:last]
	} else {
		a = new(arrival)
	}
	seg := len(d.Buf)
	if d.Count() > 1 {
		seg = d.Seg
	}
	buf := append(a.Buf[:0], d.Buf[from*seg:min(to*seg, len(d.Buf))]...)
	a.Datagram = *d
	a.Unstable = false
	a.Buf, a.Seg, a.ID = buf, min(seg, len(buf)), d.ID+uint16(from)
	if f != nil {
		if f.nflip > 0 {
			a.Seal(c.inner.LocalAddr())
		}
		for _, bit := range f.flips[:f.nflip] {
			a.Buf[bit/8] ^= 1 << (bit % 8)
		}
		if f.mark {
			a.TOS |= ecnCE
		}
	}
	in.queue.Push(due, a)
}

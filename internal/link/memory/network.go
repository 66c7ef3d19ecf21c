package memory

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// A Network is an in-memory network whose clock is moved by its driver. Events
// happen in the order of their times, and of their creation among equal times,
// so that a run is deterministic if driver and adapters take their clock and
// their randomness from here.
//
// A Network belongs to one driver. Functions it runs may call its methods,
// except AdvanceTo.
type Network struct {
	rand *rand.Rand
	pool pool

	mu     sync.Mutex
	now    int64
	ports  portTable
	events link.Schedule[event]
}

// event is a datagram to deliver or a function to run.
type event struct {
	datagram *datagram
	from, to *Conn
	timed    bool // Timing.ArriveAt has returned the time of the event
	run      func()
}

// New returns an empty network with its clock at 0.
func New(seed uint64) *Network {
	return &Network{
		rand:  rand.New(rand.NewPCG(seed, 0)),
		ports: make(portTable),
	}
}

// Rand returns the random source of the run, derived from the seed, for the
// driver and the functions it runs, one at a time.
func (n *Network) Rand() *rand.Rand { return n.rand }

// Now returns the nanoseconds since the network was created.
func (n *Network) Now() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

// Attach opens a link at the given address; port 0 takes a free one.
func (n *Network) Attach(addr netip.AddrPort, o Options) (*Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ports.attach(n, &n.pool, addr, o)
}

// ScheduleAt makes run be called when the clock reaches t, or by the next
// AdvanceTo if t has passed.
func (n *Network) ScheduleAt(t int64, run func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events.Push(max(t, n.now), event{run: run})
}

// NextEvent returns the time of the next arrival or scheduled function; ok is
// false if there is none.
func (n *Network) NextEvent() (t int64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.events.Next()
}

// AdvanceTo moves the clock to t, never back, and processes the events due by t,
// each at its own time. Arrivals are queued in the receive buffers of their Conns.
// The usual driver advances event by event:
//
//	for t, ok := n.NextEvent(); ok && t <= end; t, ok = n.NextEvent() {
//		n.AdvanceTo(t)
//		// let every adapter read and respond
//	}
func (n *Network) AdvanceTo(t int64) {
	for {
		e, ok := n.popDue(t)
		if !ok {
			return
		}
		switch {
		case e.run != nil:
			e.run()
		default:
			n.deliver(e)
		}
	}
}

// deliver puts the datagram of e into the receive buffer, or makes it arrive later.
func (n *Network) deliver(e event) {
	timing := e.to.options.Timing
	if timing != nil && !e.timed {
		e.timed = true
		if at := timing.ArriveAt(e.datagram.buf, e.datagram.seg); at > n.Now() {
			n.mu.Lock()
			n.events.Push(at, e)
			n.mu.Unlock()
			return
		}
	}
	switch {
	case !e.to.enqueue(e.datagram):
		e.from.countUnreachable(e.datagram.packetCount())
		n.pool.put(e.datagram)
	case timing != nil:
		timing.OnQueued()
	}
}

// popDue removes the next event that is due by t and sets the clock to its time,
// or to t if there is none.
func (n *Network) popDue(t int64) (event, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e, at, ok := n.events.PopDue(t)
	if !ok {
		at = t
	}
	n.now = max(n.now, at)
	return e, ok
}

// transmit implements fabric. Where the wire to the receiver has a rate, a group
// arrives when the last of its packets has passed.
func (n *Network) transmit(from *Conn, path *wire.Path, buf []byte, seg int) {
	departure := n.Now()
	if t := from.options.Timing; t != nil {
		departure = max(departure, t.DepartAt(path, buf, seg))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	to := n.ports[path.Dst]
	if to == nil {
		from.countUnreachable((len(buf) + seg - 1) / seg)
		return
	}
	arrival := departure + int64(to.options.Delay)
	if to.options.MarkAbove > 0 {
		n.transmitMarked(from, to, path, arrival, buf, seg)
		return
	}
	if to.options.Rate > 0 {
		buf = to.occupyWire(arrival, buf, seg)
		arrival = to.wireFree
	}
	to.splitArrivals(from.addr, path, buf, seg, func(d *datagram) {
		n.events.Push(arrival, event{datagram: d, from: from, to: to})
	})
}

// transmitMarked is transmit for a wire that marks: each packet arrives when it has passed. n.mu is
// held.
func (n *Network) transmitMarked(from, to *Conn, path *wire.Path, at int64, buf []byte, seg int) {
	for off := 0; off < len(buf); off += seg {
		packet, p := buf[off:min(off+seg, len(buf))], *path
		queued := to.wireFree - at
		if len(to.occupyWire(at, packet, seg)) == 0 {
			continue
		}
		if p.TrafficClass&ecnMask != 0 && queued > to.transmissionTime(to.options.MarkAbove) {
			p.TrafficClass |= ecnCE
			to.mu.Lock()
			to.marked++
			to.mu.Unlock()
		}
		arrival := to.wireFree
		to.splitArrivals(from.addr, &p, packet, seg, func(d *datagram) {
			d.id = uint16(off / seg)
			n.events.Push(arrival, event{datagram: d, from: from, to: to})
		})
	}
}

// The ECN field of the traffic class, and its value congestion experienced (RFC 3168).
const (
	ecnMask = 3
	ecnCE   = 3
)

// occupyWire occupies the wire to c, which the packets in buf reach at the
// given time, and returns the packets that fit the queue before it: the first
// ones.
func (c *Conn) occupyWire(now int64, buf []byte, seg int) []byte {
	for off := 0; off < len(buf); off += seg {
		start := max(now, c.wireFree)
		end := start + c.transmissionTime(min(seg, len(buf)-off)+headerLen(c.addr.Addr()))
		if c.options.Queue > 0 && end-now > c.transmissionTime(c.options.Queue) {
			c.mu.Lock()
			c.stats.ReceiveOverflow += uint64((len(buf) - off + seg - 1) / seg)
			c.mu.Unlock()
			return buf[:off]
		}
		c.wireFree = end
		c.peakWait = max(c.peakWait, end-now)
	}
	return buf
}

// TakeQueue returns the maximum number of bytes of IP packets that were on or waited for the wire to
// c since the last call, and the number of packets marked.
func (c *Conn) TakeQueue() (peak int, marked uint64) {
	c.mu.Lock()
	marked, c.marked = c.marked, 0
	c.mu.Unlock()
	peak = int(c.peakWait * c.options.Rate / 8 / int64(time.Second))
	c.peakWait = 0
	return peak, marked
}

// transmissionTime returns the nanoseconds that the wire to c takes for the
// given number of bytes.
func (c *Conn) transmissionTime(bytes int) int64 {
	return int64(bytes) * 8 * int64(time.Second) / c.options.Rate
}

// detach implements fabric.
func (n *Network) detach(addr netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ports, addr)
}

// blocks implements fabric.
func (n *Network) blocks() bool { return false }

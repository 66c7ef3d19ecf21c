package memory

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// Network is an in-memory network whose clock moves only when its driver says
// so. Events happen in the order of their time, and of their making among equal
// times, so a run is the same every time as long as the driver and the adapters
// take their clock and their randomness from here.
//
// A Network belongs to one driver. Its methods may be called from within the
// functions it runs, except for AdvanceTo.
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
	run      func()
}

// New returns a network with nobody attached, its clock at 0.
func New(seed uint64) *Network {
	return &Network{
		rand:  rand.New(rand.NewPCG(seed, 0)),
		ports: make(portTable),
	}
}

// Rand is the random source of the run, made of the seed. It is for the driver
// and what the driver runs, one at a time.
func (n *Network) Rand() *rand.Rand { return n.rand }

// Now is the time in nanoseconds since the network was made.
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

// ScheduleAt has run called when the clock reaches t, or by the next AdvanceTo if that
// is in the past.
func (n *Network) ScheduleAt(t int64, run func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events.Push(max(t, n.now), event{run: run})
}

// NextEvent is the time of the next arrival or of the next function of At; ok
// is false when nothing is going to happen by itself.
func (n *Network) NextEvent() (t int64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.events.Next()
}

// AdvanceTo moves the clock to t, never back, and lets everything happen that
// is due until then, each event at its own time. Arrivals wait in the receive
// buffers of their Conns. The usual driver advances event by event:
//
//	for t, ok := n.NextEvent(); ok && t <= end; t, ok = n.NextEvent() {
//		n.AdvanceTo(t)
//		// let every adapter read and answer
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
		case !e.to.enqueue(e.datagram):
			e.from.countUnreachable(e.datagram.packetCount())
			n.pool.put(e.datagram)
		}
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
	n.mu.Lock()
	defer n.mu.Unlock()
	to := n.ports[path.Dst]
	if to == nil {
		from.countUnreachable((len(buf) + seg - 1) / seg)
		return
	}
	arrival := n.now + int64(to.options.Delay)
	if to.options.Rate > 0 {
		buf = to.occupyWire(arrival, buf, seg)
		arrival = to.wireFree
	}
	to.splitArrivals(from.addr, path, buf, seg, func(d *datagram) {
		n.events.Push(arrival, event{datagram: d, from: from, to: to})
	})
}

// occupyWire occupies the wire to c, which the packets in buf reach at the given
// time, and returns those that found room in the queue in front of it: the
// first ones.
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
	}
	return buf
}

// transmissionTime is how long the wire to c takes for so many bytes, nanoseconds.
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

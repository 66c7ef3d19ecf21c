package qp

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// network transfers packets between two nodes with loss, duplication and reordering. Its clock
// advances from event to event; the seed determines all events.
type network struct {
	rng   *rand.Rand
	now   reliability.Time
	ends  [2]*end
	air   flights
	count int // of sent packets

	loss, dup, reorder float64
	room               int     // of a batch
	lazy               float64 // probability of delaying a pending acknowledgement
}

// end is a node on the network with its next events.
type end struct {
	*node
	drain reliability.Time // time of the next batch, 0: none
	ack   reliability.Time // time to send a pending acknowledgement, 0: none
	app   reliability.Time // time of the next action of the application, 0: never
	act   func()           // the next action; may set app
	trace []string         // last packets, for the report of a failure
}

// flight is a packet in flight.
type flight struct {
	at  reliability.Time
	seq int // order of packets with the same time
	to  int
	pkt *wire.Packet
}

type flights []flight

func (f flights) Len() int { return len(f) }
func (f flights) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].seq < f[j].seq
}
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)   { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

// step executes the next event and reports whether there was one.
func (n *network) step() bool {
	at, do := reliability.Time(0), func() {}
	consider := func(t reliability.Time, f func()) {
		if t != 0 && (at == 0 || t < at) {
			at, do = t, f
		}
	}
	if len(n.air) > 0 {
		consider(n.air[0].at, n.deliver)
	}
	for i, e := range n.ends {
		consider(e.drain, func() { n.sendBatch(i) })
		consider(e.ack, func() { n.sendAck(i) })
		consider(e.app, func() { e.app = 0; e.act(); n.scheduleBatch(i) })
		consider(e.Deadline(), func() { e.Advance(n.now); n.scheduleBatch(i) })
	}
	if at == 0 {
		return false
	}
	n.now = max(n.now, at)
	do()
	for _, e := range n.ends {
		checkInvariants(e.t, e.Core)
	}
	return true
}

// scheduleBatch schedules a batch of node i.
func (n *network) scheduleBatch(i int) {
	if e := n.ends[i]; e.drain == 0 {
		e.drain = n.now + 1
	}
}

func (n *network) deliver() {
	f := heap.Pop(&n.air).(flight)
	e := n.ends[f.to]
	d := e.HandlePacket(n.now, f.pkt)
	e.recordPacket(n.now, "<-", f.pkt, d)
	n.scheduleBatch(f.to)
}

// sendBatch sends one batch of node i, or a pending acknowledgement if there is nothing else.
func (n *network) sendBatch(i int) {
	e := n.ends[i]
	e.drain = 0
	out := &batch{room: n.room}
	more := e.Drain(n.now, out)
	n.transfer(i, out)
	switch {
	case more:
		e.drain = n.now + 100
	case !e.HasPendingAck():
		e.ack = 0
	case e.ack == 0 && n.rng.Float64() < n.lazy:
		e.ack = n.now + reliability.Time(n.rng.Int64N(20*reliability.Microsecond)) + 1
	case e.ack == 0:
		n.sendAck(i)
	}
}

func (n *network) sendAck(i int) {
	e := n.ends[i]
	e.ack = 0
	if e.drain != 0 { // responses first
		e.ack = e.drain + 1
		return
	}
	out := &batch{room: 1}
	e.DrainAck(n.now, out)
	n.transfer(i, out)
}

// transfer transfers a batch of node i to the other node, with loss, duplication and delays.
func (n *network) transfer(i int, out *batch) {
	e := n.ends[i]
	for _, p := range out.packets {
		p.leave()
		pkt := &wire.Packet{Src: e.addr, Dst: p.to.Dst}
		if d := pkt.Parse(p.raw); d != wire.DropNone {
			e.t.Fatalf("laid out a packet that is none: %v", d)
		}
		e.recordPacket(n.now, "->", pkt, wire.DropNone)
		copies := 1
		if n.rng.Float64() < n.dup {
			copies = 2
		}
		for range copies {
			if n.rng.Float64() < n.loss {
				continue
			}
			n.count++
			at := n.now + 5*reliability.Microsecond
			if n.rng.Float64() < n.reorder {
				at += reliability.Time(n.rng.Int64N(100 * reliability.Microsecond))
			}
			heap.Push(&n.air, flight{at, n.count, 1 - i, pkt})
		}
	}
}

// recordPacket records the last packets of a node.
func (e *end) recordPacket(now reliability.Time, dir string, pkt *wire.Packet, d wire.Drop) {
	const most = 60
	s := fmt.Sprintf("%9d %s %v %d len=%d", now, dir, pkt.BTH.Opcode, pkt.BTH.PSN, len(pkt.Payload))
	if pkt.Info.AETH {
		s += fmt.Sprintf(" %02x", uint8(pkt.AETH().Syndrome))
	}
	if d != wire.DropNone {
		s += " dropped: " + d.String()
	}
	e.trace = append(e.trace, s)
	if len(e.trace) > 2*most {
		e.trace = append(e.trace[:0], e.trace[most:]...)
	}
}

package protocol

import (
	"bytes"
	"errors"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// pair is the connection from one rank to another.
type pair struct {
	w        *world
	from, to *node
	limits   Limits
	ways     [][]packet
	room     int // packets on a path
	issued   int // RDMA WRITEs
	stored   int // of these, completed
	moves    []*move
	slots    int  // transfers at a time
	starved  bool // from waits for Resume
	cut      bool // from has lost to
	broken   bool // and will lose it
}

// packet is a packet in flight. It arrives behind the RDMA WRITEs before it.
type packet struct {
	head, payload []byte
	behind        int
}

// move is an RDMA READ or WRITE in flight.
type move struct {
	id    uint64
	b     []byte
	key   envelope.Key
	store bool
	stage int // 0 started, 1 half done, 2 done and not reported
}

// exposure is memory that a rank may access.
type exposure struct {
	owner *node
	whom  int
	b     []byte
	write bool
	live  bool
}

var errFault = errors.New("no registration left")
var errGone = errors.New("it does not answer")

// link is the Net of a rank.
type link struct{ n *node }

func (l link) Limits(rank int) Limits { return l.n.w.pairs[l.n.id][rank].limits }

// callBack calls the core back, as a net may do within its methods.
func (l link) callBack(p *pair) {
	w := l.n.w
	if p.broken && !p.cut && w.chance(4) {
		w.reportLost(p)
	}
	if w.chance(20) {
		l.n.core.Resume(w.rng.IntN(len(w.nodes)))
	}
}

func (l link) Send(rank int, h *envelope.Header, payload []byte) bool {
	w, p := l.n.w, l.n.w.pairs[l.n.id][rank]
	w.check(p.from != p.to && int(h.Bytes) == len(payload) && len(payload) <= p.limits.Eager && !p.cut, "%d sends %d: %v with %d bytes", l.n.id, rank, h.Kind, len(payload))
	defer l.callBack(p)
	i := w.rng.IntN(len(p.ways))
	for range p.ways {
		if i = (i + 1) % len(p.ways); len(p.ways[i]) < p.room {
			h.Credits = uint16(w.rng.Uint32())
			head := make([]byte, envelope.Size)
			h.MarshalTo(head)
			p.ways[i] = append(p.ways[i], packet{head, bytes.Clone(payload), p.issued})
			w.log("%d > %d: way %d %v %+v", l.n.id, rank, i, h.Kind, *h)
			return true
		}
	}
	p.starved = true
	return false
}

func (l link) RegisterMemory(rank int, b []byte, write bool) (envelope.Key, Registration, error) {
	w := l.n.w
	w.check(len(b) > 0, "nothing is exposed")
	if w.fault() {
		return envelope.Key{}, nil, errFault
	}
	e := &exposure{l.n, rank, b, write, true}
	w.exposures = append(w.exposures, e)
	n := len(w.exposures)
	return envelope.Key{Addr: uint64(n) << 32, RKey: uint32(n), Rail: 7, ID: 1 << 60}, e, nil
}

func (l link) DeregisterMemory(x Registration) {
	e := x.(*exposure)
	l.n.w.check(e.live && e.owner == l.n, "hidden twice")
	e.live = false
}

func (l link) RDMARead(rank int, b []byte, key envelope.Key, id uint64) error {
	return l.move(rank, &move{id: id, b: b, key: key})
}

func (l link) RDMAWrite(rank int, b []byte, key envelope.Key, id uint64) error {
	return l.move(rank, &move{id: id, b: b, key: key, store: true})
}

func (l link) move(rank int, m *move) error {
	w, p := l.n.w, l.n.w.pairs[l.n.id][rank]
	w.check(len(m.b) > 0 && !p.cut, "%d moves %d bytes of %d", l.n.id, len(m.b), rank)
	defer l.callBack(p)
	if len(p.moves) >= p.slots {
		p.starved = true
		return ErrNoRoom
	}
	if w.fault() {
		return errFault
	}
	if m.store {
		p.issued++
	}
	p.moves = append(p.moves, m)
	w.log("%d > %d: move %#x store %v of %d", l.n.id, rank, m.id, m.store, len(m.b))
	for w.chance(8) && p.canMove(m) { // at once
		p.progress(m)
	}
	return nil
}

// reachable reports whether the memory of to is still reachable.
func (p *pair) reachable() bool {
	return !p.broken && !p.cut && !p.to.dead && !p.w.pairs[p.to.id][p.from.id].cut
}

// canMove reports whether a transfer can continue: an RDMA WRITE behind the one before it.
func (p *pair) canMove(m *move) bool {
	i := slices.Index(p.moves, m)
	if i < 0 {
		return false
	}
	before := slices.ContainsFunc(p.moves[:i], func(o *move) bool { return o.store && o.stage < 2 })
	return p.cut || m.stage == 2 || p.reachable() && !(m.store && before)
}

// progress advances a transfer by one step.
func (p *pair) progress(m *move) {
	w := p.w
	if m.stage < 2 && p.cut {
		p.finish(m, errGone)
		return
	}
	n := len(m.b)
	switch m.stage {
	case 2:
		if p.cut && w.chance(2) {
			p.finish(m, errGone)
		} else {
			p.finish(m, nil)
		}
		return
	case 0:
		n /= 2
	}
	m.stage++
	w.check(m.key.Rail == 7 && m.key.RKey > 0 && int(m.key.RKey) <= len(w.exposures), "an unknown key: %+v", m.key)
	e := w.exposures[m.key.RKey-1]
	off := int(m.key.Addr - uint64(m.key.RKey)<<32)
	w.check(int(m.key.RKey) <= w.windows || len(e.b) == len(m.b) || !m.store, "%d bytes are moved of %d that are exposed", len(m.b), len(e.b))
	w.check(e.live && e.owner == p.to && e.whom == p.from.id && e.write == m.store && off+len(m.b) <= len(e.b),
		"%d moves %d bytes of %d, which may not be (store %v, live %v)", p.from.id, len(m.b), p.to.id, m.store, e.live)
	if m.store {
		copy(e.b[off:], m.b[:n])
		if m.stage == 2 {
			p.stored++
		}
	} else {
		copy(m.b[:n], e.b[off:])
	}
}

func (p *pair) finish(m *move, err error) {
	p.moves = slices.DeleteFunc(p.moves, func(o *move) bool { return o == m })
	p.w.log("%d > %d: moved %#x %v", p.from.id, p.to.id, m.id, err)
	p.from.core.TransferDone(m.id, err)
}

// arrived reports whether the next packet of a path can be delivered.
func (p *pair) arrived(way int) bool {
	return len(p.ways[way]) > 0 && !p.to.dead && p.ways[way][0].behind <= p.stored
}

// deliver delivers the next packet of a path.
func (p *pair) deliver(way int) {
	w, k := p.w, p.ways[way][0]
	p.ways[way] = p.ways[way][1:]
	var h envelope.Header
	err := h.Unmarshal(k.head)
	w.check(err == nil, "%v", err)
	if w.pairs[p.to.id][p.from.id].cut { // too late, which must have no effect
		err = p.to.core.HandlePacket(p.from.id, &h, k.payload)
		w.check(err == nil, "%v", err)
		return
	}
	w.log("%d < %d: %v %+v", p.to.id, p.from.id, h.Kind, h)
	if h.Kind.Ordered() {
		all := p.from.sent[p.to.id]
		w.check(int(h.Seq-w.firstSeq) < len(all), "number %d, and %d were sent", h.Seq-w.firstSeq, len(all))
		p.to.oracle.packet(p.from.id, int(h.Seq-w.firstSeq), h.Kind, all)
	}
	err = p.to.core.HandlePacket(p.from.id, &h, k.payload)
	w.check(err == nil, "%v", err)
	for i := range k.payload {
		k.payload[i] = 0xEE
	}
	h = envelope.Header{}
	w.check(len(p.to.oracle.active) == 0, "%d active packets of %d were not handled", len(p.to.oracle.active), p.from.id)
}

// hasRoom reports whether Resume must be called.
func (p *pair) hasRoom() bool {
	return p.starved && !p.cut && (len(p.moves) < p.slots || slices.ContainsFunc(p.ways, func(way []packet) bool { return len(way) < p.room }))
}

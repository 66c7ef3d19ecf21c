package mpi

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Who operates on a piece of memory that another rank has attached has asked for it
// before, once: Find names some bytes, and Found brings number, extent and key of the
// piece they lie in, or Missing says that they are nowhere. The piece is then known to
// the one who asked until its owner calls it back. Recall does that, before it is
// detached; who gets it forgets the piece at once, and answers Returned when none of
// his operations on it is under way any more. That is sent behind them, so memory that
// nobody knows any more nobody touches. Numbers are never used again: a piece that is
// attached where another one was is a different one.

// piece is memory of this rank that is in a window: a part that has been attached, or
// all of it.
type piece struct {
	rma.Memory
	id       uint64         // of one that has been attached; 0 is all
	span     rma.Span       // of one that has been attached
	known    map[int]*lease // ranks that know it
	leaving  bool           // it is being detached
	messages int            // that come into it, or go out of it
}

// lease is what a rank knows a piece by.
type lease struct {
	key envelope.Key          // none: all goes in packets
	by  protocol.Registration // nil likewise
}

// ranks are those that know the piece.
func (v *piece) ranks() []int {
	var list []int
	for r := range v.known {
		list = append(list, r)
	}
	slices.Sort(list)
	return list
}

// still reports whether nobody knows the piece, and nothing is under way.
func (v *piece) still() bool { return len(v.known) == 0 && v.messages == 0 }

// region is memory of another rank that this one may operate on: a piece, or all that
// the rank has in the window.
type region struct {
	peer     *winPeer
	id       uint64 // as that of the piece
	span     rma.Span
	key      envelope.Key
	direct   bool // the adapter moves it
	users    int  // transfers
	recalled bool
}

// name appends what packets that are for the region begin with: the number of a piece.
func (g *region) name(b []byte) []byte {
	if g.id == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(b, g.id)
}

// nameSize is its length.
const nameSize = 8

// named is the memory here that a packet of a rank is for, and the rest of the packet.
func (w *Win) named(p *winPeer, payload []byte) (*piece, []byte, error) {
	if w.dynamic == nil {
		return &w.mem, payload, nil
	}
	if len(payload) < nameSize {
		return nil, nil, fmt.Errorf("%w: %d bytes", rma.ErrMalformed, len(payload))
	}
	id := binary.LittleEndian.Uint64(payload)
	v := w.dynamic.pieces[id]
	if v == nil || v.known[p.rank] == nil {
		return nil, nil, fmt.Errorf("%w: piece %d, which it does not know", protocol.ErrProtocol, id)
	}
	return v, payload[nameSize:], nil
}

// own is the memory of a region that is this rank's.
func (w *Win) own(g *region) []byte {
	if g.id == 0 {
		return w.mem.Bytes
	}
	return w.dynamic.pieces[g.id].Bytes
}

// question is a call's that wants to know where in a window some bytes are.
type question struct {
	peer *winPeer
	span rma.Span
	done bool
	err  error // they are nowhere
}

// found is the payload of Found: the piece.
type found struct {
	ID   uint64
	Span rma.Span
	Key  [envelope.KeySize]byte
}

// missing is the payload of Missing: what there is before the bytes and behind them.
type missing struct{ Below, Above rma.Span }

// roomy is nil if packets to all ranks are long enough for Found.
func (w *Win) roomy() error {
	for r := range w.peers {
		if r == w.comm.rank {
			continue
		}
		if n, most := w.eng.Fabric().Limits(w.peers[r].job).Eager, binary.Size(found{}); n < most {
			return fmt.Errorf("%w: packets to rank %d have %d bytes, a dynamic one needs %d; raise Options.RDMA.Eager", ErrWin, r, n, most)
		}
	}
	return nil
}

// find asks a rank for the piece that some bytes lie in, and waits until it is known.
func (w *Win) find(target int, s rma.Span) error {
	core, err := w.lock()
	if err != nil {
		return err
	}
	q, d := &question{peer: &w.peers[target], span: s}, w.dynamic
	if d.questions == nil {
		d.questions = map[uint64]*question{}
	}
	w.number++
	d.questions[w.number] = q
	w.tell(core, q.peer, envelope.Header{Tag: int32(packetFind), ID: w.number}, s)
	w.eng.Unlock()
	if err := w.wait("what a rank has attached", func() bool { return q.done }, nil, target); err != nil {
		return err
	}
	return q.err
}

// tell sends a packet with a payload of a fixed size.
func (w *Win) tell(core *protocol.Core, p *winPeer, h envelope.Header, what any) {
	h.Context = w.comm.id
	payload, _ := binary.Append(nil, binary.LittleEndian, what)
	_ = core.SendActive(p.job, h, payload) // if the rank is lost, so is the window
}

// dispatchPiece handles a packet about pieces.
func (w *Win) dispatchPiece(core *protocol.Core, p *winPeer, k winPacket, h *envelope.Header, payload []byte) error {
	if w.dynamic == nil {
		return fmt.Errorf("%w: packet %d, of dynamic windows", protocol.ErrProtocol, k)
	}
	switch k {
	case packetFind:
		var s rma.Span
		if n, err := binary.Decode(payload, binary.LittleEndian, &s); err != nil || n != len(payload) || !s.Valid() {
			return fmt.Errorf("%w: it looks for %d bytes of something", protocol.ErrProtocol, len(payload))
		}
		w.answer(core, p, h.ID, s)
		return nil
	case packetFound, packetMissing:
		return w.answered(p, k, h, payload)
	case packetRecall:
		return w.recalled(core, p, h)
	}
	v := w.dynamic.pieces[h.ID]
	if v == nil || !v.leaving || v.known[p.rank] == nil {
		return errReply
	}
	w.hide(v.known[p.rank])
	delete(v.known, p.rank)
	return nil
}

// answer tells a rank that asks for some bytes what piece they lie in. From then on it
// knows it.
func (w *Win) answer(core *protocol.Core, p *winPeer, question uint64, s rma.Span) {
	v, ok := w.dynamic.attached.Find(s)
	if !ok {
		below, above := w.dynamic.attached.Near(s.Addr)
		w.tell(core, p, envelope.Header{Tag: int32(packetMissing), ID: question}, missing{below, above})
		return
	}
	l := v.known[p.rank]
	if l == nil {
		l = &lease{}
		if p.direct {
			var err error
			if l.key, l.by, err = w.eng.Fabric().RegisterMemory(p.job, v.Bytes, true); err != nil {
				l = &lease{} // there may be a limit to registered memory: it goes without
			}
		}
		v.known[p.rank] = l
	}
	f := found{ID: v.id, Span: v.span}
	l.key.MarshalTo(f.Key[:])
	w.tell(core, p, envelope.Header{Tag: int32(packetFound), ID: question}, f)
}

// answered handles an answer.
func (w *Win) answered(p *winPeer, k winPacket, h *envelope.Header, payload []byte) error {
	var f found
	var m missing
	into := any(&f)
	if k == packetMissing {
		into = &m
	}
	q := w.dynamic.questions[h.ID]
	if n, err := binary.Decode(payload, binary.LittleEndian, into); err != nil || n != len(payload) || q == nil || q.peer != p {
		return errReply
	}
	delete(w.dynamic.questions, h.ID)
	q.done = true
	if k == packetMissing {
		q.err = fmt.Errorf("%w: rank %d has not attached %v%s", ErrRange, p.rank, q.span, nearby(m.Below, m.Above))
		return nil
	}
	if f.ID == 0 || !f.Span.Valid() || !f.Span.Contains(q.span) {
		return fmt.Errorf("%w: %v, which do not have %v", errReply, f.Span, q.span)
	}
	if g, ok := p.pieces.Find(q.span); ok && g.id == f.ID { // two have asked at a time
		return nil
	}
	g := &region{peer: p, id: f.ID, span: f.Span}
	_ = g.key.Unmarshal(f.Key[:]) // which has its length
	g.direct = p.direct && g.key != (envelope.Key{})
	if other, ok := p.pieces.Add(g.span, g); !ok {
		return fmt.Errorf("%w: %v, and before %v", errReply, f.Span, other)
	}
	return nil
}

// recall asks ranks to forget a piece.
func (w *Win) recall(core *protocol.Core, v *piece, ranks []int) {
	for _, r := range ranks {
		h := envelope.Header{Context: w.comm.id, Tag: int32(packetRecall), ID: v.id, Length: v.span.Addr}
		_ = core.SendActive(w.peers[r].job, h, nil) // if the rank is lost, so is the window
	}
}

// recalled handles a Recall.
func (w *Win) recalled(core *protocol.Core, p *winPeer, h *envelope.Header) error {
	g, ok := p.pieces.Find(rma.Span{Addr: h.Length, Size: 1})
	if !ok || g.id != h.ID || g.span.Addr != h.Length {
		return fmt.Errorf("%w: it calls back piece %d, which is not known", protocol.ErrProtocol, h.ID)
	}
	p.pieces.Remove(h.Length)
	g.recalled = true
	w.giveBack(core, g)
	return nil
}

// giveBack tells the owner of a piece that has been called back that nothing of ours
// is under way there any more, when that is so.
func (w *Win) giveBack(core *protocol.Core, g *region) {
	if g.recalled && g.users == 0 {
		w.signal(core, g.peer, packetReturned, g.id)
	}
}

// hide takes a key back.
func (w *Win) hide(l *lease) {
	if l.by != nil {
		w.eng.Fabric().DeregisterMemory(l.by)
		l.by = nil
	}
}

// locate is the piece of memory that an operation is for, if it is known, and where
// in it; else it says for which bytes to ask.
func (p *winPeer) locate(n, extent int, at Place) (g *region, in Place, unknown rma.Span, err error) {
	from, size, err := at.Span(n, extent)
	if err != nil {
		return nil, at, rma.Span{}, placeError(err)
	}
	s := rma.Span{Addr: uint64(uintptr(at.Disp())) + uint64(from), Size: uint64(size)}
	if !s.Valid() {
		return nil, at, rma.Span{}, fmt.Errorf("%w: there are no addresses of %v", ErrRange, s)
	}
	g, ok := p.pieces.Find(s)
	if !ok {
		return nil, at, s, nil
	}
	return g, at.From(at.Disp() - int(uintptr(g.span.Addr))), rma.Span{}, nil
}

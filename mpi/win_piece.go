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

// localRegion is memory of this rank that is in a window: a part that has been attached, or
// all of it.
type localRegion struct {
	rma.Memory
	id        uint64             // of one that has been attached; 0 is all
	span      rma.Span           // of one that has been attached
	holders   map[int]*regionKey // ranks that know it
	detaching bool               // it is being detached
	messages  int                // that come into it, or go out of it
}

// regionKey is what a rank knows a piece by.
type regionKey struct {
	key     envelope.Key          // none: all goes in packets
	exposed protocol.Registration // nil likewise
}

// holderRanks are those that know the piece.
func (v *localRegion) holderRanks() []int {
	var list []int
	for r := range v.holders {
		list = append(list, r)
	}
	slices.Sort(list)
	return list
}

// isUnused reports whether nobody knows the piece, and nothing is under way.
func (v *localRegion) isUnused() bool { return len(v.holders) == 0 && v.messages == 0 }

// remoteRegion is memory of another rank that this one may operate on: a piece, or all that
// the rank has in the window.
type remoteRegion struct {
	peer     *winPeer
	id       uint64 // as that of the piece
	span     rma.Span
	key      envelope.Key
	direct   bool // the adapter moves it
	users    int  // transfers
	recalled bool
}

// appendID appends what packets that are for the region begin with: the number of a piece.
func (g *remoteRegion) appendID(b []byte) []byte {
	if g.id == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(b, g.id)
}

// regionIDSize is its length.
const regionIDSize = 8

// targetRegion is the memory here that a packet of a rank is for, and the rest of the packet.
func (w *Win) targetRegion(p *winPeer, payload []byte) (*localRegion, []byte, error) {
	if w.dynamic == nil {
		return &w.staticRegion, payload, nil
	}
	if len(payload) < regionIDSize {
		return nil, nil, fmt.Errorf("%w: %d bytes", rma.ErrMalformed, len(payload))
	}
	id := binary.LittleEndian.Uint64(payload)
	v := w.dynamic.regions[id]
	if v == nil || v.holders[p.rank] == nil {
		return nil, nil, fmt.Errorf("%w: piece %d, which it does not know", protocol.ErrProtocol, id)
	}
	return v, payload[regionIDSize:], nil
}

// localBytes is the memory of a region that is this rank's.
func (w *Win) localBytes(g *remoteRegion) []byte {
	if g.id == 0 {
		return w.staticRegion.Bytes
	}
	return w.dynamic.regions[g.id].Bytes
}

// regionQuery is a call's that wants to know where in a window some bytes are.
type regionQuery struct {
	peer *winPeer
	span rma.Span
	done bool
	err  error // they are nowhere
}

// foundReply is the payload of Found: the piece.
type foundReply struct {
	ID   uint64
	Span rma.Span
	Key  [envelope.KeySize]byte
}

// missingReply is the payload of Missing: what there is before the bytes and behind them.
type missingReply struct{ Below, Above rma.Span }

// checkPacketSize is nil if packets to all ranks are long enough for Found.
func (w *Win) checkPacketSize() error {
	for r := range w.peers {
		if r == w.comm.rank {
			continue
		}
		if n, most := w.eng.Fabric().Limits(w.peers[r].job).Eager, binary.Size(foundReply{}); n < most {
			return fmt.Errorf("%w: packets to rank %d have %d bytes, a dynamic one needs %d; raise Options.RDMA.Eager", ErrWin, r, n, most)
		}
	}
	return nil
}

// findRegion asks a rank for the piece that some bytes lie in, and waits until it is known.
func (w *Win) findRegion(target int, s rma.Span) error {
	core, err := w.lockEngine()
	if err != nil {
		return err
	}
	q, d := &regionQuery{peer: &w.peers[target], span: s}, w.dynamic
	if d.queries == nil {
		d.queries = map[uint64]*regionQuery{}
	}
	w.lastID++
	d.queries[w.lastID] = q
	w.sendPayload(core, q.peer, envelope.Header{Tag: int32(packetFind), ID: w.lastID}, s)
	w.eng.Unlock()
	if err := w.waitUntil("what a rank has attached", func() bool { return q.done }, nil, target); err != nil {
		return err
	}
	return q.err
}

// sendPayload sends a packet with a payload of a fixed size.
func (w *Win) sendPayload(core *protocol.Core, p *winPeer, h envelope.Header, what any) {
	h.Context = w.comm.contextID
	payload, _ := binary.Append(nil, binary.LittleEndian, what)
	_ = core.SendActive(p.job, h, payload) // if the rank is lost, so is the window
}

// dispatchRegion handles a packet about pieces.
func (w *Win) dispatchRegion(core *protocol.Core, p *winPeer, k winPacket, h *envelope.Header, payload []byte) error {
	if w.dynamic == nil {
		return fmt.Errorf("%w: packet %d, of dynamic windows", protocol.ErrProtocol, k)
	}
	switch k {
	case packetFind:
		var s rma.Span
		if n, err := binary.Decode(payload, binary.LittleEndian, &s); err != nil || n != len(payload) || !s.Valid() {
			return fmt.Errorf("%w: it looks for %d bytes of something", protocol.ErrProtocol, len(payload))
		}
		w.handleFind(core, p, h.ID, s)
		return nil
	case packetFound, packetMissing:
		return w.handleFindReply(p, k, h, payload)
	case packetRecall:
		return w.handleRecall(core, p, h)
	}
	v := w.dynamic.regions[h.ID]
	if v == nil || !v.detaching || v.holders[p.rank] == nil {
		return errUnexpectedReply
	}
	w.deregisterKey(v.holders[p.rank])
	delete(v.holders, p.rank)
	return nil
}

// handleFind tells a rank that asks for some bytes what piece they lie in. From then on it
// knows it.
func (w *Win) handleFind(core *protocol.Core, p *winPeer, question uint64, s rma.Span) {
	v, ok := w.dynamic.attached.Find(s)
	if !ok {
		below, above := w.dynamic.attached.Neighbors(s.Addr)
		w.sendPayload(core, p, envelope.Header{Tag: int32(packetMissing), ID: question}, missingReply{below, above})
		return
	}
	l := v.holders[p.rank]
	if l == nil {
		l = &regionKey{}
		if p.direct {
			var err error
			if l.key, l.exposed, err = w.eng.Fabric().RegisterMemory(p.job, v.Bytes, true); err != nil {
				l = &regionKey{} // there may be a limit to registered memory: it goes without
			}
		}
		v.holders[p.rank] = l
	}
	f := foundReply{ID: v.id, Span: v.span}
	l.key.MarshalTo(f.Key[:])
	w.sendPayload(core, p, envelope.Header{Tag: int32(packetFound), ID: question}, f)
}

// handleFindReply handles an answer.
func (w *Win) handleFindReply(p *winPeer, k winPacket, h *envelope.Header, payload []byte) error {
	var f foundReply
	var m missingReply
	into := any(&f)
	if k == packetMissing {
		into = &m
	}
	q := w.dynamic.queries[h.ID]
	if n, err := binary.Decode(payload, binary.LittleEndian, into); err != nil || n != len(payload) || q == nil || q.peer != p {
		return errUnexpectedReply
	}
	delete(w.dynamic.queries, h.ID)
	q.done = true
	if k == packetMissing {
		q.err = fmt.Errorf("%w: rank %d has not attached %v%s", ErrRange, p.rank, q.span, describeNearby(m.Below, m.Above))
		return nil
	}
	if f.ID == 0 || !f.Span.Valid() || !f.Span.Contains(q.span) {
		return fmt.Errorf("%w: %v, which do not have %v", errUnexpectedReply, f.Span, q.span)
	}
	if g, ok := p.regions.Find(q.span); ok && g.id == f.ID { // two have asked at a time
		return nil
	}
	g := &remoteRegion{peer: p, id: f.ID, span: f.Span}
	_ = g.key.Unmarshal(f.Key[:]) // which has its length
	g.direct = p.direct && g.key != (envelope.Key{})
	if other, ok := p.regions.Add(g.span, g); !ok {
		return fmt.Errorf("%w: %v, and before %v", errUnexpectedReply, f.Span, other)
	}
	return nil
}

// sendRecalls asks ranks to forget a piece.
func (w *Win) sendRecalls(core *protocol.Core, v *localRegion, ranks []int) {
	for _, r := range ranks {
		h := envelope.Header{Context: w.comm.contextID, Tag: int32(packetRecall), ID: v.id, Length: v.span.Addr}
		_ = core.SendActive(w.peers[r].job, h, nil) // if the rank is lost, so is the window
	}
}

// handleRecall handles a Recall.
func (w *Win) handleRecall(core *protocol.Core, p *winPeer, h *envelope.Header) error {
	g, ok := p.regions.Find(rma.Span{Addr: h.Length, Size: 1})
	if !ok || g.id != h.ID || g.span.Addr != h.Length {
		return fmt.Errorf("%w: it calls back piece %d, which is not known", protocol.ErrProtocol, h.ID)
	}
	p.regions.Remove(h.Length)
	g.recalled = true
	w.returnIfUnused(core, g)
	return nil
}

// returnIfUnused tells the owner of a piece that has been called back that nothing of ours
// is under way there any more, when that is so.
func (w *Win) returnIfUnused(core *protocol.Core, g *remoteRegion) {
	if g.recalled && g.users == 0 {
		w.sendSignal(core, g.peer, packetReturned, g.id)
	}
}

// deregisterKey takes a key back.
func (w *Win) deregisterKey(l *regionKey) {
	if l.exposed != nil {
		w.eng.Fabric().DeregisterMemory(l.exposed)
		l.exposed = nil
	}
}

// locateTarget is the piece of memory that an operation is for, if it is known, and where
// in it; else it says for which bytes to ask.
func (p *winPeer) locateTarget(n, extent int, at Place) (g *remoteRegion, in Place, unknown rma.Span, err error) {
	from, size, err := at.Span(n, extent)
	if err != nil {
		return nil, at, rma.Span{}, wrapPlaceError(err)
	}
	s := rma.Span{Addr: uint64(uintptr(at.Disp())) + uint64(from), Size: uint64(size)}
	if !s.Valid() {
		return nil, at, rma.Span{}, fmt.Errorf("%w: there are no addresses of %v", ErrRange, s)
	}
	g, ok := p.regions.Find(s)
	if !ok {
		return nil, at, s, nil
	}
	return g, at.WithDisp(at.Disp() - int(uintptr(g.span.Addr))), rma.Span{}, nil
}

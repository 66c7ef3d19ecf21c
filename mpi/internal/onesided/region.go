package onesided

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Lookup of attached memory in dynamic windows. An origin looks up the target region before its
// first operation: Find names a span, Found returns id, span and key of the region that
// contains it, or Missing reports that there is none. The origin caches the region until its
// owner recalls it: Detach sends Recall; the origin removes the region from its cache and
// replies Returned after its last operation on it is complete. Returned is ordered behind these
// operations, so the memory is not accessed after it. Ids are never reused: memory that is
// attached again is a new region.

// localRegion is memory of this rank in a window: attached memory, or all memory of a static
// window.
type localRegion struct {
	rma.Memory
	id        uint64             // of attached memory; 0 for a static window
	span      rma.Span           // of attached memory
	holders   map[int]*regionKey // ranks that have looked it up
	detaching bool               // Detach is in progress
	messages  int                // messages in progress to or from it
}

// regionKey is the key of a region for one rank.
type regionKey struct {
	key     envelope.Key          // zero: packets only
	exposed protocol.Registration // nil: packets only
}

// holderRanks returns the ranks that have looked up the region, sorted.
func (v *localRegion) holderRanks() []int {
	var list []int
	for r := range v.holders {
		list = append(list, r)
	}
	slices.Sort(list)
	return list
}

// isUnused reports whether no rank holds the region and no message is in progress.
func (v *localRegion) isUnused() bool { return len(v.holders) == 0 && v.messages == 0 }

// remoteRegion is memory of another rank in a window: attached memory, or all memory of a
// static window.
type remoteRegion struct {
	peer     *peer
	id       uint64 // as in localRegion
	span     rma.Span
	key      envelope.Key
	direct   bool // by RDMA
	users    int  // number of transfers
	recalled bool
}

// appendID appends the id with which packets for a region of a dynamic window begin.
func (g *remoteRegion) appendID(b []byte) []byte {
	if g.id == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(b, g.id)
}

// regionIDSize is the size of a region id in bytes.
const regionIDSize = 8

// targetRegion returns the local region that a packet of a rank is for, and the rest of the
// packet.
func (w *Window) targetRegion(p *peer, payload []byte) (*localRegion, []byte, error) {
	if w.dynamic == nil {
		return &w.staticRegion, payload, nil
	}
	if len(payload) < regionIDSize {
		return nil, nil, fmt.Errorf("%w: packet of %d bytes without region id", rma.ErrMalformed, len(payload))
	}
	id := binary.LittleEndian.Uint64(payload)
	v := w.dynamic.regions[id]
	if v == nil || v.holders[p.rank] == nil {
		return nil, nil, fmt.Errorf("%w: access to region %d without lookup", protocol.ErrProtocol, id)
	}
	return v, payload[regionIDSize:], nil
}

// localBytes returns the memory of a region of this rank.
func (w *Window) localBytes(g *remoteRegion) []byte {
	if g.id == 0 {
		return w.staticRegion.Bytes
	}
	return w.dynamic.regions[g.id].Bytes
}

// regionQuery is a lookup in progress.
type regionQuery struct {
	peer *peer
	span rma.Span
	done bool
	err  error // the span is not attached
}

// foundReply is the payload of Found.
type foundReply struct {
	ID   uint64
	Span rma.Span
	Key  [envelope.KeySize]byte
}

// missingReply is the payload of Missing: the attached memory nearest to the span.
type missingReply struct{ Below, Above rma.Span }

// findRegion looks up the region of a span at target and waits for the reply.
func (w *Window) findRegion(target int, s rma.Span) error {
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

// sendPayload sends a packet with a payload of fixed size.
func (w *Window) sendPayload(core *protocol.Core, p *peer, h envelope.Header, what any) {
	h.Context = w.comm.ContextID
	payload, _ := binary.Append(nil, binary.LittleEndian, what)
	_ = core.SendActive(p.job, h, payload) // if the rank is lost, so is the window
}

// dispatchRegion handles a packet of the lookup protocol.
func (w *Window) dispatchRegion(core *protocol.Core, p *peer, k packetType, h *envelope.Header, payload []byte) error {
	if w.dynamic == nil {
		return fmt.Errorf("%w: packet %d for a window that is not dynamic", protocol.ErrProtocol, k)
	}
	switch k {
	case packetFind:
		var s rma.Span
		if n, err := binary.Decode(payload, binary.LittleEndian, &s); err != nil || n != len(payload) || !s.Valid() {
			return fmt.Errorf("%w: malformed find request of %d bytes", protocol.ErrProtocol, len(payload))
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

// handleFind replies to the lookup of a span. From then on the rank is a holder of the region.
func (w *Window) handleFind(core *protocol.Core, p *peer, question uint64, s rma.Span) {
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
				l = &regionKey{} // registration failed, for example by a limit: use packets
			}
		}
		v.holders[p.rank] = l
	}
	f := foundReply{ID: v.id, Span: v.span}
	l.key.MarshalTo(f.Key[:])
	w.sendPayload(core, p, envelope.Header{Tag: int32(packetFound), ID: question}, f)
}

// handleFindReply handles Found and Missing.
func (w *Window) handleFindReply(p *peer, k packetType, h *envelope.Header, payload []byte) error {
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
		q.err = fmt.Errorf("%w: rank %d has not attached %v%s", rma.ErrRange, p.rank, q.span, describeNearby(m.Below, m.Above))
		return nil
	}
	if f.ID == 0 || !f.Span.Valid() || !f.Span.Contains(q.span) {
		return fmt.Errorf("%w: found %v, which do not contain %v", errUnexpectedReply, f.Span, q.span)
	}
	if g, ok := p.regions.Find(q.span); ok && g.id == f.ID { // two concurrent lookups
		return nil
	}
	g := &remoteRegion{peer: p, id: f.ID, span: f.Span}
	_ = g.key.Unmarshal(f.Key[:]) // which has its length
	g.direct = p.direct && g.key != (envelope.Key{})
	if other, ok := p.regions.Add(g.span, g); !ok {
		return fmt.Errorf("%w: found %v, which overlap %v", errUnexpectedReply, f.Span, other)
	}
	return nil
}

// sendRecalls sends Recall to the holders of a region.
func (w *Window) sendRecalls(core *protocol.Core, v *localRegion, ranks []int) {
	for _, r := range ranks {
		h := envelope.Header{Context: w.comm.ContextID, Tag: int32(packetRecall), ID: v.id, Length: v.span.Addr}
		_ = core.SendActive(w.peers[r].job, h, nil) // if the rank is lost, so is the window
	}
}

func (w *Window) handleRecall(core *protocol.Core, p *peer, h *envelope.Header) error {
	g, ok := p.regions.Find(rma.Span{Addr: h.Length, Size: 1})
	if !ok || g.id != h.ID || g.span.Addr != h.Length {
		return fmt.Errorf("%w: recall of unknown region %d", protocol.ErrProtocol, h.ID)
	}
	p.regions.Remove(h.Length)
	g.recalled = true
	w.returnIfUnused(core, g)
	return nil
}

// returnIfUnused sends Returned for a recalled region without transfers in progress.
func (w *Window) returnIfUnused(core *protocol.Core, g *remoteRegion) {
	if g.recalled && g.users == 0 {
		w.sendSignal(core, g.peer, packetReturned, g.id)
	}
}

// deregisterKey deregisters the key of a region for one rank.
func (w *Window) deregisterKey(l *regionKey) {
	if l.exposed != nil {
		w.eng.Fabric().DeregisterMemory(l.exposed)
		l.exposed = nil
	}
}

// locateTarget returns the region that an operation is for, if it is cached, and the place in
// it; else it returns the span to look up.
func (p *peer) locateTarget(n, extent int, at rma.Place) (g *remoteRegion, in rma.Place, unknown rma.Span, err error) {
	from, size, err := at.Span(n, extent)
	if err != nil {
		return nil, at, rma.Span{}, err
	}
	s := rma.Span{Addr: uint64(uintptr(at.Disp())) + uint64(from), Size: uint64(size)}
	if !s.Valid() {
		return nil, at, rma.Span{}, fmt.Errorf("%w: invalid addresses %v", rma.ErrRange, s)
	}
	g, ok := p.regions.Find(s)
	if !ok {
		return nil, at, s, nil
	}
	return g, at.WithDisp(at.Disp() - int(uintptr(g.span.Addr))), rma.Span{}, nil
}

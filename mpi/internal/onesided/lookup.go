package onesided

import (
	"encoding/binary"
	"fmt"

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

// foundReply is the payload of Found.
type foundReply struct {
	ID   uint64
	Span rma.Span
	Key  [envelope.KeySize]byte
}

// missingReply is the payload of Missing: the attached memory nearest to the span.
type missingReply struct{ Below, Above rma.Span }

// locateTarget returns the region that an operation is for, if it is cached, and the place in
// it; else it returns the span to look up.
func (p *peer) locateTarget(n, extent int, at rma.Place) (remote *remoteRegion, in rma.Place, unknown rma.Span, err error) {
	from, size, err := at.Span(n, extent)
	if err != nil {
		return nil, at, rma.Span{}, err
	}
	s := rma.Span{Addr: uint64(uintptr(at.Disp())) + uint64(from), Size: uint64(size)}
	if !s.Valid() {
		return nil, at, rma.Span{}, fmt.Errorf("%w: invalid addresses %v", rma.ErrRange, s)
	}
	remote, ok := p.regions.Find(s)
	if !ok {
		return nil, at, s, nil
	}
	return remote, at.WithDisp(at.Disp() - int(uintptr(remote.span.Addr))), rma.Span{}, nil
}

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
	id := w.pending.newID()
	d.queries[id] = q
	w.sendPayload(core, q.peer, envelope.Header{Tag: int32(packetFind), ID: id}, s)
	w.eng.Unlock()
	if err := w.waitUntil("what a rank has attached", func() bool { return q.done }, nil, target); err != nil {
		return err
	}
	return q.err
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
	return w.handleReturned(p, h.ID)
}

// handleFind replies to the lookup of a span. From then on the rank is a holder of the region.
func (w *Window) handleFind(core *protocol.Core, p *peer, question uint64, s rma.Span) {
	local, ok := w.dynamic.attached.Find(s)
	if !ok {
		below, above := w.dynamic.attached.Neighbors(s.Addr)
		w.sendPayload(core, p, envelope.Header{Tag: int32(packetMissing), ID: question}, missingReply{below, above})
		return
	}
	holder := local.holders[p.rank]
	if holder == nil {
		holder = &regionKey{}
		if p.direct {
			var err error
			if holder.key, holder.exposed, err = w.eng.Fabric().RegisterMemory(p.job, local.Bytes, true); err != nil {
				holder = &regionKey{} // registration failed, for example by a limit: use packets
			}
		}
		local.holders[p.rank] = holder
	}
	f := foundReply{ID: local.id, Span: local.span}
	holder.key.MarshalTo(f.Key[:])
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
	if remote, ok := p.regions.Find(q.span); ok && remote.id == f.ID { // two concurrent lookups
		return nil
	}
	remote := &remoteRegion{id: f.ID, span: f.Span}
	_ = remote.key.Unmarshal(f.Key[:]) // which has its length
	remote.direct = p.direct && remote.key != (envelope.Key{})
	if other, ok := p.regions.Add(remote.span, remote); !ok {
		return fmt.Errorf("%w: found %v, which overlap %v", errUnexpectedReply, f.Span, other)
	}
	return nil
}

// handleRecall removes a region from the cache.
func (w *Window) handleRecall(core *protocol.Core, p *peer, h *envelope.Header) error {
	remote, ok := p.regions.Find(rma.Span{Addr: h.Length, Size: 1})
	if !ok || remote.id != h.ID || remote.span.Addr != h.Length {
		return fmt.Errorf("%w: recall of unknown region %d", protocol.ErrProtocol, h.ID)
	}
	p.regions.Remove(h.Length)
	remote.recalled = true
	w.returnIfUnused(core, p, remote)
	return nil
}

// handleReturned handles the reply to Recall.
func (w *Window) handleReturned(p *peer, id uint64) error {
	local := w.dynamic.regions[id]
	if local == nil || !local.detaching || local.holders[p.rank] == nil {
		return errUnexpectedReply
	}
	w.deregisterKey(local.holders[p.rank])
	delete(local.holders, p.rank)
	return nil
}

// deregisterKey deregisters the key of a region for one rank.
func (w *Window) deregisterKey(holder *regionKey) {
	if holder.exposed != nil {
		w.eng.Fabric().DeregisterMemory(holder.exposed)
		holder.exposed = nil
	}
}

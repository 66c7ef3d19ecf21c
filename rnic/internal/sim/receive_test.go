package sim_test

import (
	"bytes"
	"maps"
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// landing is the memory of receives: slots of equal size.
type landing struct {
	arena  *arena
	size   int // of a slot
	maxSGE int
	free   []int
	nextID uint64
}

// receive is a posted receive.
type receive struct {
	id    uint64
	slot  int
	parts []span // offsets in the arena, in the order of the list
}

func newLanding(h *host, slots, size, maxSGE int) *landing {
	l := &landing{size: (size + 7) &^ 7, maxSGE: maxSGE}
	l.arena = newArena(h, slots*l.size, 0)
	l.arena.next = slots * l.size
	for i := range slots {
		l.free = append(l.free, i)
	}
	return l
}

// prepare returns a receive of a free slot, with its elements in any order.
func (l *landing) prepare() (verbs.RecvWR, *receive) {
	w := l.arena.world
	i := w.rand.IntN(len(l.free))
	slot := l.free[i]
	l.free = append(l.free[:i], l.free[i+1:]...)
	l.nextID++
	r := &receive{id: l.nextID, slot: slot}
	wr := verbs.RecvWR{WRID: r.id}
	off, left := slot*l.size, l.size
	for n := w.between(1, l.maxSGE); n > 0; n-- {
		part := left
		if n > 1 {
			part = w.between(0, left)
		}
		r.parts = append(r.parts, span{off, part})
		off, left = off+part, left-part
	}
	w.rand.Shuffle(len(r.parts), func(i, j int) { r.parts[i], r.parts[j] = r.parts[j], r.parts[i] })
	for _, p := range r.parts {
		wr.SGList = append(wr.SGList, l.arena.mr.SGE(p.off, p.n))
	}
	return wr, r
}

// checkReceive returns the first n bytes of a completed receive and updates the model. Nothing else
// may have changed, unless parts of lost messages may be there.
func (l *landing) checkReceive(r *receive, n int, dirty bool) []byte {
	var got []byte
	for _, p := range r.parts {
		k := min(n, p.n)
		b := l.arena.at(p.off, k)
		got = append(got, b...)
		copy(l.arena.want[p.off:], b)
		n -= k
	}
	l.release(r, dirty)
	return got
}

// release frees the slot.
func (l *landing) release(r *receive, dirty bool) {
	off := r.slot * l.size
	now, want := l.arena.at(off, l.size), l.arena.want[off:off+l.size]
	if dirty {
		copy(want, now)
	} else if !bytes.Equal(now, want) {
		l.arena.world.fail("receive %d: bytes beyond the message have changed", r.id)
	}
	l.free = append(l.free, r.slot)
}

// check compares all slots with the model, except posted ones: an interrupted unreliable message
// may have written to one.
func (l *landing) check(what string, posted []*receive) {
	l.markDirty(posted)
	l.arena.check(what)
}

// markDirty updates the model for posted receives, to which an interrupted message may have
// written.
func (l *landing) markDirty(posted []*receive) {
	for _, r := range posted {
		off := r.slot * l.size
		copy(l.arena.want[off:], l.arena.at(off, l.size))
	}
}

// postReceives posts receives, not always as many as possible: late ones are part of the program.
// It reports whether it posted any.
func (h *qpProgram) postReceives() bool {
	w := h.world
	if s := h.srq(); s != nil {
		return s.postReceives()
	}
	room := min(len(h.landing.free), h.cap.MaxRecvWR-len(h.receives))
	if room == 0 || w.chance(40) {
		return false
	}
	var list []verbs.RecvWR
	for range w.between(1, room) {
		wr, r := h.landing.prepare()
		list = append(list, wr)
		h.receives = append(h.receives, r)
	}
	_, err := h.qp.PostRecv(list)
	w.must(err)
	return true
}

// shared is a shared receive queue.
type shared struct {
	host  *host
	queue verbs.SRQ
	*landing
	posted map[uint64]*receive
	latest uint64 // consumed receives
	limit  bool   // armed
}

// Limits of a shared receive queue and of its messages.
const (
	sharedSlots = 12
	sharedMost  = 3000
)

func newShared(h *host) *shared {
	s := &shared{host: h, posted: make(map[uint64]*receive), landing: newLanding(h, sharedSlots, sharedMost, 3)}
	var err error
	s.queue, err = h.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: sharedSlots, MaxSGE: 3})
	h.world.must(err)
	return s
}

func (s *shared) postReceives() bool {
	w := s.host.world
	if len(s.free) == 0 || w.chance(40) {
		return false
	}
	var list []verbs.RecvWR
	for range w.between(1, len(s.free)) {
		wr, r := s.prepare()
		list = append(list, wr)
		s.posted[r.id] = r
	}
	_, err := s.queue.PostRecv(list)
	w.must(err)
	if !s.limit && w.chance(30) {
		s.limit = true
		w.must(s.queue.Modify(verbs.SRQAttr{Limit: w.between(1, 3)}, verbs.SRQLimit))
	}
	return true
}

// check compares the slots with the model, and checks that receives were consumed in order: none
// that remains is older than a consumed one. A queue pair that has not detected an interrupted
// message may hold one.
func (s *shared) check() {
	w := s.host.world
	for _, q := range s.host.halves {
		if q.typ == verbs.UC && q.srq() != nil {
			s.latest = 0
		}
	}
	for id := range s.posted {
		if id < s.latest && !s.host.killed {
			w.fail("%s: receive %d of the SRQ was not taken, but %d was", s.host.name, id, s.latest)
		}
	}
	s.landing.check("shared receives of "+s.host.name, slices.Collect(maps.Values(s.posted)))
}

// received returns the receive of a completion.
func (h *qpProgram) received(wc *verbs.WC) (*landing, *receive) {
	w := h.world
	if s := h.srq(); s != nil {
		r := s.posted[wc.WRID]
		if r == nil {
			w.fail("%v: completion of receive %d, which is not posted: %+v", h, wc.WRID, *wc)
		}
		delete(s.posted, wc.WRID)
		s.latest = max(s.latest, wc.WRID)
		return s.landing, r
	}
	if len(h.receives) == 0 || h.receives[0].id != wc.WRID {
		w.fail("%v: completion of receive %d is not the oldest: %+v", h, wc.WRID, *wc)
	}
	r := h.receives[0]
	h.receives = h.receives[1:]
	return h.landing, r
}

package reliability

import "github.com/softrnic/softrnic/wire"

// A Resource is the responder state of one read, atomic, FLUSH or ATOMIC WRITE. It is kept until
// as many later ones have arrived as the requester may have outstanding, so that a repeated request
// can be answered again.
type Resource struct {
	First, Last wire.PSN // PSNs of the response
	Atomic      bool
	Empty       bool   // FLUSH, ATOMIC WRITE: the response has no data
	Orig        uint64 // atomics: original value in host byte order
	VA          uint64 // reads: address of the data in First
	RKey        uint32
	Length      uint32 // reads: bytes from First
	MSN         uint32 // MSN of the response

	// The pending response consists of the PSNs From to To. Next is sent next.
	From, Next, To wire.PSN
	number         uint32 // in the order of arrival
	pending        bool
	replay         bool // the response was sent before
}

// Pending reports whether a response is pending.
func (e *Resource) Pending() bool { return e.pending }

// IsReplay reports whether the pending response was sent before.
func (e *Resource) IsReplay() bool { return e.replay }

// A Resources is the ring of responder resources. Its memory is allocated with
// the first reads and atomics.
type Resources struct {
	ring    []Resource // a resource is at its number modulo the length
	replays []Resource // parts of responses to be sent again, oldest first

	firstReplay uint16 // index of the oldest one

	limit   uint16
	used    uint16 // number of the newest resources that are kept
	pending uint16 // number of them with a pending response
	next    uint32 // number of the next resource
	oldest  uint32 // no resource before it has a pending response
}

// firstRing is the length of the first ring, which grows up to the limit.
const firstRing = 16

// maxReplays is the maximum number of parts of responses that are queued to be
// sent again.
const maxReplays = 1024

// ScheduleReplay queues the PSNs from to to of the response of e to be sent
// again, before all pending responses, whether or not e itself is pending. If it
// is, it may then be evicted: the requester may have received all of it by
// replays when it sends new requests. It reports false if too many are queued.
func (r *Resources) ScheduleReplay(e *Resource, from, to wire.PSN) bool {
	if len(r.replays)-int(r.firstReplay) == maxReplays {
		return false
	}
	if r.firstReplay == maxReplays {
		r.replays, r.firstReplay = r.replays[:copy(r.replays, r.replays[r.firstReplay:])], 0
	}
	e.replay = true
	part := *e
	part.From, part.Next, part.To, part.pending, part.replay = from, from, to, true, true
	r.replays = append(r.replays, part)
	return true
}

// hasReplay reports whether a part of a response is queued to be sent again.
func (r *Resources) hasReplay() bool { return int(r.firstReplay) < len(r.replays) }

// Reset discards all resources and sets the limit of their number.
func (r *Resources) Reset(limit int) {
	if len(r.ring) > limit {
		r.ring = nil
	}
	clear(r.ring)
	*r = Resources{ring: r.ring, limit: uint16(limit)}
}

// Resize changes the limit and keeps the newest resources.
func (r *Resources) Resize(limit int) {
	old := *r
	*r = Resources{limit: uint16(limit), next: old.next, oldest: old.next}
	if limit == 0 || old.used == 0 {
		return
	}
	r.used = min(old.used, r.limit)
	r.setLength(&old, min(limit, max(firstRing, int(r.used))))
	r.oldest = r.next - uint32(r.used)
	for n := r.oldest; n != r.next; n++ {
		if r.numbered(n).pending {
			r.pending++
		}
	}
}

// setLength makes a ring of n places with the resources of old that are kept.
func (r *Resources) setLength(old *Resources, n int) {
	from := *old
	r.ring = make([]Resource, n)
	for i := r.next - uint32(r.used); i != r.next; i++ {
		*r.numbered(i) = *from.numbered(i)
	}
}

// numbered returns the resource with number n.
func (r *Resources) numbered(n uint32) *Resource { return &r.ring[n%uint32(len(r.ring))] }

// Add returns a new resource and evicts the oldest one if all are in use. It
// returns nil if the limit is 0, or if the first response of the oldest is
// still pending, which means that the requester exceeds the limit. A pending
// replay may be evicted: a requester that sends new requests has received that
// response.
func (r *Resources) Add() *Resource {
	if r.limit == 0 {
		return nil
	}
	switch {
	case r.used < r.limit:
		if int(r.used) == len(r.ring) {
			r.setLength(r, min(int(r.limit), max(firstRing, 2*len(r.ring))))
		}
		r.used++
	case !r.HasRoom():
		return nil
	default:
		evicted := r.numbered(r.next - uint32(r.used))
		r.CancelResponse(evicted)
		if int32(r.oldest-evicted.number) <= 0 {
			r.oldest = evicted.number + 1
		}
	}
	e := r.numbered(r.next)
	*e = Resource{number: r.next}
	r.next++
	return e
}

// HasRoom reports whether Add returns a resource.
func (r *Resources) HasRoom() bool {
	if r.used < r.limit || r.limit == 0 {
		return r.limit > 0
	}
	e := r.numbered(r.next - uint32(r.used))
	return !e.pending || e.replay
}

// ScheduleResponse makes the PSNs from to to of the response of e pending.
// replay reports that they were sent before.
func (r *Resources) ScheduleResponse(e *Resource, from, to wire.PSN, replay bool) {
	if !e.pending {
		r.pending++
	}
	if r.pending == 1 || int32(e.number-r.oldest) < 0 {
		r.oldest = e.number
	}
	e.pending, e.replay = true, replay
	e.From, e.Next, e.To = from, from, to
}

// OnPacketSent advances e past the packet just sent, and reports whether this
// was the last packet of the response.
func (r *Resources) OnPacketSent(e *Resource) bool {
	last := e.Next == e.To
	e.Next = e.Next.Add(1)
	if last {
		r.CancelResponse(e)
	}
	return last
}

// CancelResponse cancels the pending response of e.
func (r *Resources) CancelResponse(e *Resource) {
	if r.hasReplay() && e == &r.replays[r.firstReplay] {
		e.pending = false
		if r.firstReplay++; !r.hasReplay() {
			r.replays, r.firstReplay = r.replays[:0], 0
		}
		return
	}
	if e.pending {
		e.pending = false
		r.pending--
	}
}

// CancelAll cancels all pending responses.
func (r *Resources) CancelAll() {
	for r.pending > 0 || r.hasReplay() {
		r.CancelResponse(r.NextPending())
	}
}

// FindByPSN returns the newest resource whose response includes psn, or nil.
func (r *Resources) FindByPSN(psn wire.PSN) *Resource {
	for i := uint32(1); i <= uint32(r.used); i++ {
		e := r.numbered(r.next - i)
		if e.First.LessEq(psn) && psn.LessEq(e.Last) {
			return e
		}
	}
	return nil
}

// NextPending returns the oldest resource with a pending response, or nil.
func (r *Resources) NextPending() *Resource {
	if r.hasReplay() {
		return &r.replays[r.firstReplay]
	}
	if r.pending == 0 {
		return nil
	}
	for ; !r.numbered(r.oldest).pending; r.oldest++ {
	}
	return r.numbered(r.oldest)
}

package reliability

import "github.com/softrnic/softrnic/wire"

// A Resource is the responder state of one read, atomic, FLUSH or ATOMIC WRITE. It is kept until
// max_dest_rd_atomic later ones have arrived, so that a repeated request can be
// answered again.
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
	pending        bool
	replay         bool // the response was sent before
}

// Pending reports whether a response is pending.
func (e *Resource) Pending() bool { return e.pending }

// IsReplay reports whether the pending response was sent before.
func (e *Resource) IsReplay() bool { return e.replay }

// A Resources is the ring of responder resources. Its memory is allocated with
// the first read or atomic.
type Resources struct {
	ring    []Resource
	replays []Resource // parts of responses to be sent again, oldest first

	firstReplay uint16 // index of the oldest one

	limit   uint8
	next    uint8 // slot of the next resource
	used    uint8
	pending uint8 // number of used slots with a pending response
}

// maxReplays is the maximum number of parts of responses that are queued to be
// sent again.
const maxReplays = 256

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

// Reset discards all resources and sets the limit (max_dest_rd_atomic, at most
// 128).
func (r *Resources) Reset(limit uint8) {
	if len(r.ring) != int(limit) {
		r.ring = nil
	}
	clear(r.ring)
	*r = Resources{ring: r.ring, limit: limit}
}

// Resize changes the limit and keeps the newest resources.
func (r *Resources) Resize(limit uint8) {
	old := *r
	*r = Resources{limit: limit}
	if limit == 0 || old.used == 0 {
		return
	}
	r.ring = make([]Resource, limit)
	for i := old.used - min(old.used, limit); i < old.used; i++ {
		e := old.nthOldest(i)
		r.ring[r.used] = *e
		r.used++
		if e.pending {
			r.pending++
		}
	}
	r.next = r.used % limit
}

// nthOldest returns the i-th oldest resource.
func (r *Resources) nthOldest(i uint8) *Resource {
	return &r.ring[(int(r.next)+int(r.limit)-int(r.used)+int(i))%int(r.limit)]
}

// Add returns a new resource and evicts the oldest one if all are in use. It
// returns nil if the limit is 0, or if the first response of the oldest is
// still pending, which means that the requester exceeds the limit. A pending
// replay may be evicted: a requester that sends new requests has received that
// response.
func (r *Resources) Add() *Resource {
	if r.limit == 0 {
		return nil
	}
	if r.ring == nil {
		r.ring = make([]Resource, r.limit)
	}
	e := &r.ring[r.next]
	if e.pending {
		if !e.replay {
			return nil
		}
		r.pending--
	}
	*e = Resource{}
	r.next = (r.next + 1) % r.limit
	r.used = min(r.used+1, r.limit)
	return e
}

// HasRoom reports whether Add returns a resource.
func (r *Resources) HasRoom() bool {
	if r.ring == nil {
		return r.limit > 0
	}
	e := &r.ring[r.next]
	return !e.pending || e.replay
}

// ScheduleResponse makes the PSNs from to to of the response of e pending.
// replay reports that they were sent before.
func (r *Resources) ScheduleResponse(e *Resource, from, to wire.PSN, replay bool) {
	if !e.pending {
		r.pending++
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
	for i := r.used; i > 0; i-- {
		e := r.nthOldest(i - 1)
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
	for i := uint8(0); i < r.used; i++ {
		if e := r.nthOldest(i); e.pending {
			return e
		}
	}
	return nil
}

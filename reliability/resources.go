package reliability

import "github.com/softrnic/softrnic/wire"

// Resource remembers one read or atomic that a responder executes, until
// max_dest_rd_atomic later ones have come: to send its response, and to send
// it again when the requester asks again.
type Resource struct {
	First, Last wire.PSN // PSNs of the response
	Atomic      bool
	Orig        uint64 // atomics: value before, host order
	VA          uint64 // reads: what First reads
	RKey        uint32
	Length      uint32 // reads: bytes from First
	MSN         uint32 // that the response carries

	// The response being sent, while it is pending: PSNs From to To, of which
	// Next is to leave.
	From, Next, To wire.PSN
	pending        bool
	replay         bool // it has left once before
}

// Pending reports whether a response waits to be sent, and Replay whether it
// repeats one.
func (e *Resource) Pending() bool  { return e.pending }
func (e *Resource) IsReplay() bool { return e.replay }

// Resources is the ring of responder resources. The memory is there only once
// the first read or atomic has come.
type Resources struct {
	ring    []Resource
	limit   uint8
	next    uint8 // slot of the next one
	used    uint8
	pending uint8 // of those used
}

// Reset forgets everything and allows limit (max_dest_rd_atomic, up to 128)
// resources.
func (r *Resources) Reset(limit uint8) {
	if len(r.ring) != int(limit) {
		r.ring = nil
	}
	clear(r.ring)
	*r = Resources{ring: r.ring, limit: limit}
}

// Resize allows limit resources from now on and keeps the newest.
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

// Add returns a fresh resource, forgetting the oldest if all are in use. It
// returns nil if there are none at all, or if the oldest response has not
// been sent: then the requester has exceeded the limit. A repeated response
// may go unsent: the requester has what it asked for if it asks for more.
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

// ScheduleResponse makes the response of e from PSN from to PSN to pending; replay says
// that it has been sent before.
func (r *Resources) ScheduleResponse(e *Resource, from, to wire.PSN, replay bool) {
	if !e.pending {
		r.pending++
	}
	e.pending, e.replay = true, replay
	e.From, e.Next, e.To = from, from, to
}

// OnPacketSent moves e past the packet that left, and reports whether it was the last
// one of the response.
func (r *Resources) OnPacketSent(e *Resource) bool {
	last := e.Next == e.To
	e.Next = e.Next.Add(1)
	if last {
		r.CancelResponse(e)
	}
	return last
}

// CancelResponse gives up what has not been sent of the response of e.
func (r *Resources) CancelResponse(e *Resource) {
	if e.pending {
		e.pending = false
		r.pending--
	}
}

// CancelAll gives up every pending response.
func (r *Resources) CancelAll() {
	for r.pending > 0 {
		r.CancelResponse(r.NextPending())
	}
}

// FindByPSN returns the newest resource whose response covers psn, or nil.
func (r *Resources) FindByPSN(psn wire.PSN) *Resource {
	for i := r.used; i > 0; i-- {
		e := r.nthOldest(i - 1)
		if e.First.LessEq(psn) && psn.LessEq(e.Last) {
			return e
		}
	}
	return nil
}

// NextPending returns the oldest resource with a response to send, or nil.
func (r *Resources) NextPending() *Resource {
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

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

	// The response being sent: PSNs From to Last, of which Next is to leave.
	Pending bool
	From    wire.PSN
	Next    wire.PSN
}

// Resources is the ring of responder resources. The memory is there only once
// the first read or atomic has come.
type Resources struct {
	ring  []Resource
	limit uint8
	next  uint8 // slot of the next one
	used  uint8
}

// Reset allows limit (max_dest_rd_atomic) resources.
func (r *Resources) Reset(limit uint8) {
	r.limit, r.next, r.used = limit, 0, 0
	if len(r.ring) != int(limit) {
		r.ring = nil
	}
	clear(r.ring)
}

// Limit is max_dest_rd_atomic.
func (r *Resources) Limit() int { return int(r.limit) }

// Add returns a fresh resource, forgetting the oldest if all are in use. It
// returns nil if there are none at all, or if the oldest response has not
// been sent: then the requester has exceeded the limit.
func (r *Resources) Add() *Resource {
	if r.limit == 0 {
		return nil
	}
	if r.ring == nil {
		r.ring = make([]Resource, r.limit)
	}
	e := &r.ring[r.next]
	if e.Pending {
		return nil
	}
	*e = Resource{}
	r.next = (r.next + 1) % r.limit
	r.used = min(r.used+1, r.limit)
	return e
}

// Find returns the resource whose response covers psn, or nil.
func (r *Resources) Find(psn wire.PSN) *Resource {
	for i := uint8(0); i < r.used; i++ {
		e := &r.ring[i]
		if e.First.LessEq(psn) && psn.LessEq(e.Last) {
			return e
		}
	}
	return nil
}

// NextPending returns the oldest resource with a response to send, or nil.
func (r *Resources) NextPending() *Resource {
	for i := uint8(0); i < r.used; i++ {
		e := &r.ring[(r.next+r.limit-r.used+i)%r.limit]
		if e.Pending {
			return e
		}
	}
	return nil
}

package mpi

import (
	"fmt"
	"math"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// contextIDs allocates the context ids of a rank's communicators. An id is the same at all
// ranks of its communicator. Ids are reused as late as possible, so that a message left over
// from a freed communicator rarely matches a new one.
type contextIDs struct {
	mu    sync.Mutex
	limit uint64              // maximum number of ids in use
	next  uint64              // ticket to try first
	used  map[uint64]struct{} // tickets modulo limit
}

// maxContexts is the maximum number of communicators of a rank at a time.
const maxContexts = 1 << 15

// Context ids. A communicator takes two: one for point-to-point messages and one for
// collectives.
const (
	worldID = 0
	selfID  = 2
	firstID = 4
)

func newContextIDs(limit uint64) *contextIDs {
	return &contextIDs{limit: limit, used: map[uint64]struct{}{}}
}

// idOf returns the context id of a ticket.
func (x *contextIDs) idOf(ticket uint64) uint32 { return firstID + 2*uint32(ticket%x.limit) }

// noTicket is the proposal of a rank that has no free ticket.
const noTicket = math.MaxUint64

// reserveID reserves the first free ticket from the given one on, or from x.next if from is 0. It
// returns noTicket if all ids are in use.
func (x *contextIDs) reserveID(from uint64) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if from == 0 {
		from = x.next
	}
	for t := from; t < from+x.limit; t++ {
		if _, used := x.used[t%x.limit]; !used {
			x.used[t%x.limit] = struct{}{}
			x.next = t + 1
			return t
		}
	}
	return noTicket
}

// releaseID frees a ticket.
func (x *contextIDs) releaseID(ticket uint64) {
	if ticket == noTicket {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.used, ticket%x.limit)
}

// agreeContextID finds a context id that is free at all ranks of c and reserves it at each. It
// is collective over c. The ranks propose tickets until all propose the highest one; other
// communicators may do the same concurrently. op names the caller in errors; args are arguments
// that must be equal at all ranks.
func (c *Comm) agreeContextID(op string, args ...any) (ticket uint64, err error) {
	x := c.world.contexts
	reserve := func(from uint64) uint64 {
		t := x.reserveID(from)
		if t != noTicket {
			c.world.calls.EvictFreed(x.idOf(t))
		}
		return t
	}
	ticket = reserve(0)
	for {
		v := [2]uint64{ticket, ^ticket}
		if ticket == noTicket {
			v[1] = noTicket
		}
		if err = c.callState().RunAs(op, collective.AllreduceOp(datatype.InPlace, datatype.Of(v[:]), datatype.Max), args...); err == nil && v[0] == noTicket {
			err = fmt.Errorf("%w: a rank has reached the limit of %d", ErrContexts, x.limit)
		}
		if err != nil {
			x.releaseID(ticket)
			return 0, err
		}
		highest, lowest := v[0], ^v[1]
		if highest == lowest {
			return ticket, nil
		}
		if ticket != highest {
			x.releaseID(ticket)
			ticket = reserve(highest)
		}
	}
}

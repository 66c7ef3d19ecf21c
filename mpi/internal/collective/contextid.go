package collective

import (
	"math"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/comm"
)

// ContextIDs allocates the context ids of a rank's communicators. An id is the same at all
// ranks of its communicator. Ids are reused as late as possible, so that a message left over
// from a freed communicator rarely matches a new one.
type ContextIDs struct {
	mu    sync.Mutex
	limit uint64              // maximum number of ids in use
	next  uint64              // ticket to try first
	used  map[uint64]struct{} // tickets modulo limit
}

// MaxContexts is the maximum number of communicators of a rank at a time.
const MaxContexts = 1 << 15

// NewContextIDs returns the context ids of limit communicators besides the predefined ones.
func NewContextIDs(limit uint64) *ContextIDs {
	return &ContextIDs{limit: limit, used: map[uint64]struct{}{}}
}

// idOf returns the context id of a ticket.
func (x *ContextIDs) idOf(ticket uint64) uint32 { return comm.FirstID + 2*uint32(ticket%x.limit) }

// noTicket is the proposal of a rank that has no free ticket.
const noTicket = math.MaxUint64

// reserveID reserves the first free ticket from the given one on, or from x.next if from is 0. It
// returns noTicket if all ids are in use.
func (x *ContextIDs) reserveID(from uint64) uint64 {
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
func (x *ContextIDs) releaseID(ticket uint64) {
	if ticket == noTicket {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.used, ticket%x.limit)
}

// A Context is a context id that the ranks of a new communicator have reserved.
type Context struct {
	ids    *ContextIDs
	ticket uint64
}

// ID returns the context id.
func (x Context) ID() uint32 { return x.ids.idOf(x.ticket) }

// Release returns the context id, when the communicator is freed or if this rank is no member.
func (x Context) Release() { x.ids.releaseID(x.ticket) }

package mpi

import (
	"fmt"
	"math"
	"sync"
)

// contexts are the numbers of a rank's communicators, by which their messages are
// told apart. Each is the same at all ranks of its communicator. They are given out
// one after the other and used again as late as possible, so that what a careless
// program has left of an old communicator is not taken for a new one's.
type contexts struct {
	mu    sync.Mutex
	limit uint64              // how many there can be at a time
	next  uint64              // ticket
	used  map[uint64]struct{} // tickets modulo limit
}

const maxContexts = 1 << 15

// Numbers of communicators: each takes two, one for the messages of the program and
// one for those of collectives.
const (
	worldID = 0
	selfID  = 2
	firstID = 4
)

func newContexts(limit uint64) *contexts {
	return &contexts{limit: limit, used: map[uint64]struct{}{}}
}

// id is the number that a ticket stands for.
func (x *contexts) id(ticket uint64) uint32 { return firstID + 2*uint32(ticket%x.limit) }

// noTicket is proposed by who has none.
const noTicket = math.MaxUint64

// reserve takes the first ticket that is free, from one on if that is not 0.
func (x *contexts) reserve(from uint64) uint64 {
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

// release gives a ticket, or what it stands for, back.
func (x *contexts) release(ticket uint64) {
	if ticket == noTicket {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.used, ticket%x.limit)
}

// agree finds a number that all ranks of c have free, which each has then reserved:
// the highest of what they propose, as soon as all propose it. Other communicators
// may be looking for theirs at the same time. op is what it is for, and args what all
// ranks give to it alike.
func (c *Comm) agree(op string, args ...any) (ticket uint64, err error) {
	x := c.world.contexts
	reserve := func(from uint64) uint64 {
		t := x.reserve(from)
		if t != noTicket {
			c.world.comms.evictFreed(x.id(t))
		}
		return t
	}
	ticket = reserve(0)
	for {
		v := [2]uint64{ticket, ^ticket}
		if ticket == noTicket {
			v[1] = noTicket
		}
		o := allreduce(InPlace, Of(v[:]), Max)
		o.as, o.made = op, argumentsSign(args...)
		if err = c.perform(&o); err == nil && v[0] == noTicket {
			err = fmt.Errorf("%w: a rank has %d already", ErrContexts, x.limit)
		}
		if err != nil {
			x.release(ticket)
			return 0, err
		}
		highest, lowest := v[0], ^v[1]
		if highest == lowest {
			return ticket, nil
		}
		if ticket != highest {
			x.release(ticket)
			ticket = reserve(highest)
		}
	}
}

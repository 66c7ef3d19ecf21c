package mpi

import (
	"slices"
	"sync"
	"weak"
)

// comms are the communicators of a rank by their number, for reports: messages know
// nothing else. A communicator that nobody uses any more is not kept alive by it.
type comms struct {
	mu   sync.Mutex
	list map[uint32]weak.Pointer[Comm]

	early map[uint32]*disagreement // about a call of one that is not made here yet
	freed []*Comm                  // the last maxFreed, oldest first: they are in list until then
}

func (x *comms) add(c *Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		x.list = map[uint32]weak.Pointer[Comm]{}
	}
	x.list[c.id] = weak.Make(c)
	if d := x.early[c.id]; d != nil {
		c.log.note(d, 0)
		delete(x.early, c.id)
	}
}

// maxEarly is the maximum number of disagreements kept for communicators that do not exist yet.
const maxEarly = 64

// keepEarly keeps the first disagreement about calls of a communicator that this rank has
// not made yet, which others have.
func (x *comms) keepEarly(id uint32, d *disagreement) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.early == nil {
		x.early = map[uint32]*disagreement{}
	}
	if x.early[id] == nil && len(x.early) < maxEarly {
		x.early[id] = d
	}
}

// maxFreed is the maximum number of freed communicators that are kept for late messages of
// other ranks, which may show a disagreement.
const maxFreed = 16

// keepFreed keeps a freed communicator, and evicts the oldest of more than maxFreed.
func (x *comms) keepFreed(c *Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.freed = append(x.freed, c); len(x.freed) > maxFreed {
		delete(x.list, x.freed[0].id)
		x.freed = slices.Delete(x.freed, 0, 1)
	}
}

// evictFreed removes a freed communicator because its number is reserved for another.
func (x *comms) evictFreed(id uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.IndexFunc(x.freed, func(c *Comm) bool { return c.id == id }); i >= 0 {
		delete(x.list, id)
		x.freed = slices.Delete(x.freed, i, i+1)
	}
}

// get returns a communicator, or nil.
func (x *comms) get(id uint32) *Comm {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list[id].Value()
}

// all returns those that are there, by number.
func (x *comms) all() (list []*Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, p := range x.list {
		if c := p.Value(); c != nil {
			list = append(list, c)
		} else {
			delete(x.list, id)
		}
	}
	slices.SortFunc(list, func(a, b *Comm) int { return int(a.id) - int(b.id) })
	return list
}

package mpi

import (
	"slices"
	"sync"
	"weak"
)

// commTable lists the communicators of a rank by context id, the only identity that messages
// carry. The pointers are weak: the table does not keep unused communicators alive.
type commTable struct {
	mu   sync.Mutex
	list map[uint32]weak.Pointer[Comm]

	early map[uint32]*callMismatch // mismatches about communicators not made here yet
	freed []*Comm                  // the last maxFreed freed ones, oldest first; they stay in list
}

// add lists c, and passes an early mismatch on to it.
func (x *commTable) add(c *Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		x.list = map[uint32]weak.Pointer[Comm]{}
	}
	x.list[c.contextID] = weak.Make(c)
	if d := x.early[c.contextID]; d != nil {
		c.log.recordMismatch(d, 0)
		delete(x.early, c.contextID)
	}
}

// maxEarly is the maximum number of mismatches kept for communicators that do not exist yet.
const maxEarly = 64

// addEarlyMismatch keeps the first mismatch about calls of a communicator that other
// ranks have made and this rank has not.
func (x *commTable) addEarlyMismatch(id uint32, d *callMismatch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.early == nil {
		x.early = map[uint32]*callMismatch{}
	}
	if x.early[id] == nil && len(x.early) < maxEarly {
		x.early[id] = d
	}
}

// maxFreed is the maximum number of freed communicators that are kept for late messages of
// other ranks, which may show a mismatch.
const maxFreed = 16

// keepFreed keeps a freed communicator, and evicts the oldest of more than maxFreed.
func (x *commTable) keepFreed(c *Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.freed = append(x.freed, c); len(x.freed) > maxFreed {
		delete(x.list, x.freed[0].contextID)
		x.freed = slices.Delete(x.freed, 0, 1)
	}
}

// evictFreed removes a freed communicator because its context id is reserved for another.
func (x *commTable) evictFreed(id uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.IndexFunc(x.freed, func(c *Comm) bool { return c.contextID == id }); i >= 0 {
		delete(x.list, id)
		x.freed = slices.Delete(x.freed, i, i+1)
	}
}

// get returns the communicator with the context id, or nil.
func (x *commTable) get(id uint32) *Comm {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list[id].Value()
}

// all returns the communicators in use, sorted by context id.
func (x *commTable) all() (list []*Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, p := range x.list {
		if c := p.Value(); c != nil {
			list = append(list, c)
		} else {
			delete(x.list, id)
		}
	}
	slices.SortFunc(list, func(a, b *Comm) int { return int(a.contextID) - int(b.contextID) })
	return list
}

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

	early map[uint32]*disagreement // disagreements about communicators not made here yet
}

// add lists c, and passes an early disagreement on to it.
func (x *commTable) add(c *Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		x.list = map[uint32]weak.Pointer[Comm]{}
	}
	x.list[c.contextID] = weak.Make(c)
	if d := x.early[c.contextID]; d != nil {
		c.log.recordDisagreement(d, 0)
		delete(x.early, c.contextID)
	}
}

// maxEarly is the maximum number of disagreements kept for communicators that do not exist yet.
const maxEarly = 64

// addEarlyDisagreement keeps the first disagreement about calls of a communicator that other
// ranks have made and this rank has not.
func (x *commTable) addEarlyDisagreement(id uint32, d *disagreement) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.early == nil {
		x.early = map[uint32]*disagreement{}
	}
	if x.early[id] == nil && len(x.early) < maxEarly {
		x.early[id] = d
	}
}

func (x *commTable) remove(c *Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.list, c.contextID)
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

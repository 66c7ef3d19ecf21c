package mpi

import (
	"slices"
	"sync"
	"weak"
)

// commTable are the communicators of a rank by their number, for reports: messages know
// nothing else. A communicator that nobody uses any more is not kept alive by it.
type commTable struct {
	mu   sync.Mutex
	list map[uint32]weak.Pointer[Comm]

	early map[uint32]*disagreement // about a call of one that is not made here yet
}

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

// addEarlyDisagreement keeps the first disagreement about calls of a communicator that this rank has
// not made yet, which others have.
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

// get returns a communicator, or nil.
func (x *commTable) get(id uint32) *Comm {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list[id].Value()
}

// all returns those that are there, by number.
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

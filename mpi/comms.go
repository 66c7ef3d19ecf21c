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
}

func (x *comms) add(c *Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		x.list = map[uint32]weak.Pointer[Comm]{}
	}
	x.list[c.id] = weak.Make(c)
}

func (x *comms) remove(c *Comm) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.list, c.id)
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

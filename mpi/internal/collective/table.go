package collective

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
func (t *commTable) add(c *Comm) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil {
		t.list = map[uint32]weak.Pointer[Comm]{}
	}
	t.list[c.ContextID] = weak.Make(c)
	if d := t.early[c.ContextID]; d != nil {
		c.log.recordMismatch(d, 0)
		delete(t.early, c.ContextID)
	}
}

// maxEarly is the maximum number of mismatches kept for communicators that do not exist yet.
const maxEarly = 64

// addEarlyMismatch keeps the first mismatch about calls of a communicator that other
// ranks have made and this rank has not.
func (t *commTable) addEarlyMismatch(id uint32, d *callMismatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.early == nil {
		t.early = map[uint32]*callMismatch{}
	}
	if t.early[id] == nil && len(t.early) < maxEarly {
		t.early[id] = d
	}
}

// maxFreed is the maximum number of freed communicators that are kept for late messages of
// other ranks, which may show a mismatch.
const maxFreed = 16

// keepFreed keeps a freed communicator, and evicts the oldest of more than maxFreed.
func (t *commTable) keepFreed(c *Comm) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.freed = append(t.freed, c); len(t.freed) > maxFreed {
		delete(t.list, t.freed[0].ContextID)
		t.freed = slices.Delete(t.freed, 0, 1)
	}
}

// evictFreed removes a freed communicator because its context id is reserved for another.
func (t *commTable) evictFreed(id uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.freed, func(c *Comm) bool { return c.ContextID == id }); i >= 0 {
		delete(t.list, id)
		t.freed = slices.Delete(t.freed, i, i+1)
	}
}

// get returns the communicator with the context id, or nil.
func (t *commTable) get(id uint32) *Comm {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list[id].Value()
}

// all returns the communicators in use, sorted by context id.
func (t *commTable) all() (list []*Comm) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, p := range t.list {
		if c := p.Value(); c != nil {
			list = append(list, c)
		} else {
			delete(t.list, id)
		}
	}
	slices.SortFunc(list, func(a, b *Comm) int { return int(a.ContextID) - int(b.ContextID) })
	return list
}

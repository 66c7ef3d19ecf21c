package collective

import (
	"maps"
	"slices"
	"sync"
	"weak"
)

// commTable lists the communicators of a rank, of type C, by context id, the only identity that
// messages carry. The pointers are weak: the table does not keep unused communicators alive.
type commTable[C any] struct {
	mu    sync.Mutex
	list  map[uint32]weak.Pointer[C]
	early map[uint32]*callMismatch // mismatches about communicators not made here yet
	freed []freedComm[C]           // the last maxFreed freed ones, oldest first; they stay in list
}

// A freedComm is a communicator that the program has freed.
type freedComm[C any] struct {
	contextID uint32
	comm      *C
}

// add lists c, and returns the early mismatch about it, or nil.
func (t *commTable[C]) add(contextID uint32, c *C) *callMismatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil {
		t.list = map[uint32]weak.Pointer[C]{}
	}
	t.list[contextID] = weak.Make(c)
	d := t.early[contextID]
	delete(t.early, contextID)
	return d
}

// maxEarly is the maximum number of mismatches kept for communicators that do not exist yet.
const maxEarly = 64

// addEarlyMismatch keeps the first mismatch about calls of a communicator that other
// ranks have made and this rank has not.
func (t *commTable[C]) addEarlyMismatch(contextID uint32, d *callMismatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.early == nil {
		t.early = map[uint32]*callMismatch{}
	}
	if t.early[contextID] == nil && len(t.early) < maxEarly {
		t.early[contextID] = d
	}
}

// maxFreed is the maximum number of freed communicators that are kept for late messages of
// other ranks, which may show a mismatch.
const maxFreed = 16

// keepFreed keeps a freed communicator, and evicts the oldest of more than maxFreed.
func (t *commTable[C]) keepFreed(contextID uint32, c *C) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.freed = append(t.freed, freedComm[C]{contextID, c}); len(t.freed) > maxFreed {
		delete(t.list, t.freed[0].contextID)
		t.freed = slices.Delete(t.freed, 0, 1)
	}
}

// evictFreed removes a freed communicator because its context id is reserved for another.
func (t *commTable[C]) evictFreed(contextID uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.freed, func(f freedComm[C]) bool { return f.contextID == contextID }); i >= 0 {
		delete(t.list, contextID)
		t.freed = slices.Delete(t.freed, i, i+1)
	}
}

// get returns the communicator with the context id, or nil.
func (t *commTable[C]) get(contextID uint32) *C {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list[contextID].Value()
}

// all returns the communicators in use, sorted by context id.
func (t *commTable[C]) all() (list []*C) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(t.list)) {
		if c := t.list[id].Value(); c != nil {
			list = append(list, c)
		} else {
			delete(t.list, id)
		}
	}
	return list
}

package rnic

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/verbs"
)

// A key has 32 bits: the upper 24 are the index, the low 8 the variant. Index
// 0 is never used, so that key 0 can mean none.
const (
	variantBits = 8
	variantMask = 1<<variantBits - 1
	indexMask   = 1<<(32-variantBits) - 1
)

// maxRegions is the maximum number of live keys: half of the indices, so that
// guessing a key stays hard and drawing one stays fast.
const maxRegions = (indexMask + 1) / 2

// quarantineSize is the number of freed indices that are not reused, the most
// recent ones. A stale key is thus invalid until so many others were freed, and
// afterwards collides only by chance with the same 32 bits.
const quarantineSize = 4096

// A region is the target of a key: memory with its permissions. It is
// immutable; a window that is bound or invalidated gets a new one.
type region struct {
	key    uint32
	access verbs.AccessFlags
	pd     *protectionDomain
	base   uint64 // address of the first byte as work requests name it
	mem    []byte

	win *memoryWindow // the window, or nil for the region of an MR
	mr  *memoryRegion // windows: the MR they are bound to, nil if unbound
	qpn uint32        // windows: the queue pair they are bound to
}

// slice returns n bytes at addr, or false if they are not inside the region.
// The arithmetic is right for every addr: below the base it wraps around to an
// offset beyond any length.
func (r *region) slice(addr uint64, n uint32) ([]byte, bool) {
	off, size := addr-r.base, uint64(len(r.mem))
	if off > size || uint64(n) > size-off {
		return nil, false
	}
	return r.mem[off : off+uint64(n) : off+uint64(n)], true
}

// A keyTable finds regions by key. Lookups are lock-free and do not allocate;
// changes are serialized. Regions and windows share the key space.
//
// It is a hash table with linear probing on the index. A slot once used stays
// non-empty until the table is rebuilt, so that readers need no synchronization
// with writers; removal leaves a tombstone.
type keyTable struct {
	slots atomic.Pointer[[]atomic.Pointer[region]] // a power of two, at most half of them filled

	mu          sync.Mutex // guards changes of the slots, and all below
	rand        func() uint32
	filled      int                 // slots with a region or a tombstone
	live        int                 // slots with a region
	usedIndices map[uint32]struct{} // indices that are live or quarantined
	quarantined fifo.Queue[uint32]  // freed indices, oldest first
}

var tombstone = new(region) // its key, 0, is never looked up

const initialTableSlots = 64

// newKeyTable returns an empty table. Keys are as unpredictable as rand, and
// deterministic given rand and the sequence of calls. Calls of rand are
// serialized.
func newKeyTable(rand func() uint32) *keyTable {
	t := &keyTable{rand: rand, usedIndices: make(map[uint32]struct{})}
	slots := make([]atomic.Pointer[region], initialTableSlots)
	t.slots.Store(&slots)
	return t
}

// lookup returns the region with exactly this key, or nil.
func (t *keyTable) lookup(key uint32) *region {
	if key>>variantBits == 0 {
		return nil
	}
	slots := *t.slots.Load()
	for i := key >> variantBits; ; i++ {
		r := slots[i&uint32(len(slots)-1)].Load()
		if r == nil || r.key == key {
			return r
		}
	}
}

// insert assigns a fresh key to r and adds r, or returns false if the key space
// is used up. r must not be shared yet.
func (t *keyTable) insert(r *region) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == maxRegions {
		return false
	}
	r.key = t.drawKey()
	t.usedIndices[r.key>>variantBits] = struct{}{}
	if 2*(t.filled+1) > len(*t.slots.Load()) {
		t.rebuild()
	}
	insertRegion(*t.slots.Load(), r)
	t.filled++
	t.live++
	return true
}

// drawKey returns a random key with an unused index: the index drawn or the
// next free one.
func (t *keyTable) drawKey() uint32 {
	drawn := t.rand()
	for index := drawn >> variantBits; ; index = (index + 1) & indexMask {
		if _, taken := t.usedIndices[index]; index != 0 && !taken {
			return index<<variantBits | drawn&variantMask
		}
	}
}

// rebuild replaces the table by one without tombstones and with room to grow.
func (t *keyTable) rebuild() {
	size := initialTableSlots
	for size < 4*(t.live+1) {
		size *= 2
	}
	slots := make([]atomic.Pointer[region], size)
	for i := range *t.slots.Load() {
		if r := (*t.slots.Load())[i].Load(); r != nil && r != tombstone {
			insertRegion(slots, r)
		}
	}
	t.filled = t.live
	t.slots.Store(&slots)
}

// insertRegion stores r in the first empty slot from its index on.
func insertRegion(slots []atomic.Pointer[region], r *region) {
	for i := r.key >> variantBits; ; i++ {
		if slot := &slots[i&uint32(len(slots)-1)]; slot.Load() == nil {
			slot.Store(r)
			return
		}
	}
}

// findSlot returns the slot of r, which must be in the table.
func (t *keyTable) findSlot(r *region) *atomic.Pointer[region] {
	slots := *t.slots.Load()
	for i := r.key >> variantBits; ; i++ {
		if slot := &slots[i&uint32(len(slots)-1)]; slot.Load() == r {
			return slot
		}
	}
}

// replace replaces r by next. Their keys have the same index.
func (t *keyTable) replace(r, next *region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findSlot(r).Store(next)
}

// remove removes r. Concurrent lookups may still return it; a caller that needs
// it unused must quiesce the shards afterwards.
func (t *keyTable) remove(r *region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findSlot(r).Store(tombstone)
	t.live--
	t.quarantine(r.key >> variantBits)
}

// quarantine prevents index from being reused too soon.
func (t *keyTable) quarantine(index uint32) {
	if t.quarantined.Len() == quarantineSize {
		delete(t.usedIndices, t.quarantined.Pop())
	}
	t.quarantined.Push(index)
}

package rnic

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// A key has 32 bits: the upper 24 are the index, the low 8 the variant. Index
// 0 is never given, so that key 0 can mean none.
const (
	variantBits = 8
	variantMask = 1<<variantBits - 1
	indexMask   = 1<<(32-variantBits) - 1
)

// maxRegions is how many keys can be live at once: half of the indices, so
// that guessing one stays hard and drawing one stays quick.
const maxRegions = (indexMask + 1) / 2

// quarantineSize is how many indices, the last ones freed, are not given
// again. An old key therefore never works until so many others have died, and
// after that only if chance hits the same 32 bits.
const quarantineSize = 4096

// region is what a key leads to: memory, and who may do what with it. A
// region never changes. A window that is bound or invalidated gets a new one.
type region struct {
	key    uint32
	access verbs.AccessFlags
	pd     *PD
	base   uint64 // address of the first byte as work requests name it
	mem    []byte

	win *MW    // the window, or nil for the region of an MR
	mr  *MR    // windows: the MR they are bound to, nil if unbound
	qpn uint32 // windows: the queue pair they are bound to
}

// slice returns n bytes at addr, or false if they are not inside the region. The
// arithmetic is right for every addr: one below the base wraps around to an
// offset beyond any length.
func (r *region) slice(addr uint64, n uint32) ([]byte, bool) {
	off, size := addr-r.base, uint64(len(r.mem))
	if off > size || uint64(n) > size-off {
		return nil, false
	}
	return r.mem[off : off+uint64(n) : off+uint64(n)], true
}

// keyTable finds regions by key. Lookups take no lock and do not allocate;
// changes are serialized. Regions and windows share the key space.
//
// It is a hash table with linear probing on the index. A slot once filled
// is never empty again until the table is built anew, so that readers need no
// protection from writers; a removed region leaves the grave behind.
type keyTable struct {
	slots atomic.Pointer[[]atomic.Pointer[region]] // a power of two, at most half of them filled

	mu          sync.Mutex // guards changes of the slots, and all below
	rand        func() uint32
	filled      int                 // slots with a region or a grave
	live        int                 // slots with a region
	usedIndices map[uint32]struct{} // indices that are live or resting
	quarantined slotRing[uint32]    // freed indices, oldest first
}

var tombstone = new(region) // its key, 0, is never looked for

const initialTableSlots = 64

// newKeyTable makes an empty table. Keys are as unpredictable as rand, and the
// same for the same rand and the same calls. rand is called by one goroutine
// at a time.
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

// insert gives r a fresh key and makes it known, or returns false if the key
// space is used up. The caller must not have shared r yet.
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

// drawKey returns a random key whose index is free. If the index drawn is not, the
// next free one serves.
func (t *keyTable) drawKey() uint32 {
	drawn := t.rand()
	for index := drawn >> variantBits; ; index = (index + 1) & indexMask {
		if _, taken := t.usedIndices[index]; index != 0 && !taken {
			return index<<variantBits | drawn&variantMask
		}
	}
}

// rebuild makes a table without graves and with room to grow.
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

// replace puts next in the place of r. Their keys have the same index.
func (t *keyTable) replace(r, next *region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findSlot(r).Store(next)
}

// remove takes r out. Lookups that began before may still return it: who must
// know that nobody uses it quiesces the engine afterwards.
func (t *keyTable) remove(r *region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findSlot(r).Store(tombstone)
	t.live--
	t.quarantine(r.key >> variantBits)
}

// quarantine keeps index from being given again too soon.
func (t *keyTable) quarantine(index uint32) {
	if t.quarantined.n == quarantineSize {
		delete(t.usedIndices, *t.quarantined.pop())
	}
	*t.quarantined.push(quarantineSize) = index
}

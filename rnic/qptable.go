package rnic

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/wire"
)

// A qpTable finds queue pairs by number. Lookups are lock-free and do not
// allocate. Like keyTable it uses linear probing, and a slot once used stays
// non-empty until the table is rebuilt.
type qpTable struct {
	slots atomic.Pointer[[]atomic.Pointer[queuePair]] // a power of two, at most half of them filled

	mu      sync.Mutex // guards changes
	filled  int
	live    int
	started bool
	block   uint32 // block of the number allocated last, once started
	step    uint32 // distance to the next block; 0: not drawn yet

	first, count uint32 // range of the numbers
}

var tombstoneQP = new(queuePair) // its number, 0, is never looked up

// newQPTable returns a table for count numbers from first on.
func newQPTable(first, count uint32) *qpTable {
	t := &qpTable{first: first, count: count}
	slots := make([]atomic.Pointer[queuePair], initialTableSlots)
	t.slots.Store(&slots)
	return t
}

// reservedQPNs is the number of queue pair numbers that a range may not use: the first 16.
const reservedQPNs = 16

// maxQPs returns the number of queue pairs for which any range of this size has numbers.
func (t *qpTable) maxQPs() int { return int(t.count) - reservedQPNs }

// lookup returns the queue pair with this number, or nil.
func (t *qpTable) lookup(num uint32) *queuePair {
	slots := *t.slots.Load()
	for i := num; ; i++ {
		q := slots[i&uint32(len(slots)-1)].Load()
		if q == nil || q.num == num {
			return q
		}
	}
}

// insert adds q, which has a number, and returns false if the number is in use.
func (t *qpTable) insert(q *queuePair) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lookup(q.num) != nil {
		return false
	}
	if 2*(t.filled+1) > len(*t.slots.Load()) {
		t.rebuild()
	}
	insertQP(*t.slots.Load(), q)
	t.filled++
	t.live++
	return true
}

// allocateNumber assigns q a free number from 16 up (0 and 1 are the management
// queue pairs, 0xFFFFFF is multicast) and adds it. The number modulo the number
// of shards, which is the same in all calls, is the index of q's shard.
//
// Numbers are spread over the whole range of the table, with a random start and a random
// step, and are reused only after all others: a late packet or completion of a
// closed queue pair does not match another one.
func (t *qpTable) allocateNumber(q *queuePair, shard, shards int, rand func() uint32) {
	for {
		q.num = t.first + t.nextBlock(uint32(shards), rand)*uint32(shards) + uint32(shard)
		if q.num >= reservedQPNs && q.num < wire.QPNMulticast && t.insert(q) {
			return
		}
	}
}

// nextBlock returns the next block of n numbers, one for each shard.
func (t *qpTable) nextBlock(n uint32, rand func() uint32) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	blocks := t.count / n
	switch {
	case !t.started:
		t.started = true
		t.block = rand() % t.count / n % blocks
		return t.block
	case t.step == 0:
		for t.step = rand() % blocks; !areCoprime(t.step, blocks); t.step = (t.step + 1) % blocks {
		}
	}
	t.block = (t.block + t.step) % blocks
	return t.block
}

// areCoprime reports whether a and b have no common divisor but 1.
func areCoprime(a, b uint32) bool {
	for b != 0 {
		a, b = b, a%b
	}
	return a == 1
}

func (t *qpTable) rebuild() {
	size := initialTableSlots
	for size < 4*(t.live+1) {
		size *= 2
	}
	slots := make([]atomic.Pointer[queuePair], size)
	t.forEach(func(q *queuePair) { insertQP(slots, q) })
	t.filled = t.live
	t.slots.Store(&slots)
}

func insertQP(slots []atomic.Pointer[queuePair], q *queuePair) {
	for i := q.num; ; i++ {
		if slot := &slots[i&uint32(len(slots)-1)]; slot.Load() == nil {
			slot.Store(q)
			return
		}
	}
}

// remove takes q out.
func (t *qpTable) remove(q *queuePair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slots := *t.slots.Load()
	for i := q.num; ; i++ {
		switch slot := &slots[i&uint32(len(slots)-1)]; slot.Load() {
		case q:
			slot.Store(tombstoneQP)
			t.live--
			return
		case nil:
			return
		}
	}
}

// forEach calls f for every queue pair.
func (t *qpTable) forEach(f func(*queuePair)) {
	slots := *t.slots.Load()
	for i := range slots {
		if q := slots[i].Load(); q != nil && q != tombstoneQP {
			f(q)
		}
	}
}

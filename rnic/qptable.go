package rnic

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/wire"
)

// qpTable finds queue pairs by number. Lookups take no lock and do not
// allocate. It works as the key table does: linear probing on the number, and
// a slot once filled is not empty again until the table is built anew.
type qpTable struct {
	slots atomic.Pointer[[]atomic.Pointer[QP]] // a power of two, at most half of them filled

	mu     sync.Mutex // guards changes
	filled int
	live   int
}

var goneQP = new(QP) // its number, 0, is never looked for

func newQPTable() *qpTable {
	t := &qpTable{}
	slots := make([]atomic.Pointer[QP], firstKeySlots)
	t.slots.Store(&slots)
	return t
}

// lookup returns the queue pair with this number, or nil.
func (t *qpTable) lookup(num uint32) *QP {
	slots := *t.slots.Load()
	for i := num; ; i++ {
		q := slots[i&uint32(len(slots)-1)].Load()
		if q == nil || q.num == num {
			return q
		}
	}
}

// insert adds q, which has a number of its own, and returns false if that is
// taken.
func (t *qpTable) insert(q *QP) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lookup(q.num) != nil {
		return false
	}
	if 2*(t.filled+1) > len(*t.slots.Load()) {
		t.rebuild()
	}
	putQP(*t.slots.Load(), q)
	t.filled++
	t.live++
	return true
}

// allocate gives q a free random number from 16 up (0 and 1 are the management
// queue pairs, 0xFFFFFF is multicast) and adds it. The number modulo the
// number of shards is the index of q's shard.
func (t *qpTable) allocate(q *QP, shard, shards int, rand func() uint32) {
	for {
		n := rand() & wire.QPNMask
		q.num = n - n%uint32(shards) + uint32(shard)
		if q.num >= 16 && q.num < wire.QPNMulticast && t.insert(q) {
			return
		}
	}
}

func (t *qpTable) rebuild() {
	size := firstKeySlots
	for size < 4*(t.live+1) {
		size *= 2
	}
	slots := make([]atomic.Pointer[QP], size)
	t.each(func(q *QP) { putQP(slots, q) })
	t.filled = t.live
	t.slots.Store(&slots)
}

func putQP(slots []atomic.Pointer[QP], q *QP) {
	for i := q.num; ; i++ {
		if slot := &slots[i&uint32(len(slots)-1)]; slot.Load() == nil {
			slot.Store(q)
			return
		}
	}
}

// remove takes q out.
func (t *qpTable) remove(q *QP) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slots := *t.slots.Load()
	for i := q.num; ; i++ {
		switch slot := &slots[i&uint32(len(slots)-1)]; slot.Load() {
		case q:
			slot.Store(goneQP)
			t.live--
			return
		case nil:
			return
		}
	}
}

// each calls f for every queue pair.
func (t *qpTable) each(f func(*QP)) {
	slots := *t.slots.Load()
	for i := range slots {
		if q := slots[i].Load(); q != nil && q != goneQP {
			f(q)
		}
	}
}

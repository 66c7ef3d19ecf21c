package main

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"sync"
	"unsafe"
)

// An owner is the C structure of an object of the verbs, and the C structure that its events go to.
type owner struct {
	c       unsafe.Pointer // struct ibv_cq and so on
	context unsafe.Pointer // struct context
}

// An ownerTable maps objects of the verbs to their C structures, for events.
type ownerTable struct {
	mu     sync.Mutex
	owners map[any]owner
}

var owners = ownerTable{owners: make(map[any]owner)}

func (t *ownerTable) add(object any, o owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners[object] = o
}

// remove returns when no event of the object is being raised any more, so that its C structure
// can be freed.
func (t *ownerTable) remove(object any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.owners, object)
}

// removeContext removes the objects of a context that is being closed, which the program did not destroy.
func (t *ownerTable) removeContext(context unsafe.Pointer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.owners, func(_ any, o owner) bool { return o.context == context })
}

// use calls f with the owner of an object that still exists.
func (t *ownerTable) use(object any, f func(owner)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.owners[object]; ok {
		f(o)
	}
}

// bigEndian64 returns v as the host reads it when it is stored in network byte order.
func bigEndian64(v uint64) uint64 {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		return v
	}
	return bits.ReverseBytes64(v)
}

// bigEndian32 is bigEndian64 for 4 bytes.
func bigEndian32(v uint32) uint32 {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		return v
	}
	return bits.ReverseBytes32(v)
}

package main

// #include <errno.h>
// #include <stdint.h>
import "C"

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// A handleTable maps the handles in C structures to objects. Lookups take no lock. A handle has
// an index and a generation, so that a handle of a destroyed object finds nothing.
type handleTable struct {
	segments [1 << 10]atomic.Pointer[[segmentSize]slot]

	mu   sync.Mutex
	next uint32
	free []uint32 // indexes
}

const (
	segmentSize     = 1 << 10
	indexBits       = 20 // 1 Mi objects
	generationShift = indexBits
)

// A slot holds an object, and the handle that names it.
type slot struct {
	object     atomic.Pointer[entry]
	generation uint32 // of the last handle; guarded by handleTable.mu
}

// An entry is an object with its handle, replaced as a whole.
type entry struct {
	handle  uint32
	object  any
	context *deviceContext // that the object belongs to
}

var objects handleTable

// add returns a handle for an object, or 0 if there is none left.
func (t *handleTable) add(object any, context *deviceContext) C.uint32_t {
	t.mu.Lock()
	defer t.mu.Unlock()
	var index uint32
	if n := len(t.free); n > 64 || n > 0 && t.next == 1<<indexBits-1 { // the oldest first, to notice stale handles
		index, t.free = t.free[0], t.free[1:]
	} else if t.next < 1<<indexBits-1 {
		t.next++
		index = t.next
	} else {
		return 0
	}
	segment := t.segments[index/segmentSize].Load()
	if segment == nil {
		segment = new([segmentSize]slot)
		t.segments[index/segmentSize].Store(segment)
	}
	s := &segment[index%segmentSize]
	s.generation++
	handle := s.generation<<generationShift | index
	s.object.Store(&entry{handle: handle, object: object, context: context})
	return C.uint32_t(handle)
}

// find returns the entry of a handle, or nil.
func (t *handleTable) find(handle C.uint32_t) *entry {
	index := uint32(handle) & (1<<indexBits - 1)
	segment := t.segments[index/segmentSize].Load()
	if segment == nil {
		return nil
	}
	if e := segment[index%segmentSize].object.Load(); e != nil && e.handle == uint32(handle) {
		return e
	}
	return nil
}

// remove frees a handle. It reports false if the handle names no object, as when another thread removed it.
func (t *handleTable) remove(handle C.uint32_t) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.find(handle) == nil {
		return false
	}
	index := uint32(handle) & (1<<indexBits - 1)
	t.segments[index/segmentSize].Load()[index%segmentSize].object.Store(nil)
	t.free = append(t.free, index)
	return true
}

// ofContext returns the objects of a context.
func (t *handleTable) ofContext(context *deviceContext) (entries []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for index := range t.next + 1 {
		segment := t.segments[index/segmentSize].Load()
		if segment == nil {
			continue
		}
		if e := segment[index%segmentSize].object.Load(); e != nil && e.context == context && e.object != any(context) {
			entries = append(entries, e)
		}
	}
	return entries
}

// lookup returns the object of a handle if it has type T.
func lookup[T any](handle C.uint32_t) (object T, ok bool) {
	if e := objects.find(handle); e != nil {
		object, ok = e.object.(T)
	}
	return object, ok
}

// errStale is the error of calls with the handle of a destroyed object, or of one of another kind.
var errStale = &verbs.OpError{Op: "look up handle", Err: verbs.ErrInvalid, Detail: "the object was destroyed, or is of another kind"}

// Close of an object in the table; see go_destroy.
var _ = []io.Closer{verbs.PD(nil), verbs.MR(nil), verbs.MW(nil), verbs.AH(nil)}

// go_destroy closes the object of a handle and frees the handle.
//
//export go_destroy
func go_destroy(handle C.uint32_t) C.int {
	defer reportPanic()
	closer, ok := lookup[io.Closer](handle)
	if !ok {
		return errnoOf(errStale)
	}
	if err := closer.Close(); err != nil {
		return errnoOf(err)
	}
	if !objects.remove(handle) {
		return errnoOf(errStale) // destroyed by another thread
	}
	return 0
}

// addObject stores the handle of a new object of a context. Where there is none left it closes the object and returns ENOMEM.
func addObject(context *deviceContext, object io.Closer, handle *C.uint32_t) C.int {
	if *handle = objects.add(object, context); *handle == 0 {
		object.Close() //nolint:errcheck // nothing uses the object yet
		return C.ENOMEM
	}
	return 0
}

// closeObjects closes the objects that the program did not destroy before the context, each after those that use it, as
// the kernel does. The C structures remain: the program may still have pointers to them.
func closeObjects(context *deviceContext) {
	for entries, closed := objects.ofContext(context), 1; closed > 0; {
		closed = 0
		var busy []*entry
		for _, e := range entries {
			if e.object.(io.Closer).Close() != nil {
				busy = append(busy, e)
				continue
			}
			objects.remove(C.uint32_t(e.handle))
			closed++
		}
		entries = busy
	}
}

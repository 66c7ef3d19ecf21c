// Package deadline implements a queue of objects by deadline, at most one deadline
// for each.
//
//	type conn struct {
//		timer deadline.Entry[Time]
//	}
//
//	var timers deadline.Heap[Time, *conn]
//	timers.Set(&c.timer, c, now+timeout)
//	for c := timers.PopDue(now); c != nil; c = timers.PopDue(now) {
//		c.handleTimeout()
//	}
package deadline

// An Entry is the place of an object in a Heap. The zero value has no deadline. It
// must not be copied while it has one.
type Entry[Time ~int64] struct {
	at    Time
	index int // in the heap, if at is not 0
}

// At returns the deadline, or 0 for none.
func (e *Entry[Time]) At() Time { return e.at }

// A Heap is a min-heap of objects by deadline. The zero value is empty. It is not
// safe for concurrent use.
type Heap[Time ~int64, Object any] struct {
	items []item[Time, Object]
}

type item[Time ~int64, Object any] struct {
	at     Time
	entry  *Entry[Time]
	object Object
}

// Len returns the number of objects.
func (h *Heap[Time, Object]) Len() int { return len(h.items) }

// Next returns the earliest deadline, or 0 for an empty heap.
func (h *Heap[Time, Object]) Next() Time {
	if len(h.items) == 0 {
		return 0
	}
	return h.items[0].at
}

// Objects returns the objects, the one with the earliest deadline first.
func (h *Heap[Time, Object]) Objects() []Object {
	list := make([]Object, len(h.items))
	for i := range h.items {
		list[i] = h.items[i].object
	}
	return list
}

// Set sets the deadline of the object of e, or removes it if at is 0.
func (h *Heap[Time, Object]) Set(e *Entry[Time], o Object, at Time) {
	switch {
	case at == 0:
		h.Remove(e)
		return
	case e.at == 0:
		e.index = len(h.items)
		h.items = append(h.items, item[Time, Object]{entry: e, object: o})
	}
	e.at, h.items[e.index].at = at, at
	h.up(e.index)
	h.down(e.index)
}

// SetEarlier is like Set, unless the object has an earlier deadline or at is 0. An
// object whose deadlines only move later comes up at the first one, and costs no
// change of the heap until then.
func (h *Heap[Time, Object]) SetEarlier(e *Entry[Time], o Object, at Time) {
	if at != 0 && (e.at == 0 || at < e.at) {
		h.Set(e, o, at)
	}
}

// PopDue removes and returns the object with the earliest deadline if that is now or
// earlier. Otherwise it returns the zero value.
func (h *Heap[Time, Object]) PopDue(now Time) (o Object) {
	if len(h.items) > 0 && h.items[0].at <= now {
		o = h.items[0].object
		h.Remove(h.items[0].entry)
	}
	return o
}

// Remove removes the deadline of the object of e, if it has one.
func (h *Heap[Time, Object]) Remove(e *Entry[Time]) {
	if e.at == 0 {
		return
	}
	i, last := e.index, len(h.items)-1
	h.swap(i, last)
	h.items[last] = item[Time, Object]{}
	h.items = h.items[:last]
	e.at = 0
	if i < last {
		h.up(i)
		h.down(i)
	}
}

func (h *Heap[Time, Object]) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].entry.index, h.items[j].entry.index = i, j
}

// up moves item i towards the root until its parent is not later.
func (h *Heap[Time, Object]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h.items[parent].at <= h.items[i].at {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

// down moves item i away from the root until no child is earlier.
func (h *Heap[Time, Object]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if child+1 < len(h.items) && h.items[child+1].at < h.items[child].at {
			child++
		}
		if h.items[i].at <= h.items[child].at {
			return
		}
		h.swap(i, child)
		i = child
	}
}

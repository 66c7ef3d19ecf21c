package fifo

// A Slots is a queue in a ring of slots that doubles up to a limit. Slots
// are returned in place with their previous contents, so that the memory they
// own is reused. The zero value is an empty queue.
type Slots[T any] struct {
	slots []T
	head  int // slot of the oldest
	n     int // slots in use
}

const initialRingSlots = 16

// Len returns the number of slots in use.
func (r *Slots[T]) Len() int { return r.n }

// Cap returns the number of slots.
func (r *Slots[T]) Cap() int { return len(r.slots) }

// At returns slot i, counted from the oldest.
func (r *Slots[T]) At(i int) *T {
	if i += r.head; i >= len(r.slots) {
		i -= len(r.slots)
	}
	return &r.slots[i]
}

// Truncate keeps the n oldest slots.
func (r *Slots[T]) Truncate(n int) { r.n = n }

// Push appends a slot and returns it, or nil if limit slots are in use.
func (r *Slots[T]) Push(limit int) *T {
	if r.n >= limit {
		return nil
	}
	if r.n == len(r.slots) {
		r.Resize(min(max(2*r.n, initialRingSlots), limit))
	}
	at := r.head + r.n
	if at >= len(r.slots) {
		at -= len(r.slots)
	}
	r.n++
	return &r.slots[at]
}

// PushFront inserts a slot before the oldest and returns it. It takes no limit,
// because the element was in the queue before.
func (r *Slots[T]) PushFront() *T {
	if r.n == len(r.slots) {
		r.Resize(r.n + 1)
	}
	if r.head == 0 {
		r.head = len(r.slots)
	}
	r.head--
	r.n++
	return &r.slots[r.head]
}

// Front returns the oldest slot, or nil if there is none.
func (r *Slots[T]) Front() *T {
	if r.n == 0 {
		return nil
	}
	return &r.slots[r.head]
}

// Pop removes the oldest slot and returns it, valid until the next push, or
// nil if there is none.
func (r *Slots[T]) Pop() *T {
	slot := r.Front()
	if slot == nil {
		return nil
	}
	r.n--
	r.head++
	if r.head == len(r.slots) {
		r.head = 0
	}
	return slot
}

// Resize changes the number of slots to size, not fewer than are in use.
func (r *Slots[T]) Resize(size int) {
	slots := make([]T, size)
	k := copy(slots[:r.n], r.slots[r.head:])
	copy(slots[k:r.n], r.slots)
	r.slots, r.head = slots, 0
}

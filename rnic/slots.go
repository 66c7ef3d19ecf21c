package rnic

// A slotRing is a queue in a ring of slots that doubles up to a limit. Slots
// are returned in place with their previous contents, so that the memory they
// own is reused. The zero value is an empty queue.
type slotRing[T any] struct {
	slots []T
	head  int // slot of the oldest
	n     int // slots in use
}

const initialRingSlots = 16

// push appends a slot and returns it, or nil if limit slots are in use.
func (r *slotRing[T]) push(limit int) *T {
	if r.n >= limit {
		return nil
	}
	if r.n == len(r.slots) {
		r.resize(min(max(2*r.n, initialRingSlots), limit))
	}
	at := r.head + r.n
	if at >= len(r.slots) {
		at -= len(r.slots)
	}
	r.n++
	return &r.slots[at]
}

// pushFront inserts a slot before the oldest and returns it. It takes no limit,
// because the element was in the queue before.
func (r *slotRing[T]) pushFront() *T {
	if r.n == len(r.slots) {
		r.resize(r.n + 1)
	}
	if r.head == 0 {
		r.head = len(r.slots)
	}
	r.head--
	r.n++
	return &r.slots[r.head]
}

// front returns the oldest slot, or nil if there is none.
func (r *slotRing[T]) front() *T {
	if r.n == 0 {
		return nil
	}
	return &r.slots[r.head]
}

// pop removes the oldest slot and returns it, valid until the next push, or
// nil if there is none.
func (r *slotRing[T]) pop() *T {
	slot := r.front()
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

// resize changes the number of slots to size, not fewer than are in use.
func (r *slotRing[T]) resize(size int) {
	slots := make([]T, size)
	k := copy(slots[:r.n], r.slots[r.head:])
	copy(slots[k:r.n], r.slots)
	r.slots, r.head = slots, 0
}

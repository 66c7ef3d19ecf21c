// Package fifo implements a first-in, first-out queue in a ring that grows on
// demand and is released after a burst.
//
//	var waiting fifo.Queue[*request]
//	waiting.Push(r)
//	for waiting.Len() > 0 && send(*waiting.Front()) {
//		waiting.Pop()
//	}
package fifo

// A Queue is an unbounded FIFO queue. The zero value is empty. It is not safe
// for concurrent use.
type Queue[T any] struct {
	ring []T // length is a power of two
	head int
	n    int
}

const (
	minRing     = 4
	maxIdleRing = 1024 // maximum length of an empty queue's ring
)

// Len returns the number of elements.
func (q *Queue[T]) Len() int { return q.n }

// Push appends v.
func (q *Queue[T]) Push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(minRing, 2*q.n))
		n := copy(ring, q.ring[q.head:])
		copy(ring[n:], q.ring[:q.head])
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

// Front returns a pointer to the oldest element, valid until the next Push or
// Pop. The queue must not be empty.
func (q *Queue[T]) Front() *T { return &q.ring[q.head] }

// At returns a pointer to the element behind i others, valid until the next
// Push or Pop. i must be less than Len.
func (q *Queue[T]) At(i int) *T { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// Pop removes and returns the oldest element. The queue must not be empty.
func (q *Queue[T]) Pop() T {
	v := q.ring[q.head]
	var zero T
	q.ring[q.head] = zero // release references
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	if q.n == 0 && len(q.ring) > maxIdleRing {
		*q = Queue[T]{}
	}
	return v
}

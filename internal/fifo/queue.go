package fifo

// Queue is a queue without a limit. The zero value is empty. It is not safe for
// concurrent use.
type Queue[T any] struct {
	ring []T // its length is a power of two
	head int
	n    int
}

const (
	minRing     = 4
	maxIdleRing = 1024 // the longest that is kept while it is empty
)

// Len is how many are in the queue.
func (q *Queue[T]) Len() int { return q.n }

// Push puts v behind all others.
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

// Front is the oldest, in its place, which stays its own until the next Push or Pop. It
// panics if the queue has always been empty, and means nothing if it is empty now.
func (q *Queue[T]) Front() *T { return &q.ring[q.head] }

// At is the one behind i others, as Front: i is below Len.
func (q *Queue[T]) At(i int) *T { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// Pop takes the oldest out. There has to be one.
func (q *Queue[T]) Pop() T {
	v := q.ring[q.head]
	var zero T
	q.ring[q.head] = zero // what it refers to may go
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	if q.n == 0 && len(q.ring) > maxIdleRing {
		*q = Queue[T]{}
	}
	return v
}

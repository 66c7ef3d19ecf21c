package protocol

// fifo is a queue, in a ring that grows. The zero value is empty.
type fifo[T any] struct {
	ring []T // its length is a power of two
	head int
	n    int
}

func (q *fifo[T]) push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(8, 2*q.n))
		n := copy(ring, q.ring[q.head:])
		copy(ring[n:], q.ring[:q.head])
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

// front is the oldest. There is one.
func (q *fifo[T]) front() T { return q.ring[q.head] }

func (q *fifo[T]) pop() T {
	v := q.ring[q.head]
	var zero T
	q.ring[q.head] = zero
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	if q.n == 0 && len(q.ring) > keptRing {
		*q = fifo[T]{}
	}
	return v
}

// keptRing is the longest ring that is kept while it is empty.
const keptRing = 1024

// at is the one behind i others. There is one.
func (q *fifo[T]) at(i int) T { return q.ring[(q.head+i)&(len(q.ring)-1)] }

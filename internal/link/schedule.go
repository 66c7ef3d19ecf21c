package link

// A Schedule is a priority queue ordered by time, and first in, first out among
// equal times, so that its output is deterministic. Times are nanoseconds on
// any clock. The zero value is empty.
type Schedule[T any] struct {
	heap   []scheduled[T]
	pushes uint64
}

type scheduled[T any] struct {
	at   int64
	nth  uint64 // number of Put, breaks ties
	item T
}

func (a *scheduled[T]) before(b *scheduled[T]) bool {
	return a.at < b.at || a.at == b.at && a.nth < b.nth
}

// Len returns the number of items.
func (s *Schedule[T]) Len() int { return len(s.heap) }

// Push adds an item that is due at the given time.
func (s *Schedule[T]) Push(at int64, item T) {
	h := append(s.heap, scheduled[T]{at, s.pushes, item})
	s.heap = h
	s.pushes++
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// Next returns the time of the first item; ok is false if there is none.
func (s *Schedule[T]) Next() (at int64, ok bool) {
	if len(s.heap) == 0 {
		return 0, false
	}
	return s.heap[0].at, true
}

// PopDue removes and returns the first item if its time is not after now.
func (s *Schedule[T]) PopDue(now int64) (item T, at int64, ok bool) {
	if len(s.heap) == 0 || s.heap[0].at > now {
		return item, 0, false
	}
	h := s.heap
	item, at = h[0].item, h[0].at
	last := len(h) - 1
	h[0] = h[last]
	h[last] = scheduled[T]{} // keeps no pointer alive
	h = h[:last]
	s.heap = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			return item, at, true
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

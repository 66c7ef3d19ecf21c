package match

// Any as a source or tag of a Pattern matches every one of the communicator.
const Any = -1

// Envelope is what a message is matched by (MPI 4.1, 3.2.3).
type Envelope struct {
	Context uint32 // of the communicator
	Source  int32  // rank
	Tag     int32
}

// Matches reports whether a receive for e, which may have Any in it, takes a
// message with envelope m.
func (e Envelope) Matches(m Envelope) bool {
	return e.Context == m.Context && (e.Source == Any || e.Source == m.Source) && (e.Tag == Any || e.Tag == m.Tag)
}

func (e Envelope) exact() bool { return e.Source != Any && e.Tag != Any }

// bins is the number of lists that exact envelopes are spread over.
const bins = 64

func (e Envelope) bin() uint32 {
	h := e.Context*0x9e3779b1 ^ uint32(e.Source)*0x85ebca6b ^ uint32(e.Tag)*0xc2b2ae35
	return (h ^ h>>15) % bins
}

// Node is the place of a receive or of a message in a queue. It is part of
// what it stands for, so that nothing is allocated, and in one queue at a time.
type Node[T any] struct {
	Item     T
	Envelope Envelope

	stamp  uint64
	queued bool
	bin    links[T] // with those of the same bin
	all    links[T] // with all others
}

type links[T any] struct{ prev, next *Node[T] }

// Queued reports whether the node is in a queue.
func (n *Node[T]) Queued() bool { return n.queued }

// list is a list of nodes by one of their pairs of links.
type list[T any] struct {
	head, tail *Node[T]
	of         func(*Node[T]) *links[T]
}

func (l *list[T]) push(n *Node[T]) {
	at := l.of(n)
	at.prev, at.next = l.tail, nil
	if l.tail != nil {
		l.of(l.tail).next = n
	} else {
		l.head = n
	}
	l.tail = n
}

func (l *list[T]) remove(n *Node[T]) {
	at := l.of(n)
	if at.prev != nil {
		l.of(at.prev).next = at.next
	} else {
		l.head = at.next
	}
	if at.next != nil {
		l.of(at.next).prev = at.prev
	} else {
		l.tail = at.prev
	}
	*at = links[T]{}
}

// Queue keeps receives that wait for a message, or messages that wait for a
// receive, in order. The zero value is empty.
type Queue[T any] struct {
	bins  [bins]list[T]
	wild  list[T] // receives with Any in them
	all   list[T]
	stamp uint64
	len   int
}

// NewQueue returns an empty queue.
func NewQueue[T any]() *Queue[T] {
	q := &Queue[T]{}
	bin := func(n *Node[T]) *links[T] { return &n.bin }
	for i := range q.bins {
		q.bins[i].of = bin
	}
	q.wild.of = bin
	q.all.of = func(n *Node[T]) *links[T] { return &n.all }
	return q
}

// Len is the number of nodes in the queue.
func (q *Queue[T]) Len() int { return q.len }

// Push appends a node, whose Envelope and Item are set.
func (q *Queue[T]) Push(n *Node[T]) {
	q.stamp++
	n.stamp, n.queued = q.stamp, true
	q.home(n).push(n)
	q.all.push(n)
	q.len++
}

// Remove takes a node out. A node that is in no queue is left alone.
func (q *Queue[T]) Remove(n *Node[T]) {
	if !n.queued {
		return
	}
	q.home(n).remove(n)
	q.all.remove(n)
	n.queued = false
	q.len--
}

func (q *Queue[T]) home(n *Node[T]) *list[T] {
	if n.Envelope.exact() {
		return &q.bins[n.Envelope.bin()]
	}
	return &q.wild
}

// Receive finds the first receive that takes a message, nil if there is none.
func (q *Queue[T]) Receive(message Envelope) *Node[T] {
	var exact *Node[T]
	for n := q.bins[message.bin()].head; n != nil; n = n.bin.next {
		if n.Envelope == message {
			exact = n
			break
		}
	}
	for n := q.wild.head; n != nil && (exact == nil || n.stamp < exact.stamp); n = n.bin.next {
		if n.Envelope.Matches(message) {
			return n
		}
	}
	return exact
}

// Message finds the first message that a receive takes, nil if there is none.
func (q *Queue[T]) Message(receive Envelope) *Node[T] {
	if receive.exact() {
		for n := q.bins[receive.bin()].head; n != nil; n = n.bin.next {
			if n.Envelope == receive {
				return n
			}
		}
		return nil
	}
	for n := q.all.head; n != nil; n = n.all.next {
		if receive.Matches(n.Envelope) {
			return n
		}
	}
	return nil
}

// Each calls f for every node, oldest first, until it returns false. f may
// remove the node.
func (q *Queue[T]) Each(f func(*Node[T]) bool) {
	for n := q.all.head; n != nil; {
		next := n.all.next
		if !f(n) {
			return
		}
		n = next
	}
}

package match

// Node is the place of a receive or of a message in a queue. It is part of
// what it stands for, so that nothing is allocated, and in one queue at a time.
type Node[T any] struct {
	Item     T
	Envelope Envelope // not to be changed while it is queued

	seq    uint64
	queued bool
	links  [2]links[T]
}

// Which of a node's links a list goes by.
const (
	byBin = iota // with those of the same bin
	byAge        // with all others
)

type links[T any] struct{ prev, next *Node[T] }

// Queued reports whether the node is in a queue.
func (n *Node[T]) Queued() bool { return n.queued }

// list is a list of nodes by one of their links.
type list[T any] struct{ head, tail *Node[T] }

func (l *list[T]) push(n *Node[T], by int) {
	n.links[by] = links[T]{prev: l.tail}
	if l.tail != nil {
		l.tail.links[by].next = n
	} else {
		l.head = n
	}
	l.tail = n
}

func (l *list[T]) remove(n *Node[T], by int) {
	at := &n.links[by]
	if at.prev != nil {
		at.prev.links[by].next = at.next
	} else {
		l.head = at.next
	}
	if at.next != nil {
		at.next.links[by].prev = at.prev
	} else {
		l.tail = at.prev
	}
	*at = links[T]{}
}

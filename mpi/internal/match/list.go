package match

// A Node is the entry of a receive or of a message in a queue. It is embedded in its
// item, so that queueing allocates nothing, and is in one queue at a time.
type Node[T any] struct {
	Item     T
	Envelope Envelope // must not change while the node is queued

	seq    uint64
	queued bool
	links  [2]links[T]
}

// Indices of Node.links.
const (
	byBin = iota // list of a bin, or of the wildcards
	byAge        // list of all nodes in order of Push
)

type links[T any] struct{ prev, next *Node[T] }

// Queued reports whether the node is in a queue.
func (n *Node[T]) Queued() bool { return n.queued }

// A list is a doubly linked list of nodes over one of their links.
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

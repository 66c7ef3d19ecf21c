package match

// A Queue is the posted receive queue or the unexpected message queue of a rank. The
// zero value is empty.
type Queue[T any] struct {
	bins      []list[T] // exact envelopes by hash; the length is a power of two
	wildcards list[T]   // receives with Any
	all       list[T]
	lastSeq   uint64
	len       int
}

// The initial number of bins, and the mean number of nodes per bin at which the bins are
// doubled.
const (
	firstBins = 64
	perBin    = 4
)

// Len returns the number of nodes in the queue.
func (q *Queue[T]) Len() int { return q.len }

// Push appends a node, whose Envelope and Item are set.
func (q *Queue[T]) Push(n *Node[T]) {
	if q.len >= perBin*len(q.bins) {
		q.rehash()
	}
	q.lastSeq++
	n.seq, n.queued = q.lastSeq, true
	q.listFor(n).push(n, byBin)
	q.all.push(n, byAge)
	q.len++
}

// rehash doubles the number of bins.
func (q *Queue[T]) rehash() {
	q.bins = make([]list[T], max(firstBins, 2*len(q.bins)))
	for n := q.all.head; n != nil; n = n.links[byAge].next {
		if n.Envelope.isExact() {
			q.listFor(n).push(n, byBin)
		}
	}
}

// Remove removes a node. It does nothing if the node is in no queue.
func (q *Queue[T]) Remove(n *Node[T]) {
	if !n.queued {
		return
	}
	q.listFor(n).remove(n, byBin)
	q.all.remove(n, byAge)
	n.queued = false
	q.len--
}

func (q *Queue[T]) listFor(n *Node[T]) *list[T] {
	if n.Envelope.isExact() {
		return q.binFor(n.Envelope)
	}
	return &q.wildcards
}

func (q *Queue[T]) binFor(e Envelope) *list[T] { return &q.bins[e.hash()&uint32(len(q.bins)-1)] }

// findExact returns the first node whose envelope equals e, or nil.
func (q *Queue[T]) findExact(e Envelope) *Node[T] {
	n := q.binFor(e).head
	for n != nil && n.Envelope != e {
		n = n.links[byBin].next
	}
	return n
}

// FindReceive returns the first receive that matches a message, or nil.
func (q *Queue[T]) FindReceive(message Envelope) *Node[T] {
	if q.len == 0 {
		return nil
	}
	exact := q.findExact(message)
	for n := q.wildcards.head; n != nil && (exact == nil || n.seq < exact.seq); n = n.links[byBin].next {
		if n.Envelope.Matches(message) {
			return n
		}
	}
	return exact
}

// FindMessage returns the first message that matches a receive, or nil.
func (q *Queue[T]) FindMessage(receive Envelope) *Node[T] {
	if q.len == 0 {
		return nil
	}
	if receive.isExact() {
		return q.findExact(receive)
	}
	for n := q.all.head; n != nil; n = n.links[byAge].next {
		if receive.Matches(n.Envelope) {
			return n
		}
	}
	return nil
}

// Each calls f for every node, oldest first, until f returns false. f may remove the
// node that it is given, but no other.
func (q *Queue[T]) Each(f func(*Node[T]) bool) {
	for n := q.all.head; n != nil; {
		next := n.links[byAge].next
		if !f(n) {
			return
		}
		n = next
	}
}

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

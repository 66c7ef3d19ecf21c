package match

// Queue keeps receives that wait for a message, or messages that wait for a
// receive, in order. The zero value is empty.
type Queue[T any] struct {
	bins  []list[T] // exact envelopes, by hash; a power of two of them
	wild  list[T]   // receives with Any in them
	all   list[T]
	stamp uint64
	len   int
}

// The number of bins at first, and how many nodes there may be for each before
// there are twice as many bins.
const (
	firstBins = 64
	perBin    = 4
)

// Len is the number of nodes in the queue.
func (q *Queue[T]) Len() int { return q.len }

// Push appends a node, whose Envelope and Item are set.
func (q *Queue[T]) Push(n *Node[T]) {
	if q.len >= perBin*len(q.bins) {
		q.grow()
	}
	q.stamp++
	n.stamp, n.queued = q.stamp, true
	q.home(n).push(n, byBin)
	q.all.push(n, byAge)
	q.len++
}

// grow spreads the nodes over twice as many bins.
func (q *Queue[T]) grow() {
	q.bins = make([]list[T], max(firstBins, 2*len(q.bins)))
	for n := q.all.head; n != nil; n = n.links[byAge].next {
		if n.Envelope.exact() {
			q.home(n).push(n, byBin)
		}
	}
}

// Remove takes a node out. A node that is in no queue is left alone.
func (q *Queue[T]) Remove(n *Node[T]) {
	if !n.queued {
		return
	}
	q.home(n).remove(n, byBin)
	q.all.remove(n, byAge)
	n.queued = false
	q.len--
}

func (q *Queue[T]) home(n *Node[T]) *list[T] {
	if n.Envelope.exact() {
		return q.bin(n.Envelope)
	}
	return &q.wild
}

func (q *Queue[T]) bin(e Envelope) *list[T] { return &q.bins[e.hash()&uint32(len(q.bins)-1)] }

// first finds the first node with an exact envelope.
func (q *Queue[T]) first(e Envelope) *Node[T] {
	n := q.bin(e).head
	for n != nil && n.Envelope != e {
		n = n.links[byBin].next
	}
	return n
}

// Receive finds the first receive that takes a message, nil if there is none.
func (q *Queue[T]) Receive(message Envelope) *Node[T] {
	if q.len == 0 {
		return nil
	}
	exact := q.first(message)
	for n := q.wild.head; n != nil && (exact == nil || n.stamp < exact.stamp); n = n.links[byBin].next {
		if n.Envelope.Matches(message) {
			return n
		}
	}
	return exact
}

// Message finds the first message that a receive takes, nil if there is none.
func (q *Queue[T]) Message(receive Envelope) *Node[T] {
	if q.len == 0 {
		return nil
	}
	if receive.exact() {
		return q.first(receive)
	}
	for n := q.all.head; n != nil; n = n.links[byAge].next {
		if receive.Matches(n.Envelope) {
			return n
		}
	}
	return nil
}

// Each calls f for every node, oldest first, until it returns false. f may
// remove the node it is given, and no other.
func (q *Queue[T]) Each(f func(*Node[T]) bool) {
	for n := q.all.head; n != nil; {
		next := n.links[byAge].next
		if !f(n) {
			return
		}
		n = next
	}
}

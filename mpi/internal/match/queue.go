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

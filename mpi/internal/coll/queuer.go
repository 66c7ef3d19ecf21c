package coll

// A SharedQueueNet is a Net with a shared receive queue of the program's memory: a
// message of any rank consumes the first posted receive.
type SharedQueueNet interface {
	Net

	// CanQueue reports whether the extension is available in this call. The result is
	// the same on all ranks.
	CanQueue() bool

	// OpenQueue creates the queue, unless a previous call did, for messages from blocks
	// of send to blocks of recv. All ranks call it first.
	OpenQueue(send, recv []byte) error

	// PostShared posts a receive into b for the next message of any rank.
	PostShared(b []byte) Request

	// SendShared sends b without a copy to the queue of a rank that is known to have
	// posted a receive for it.
	SendShared(to int, b []byte) Request
}

// canQueue is the Needs.Network of algorithms that need a SharedQueueNet.
func canQueue(n Net) bool {
	q, ok := n.(SharedQueueNet)
	return ok && q.CanQueue()
}

package coll

// SharedQueueNet is a Net with a queue of receives that messages of all ranks take, in the
// order in which they come: a shared receive queue, of memory of the program.
type SharedQueueNet interface {
	Net

	// CanQueue reports whether there can be one in this call. It is the same on all
	// ranks.
	CanQueue() bool

	// OpenQueue makes the queue, if a call before has not, for messages from pieces of
	// one memory and to pieces of the other. All ranks call it before all else.
	OpenQueue(send, recv []byte) error

	// PostShared has the next message land in b, whoever sends it.
	PostShared(b []byte) Request

	// SendShared sends b, where it is, to the queue of a rank, which is known to have a
	// receive for it.
	SendShared(to int, b []byte) Request
}

// canQueue is Needs.Network of those who need a Queuer.
func canQueue(n Net) bool {
	q, ok := n.(SharedQueueNet)
	return ok && q.CanQueue()
}

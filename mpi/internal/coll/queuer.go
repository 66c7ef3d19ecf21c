package coll

// Queuer is a Net with a queue of receives that messages of all ranks take, in the
// order in which they come: a shared receive queue, of memory of the program.
type Queuer interface {
	Net

	// Queues reports whether there can be one in this call. It is the same on all
	// ranks.
	Queues() bool

	// Open makes the queue, if a call before has not, for messages from pieces of
	// one memory and to pieces of the other. All ranks call it before all else.
	Open(send, recv []byte) error

	// Post has the next message land in b, whoever sends it.
	Post(b []byte) Request

	// Ship sends b, where it is, to the queue of a rank, which is known to have a
	// receive for it.
	Ship(to int, b []byte) Request
}

// queues is Needs.Network of those who need a Queuer.
func queues(n Net) bool {
	q, ok := n.(Queuer)
	return ok && q.Queues()
}

package coll

// Placer is a Net whose ranks write into each other's memory by RDMA.
type Placer interface {
	Net

	// Places reports whether that can be done in this call. It is the same on all
	// ranks.
	Places() bool

	// Pin says that the call writes from pieces of b.
	Pin(b []byte) error

	// Expose lets the other ranks write to b, from when they know of it until all of
	// them have. The address is what they have to know. It is the same as in the
	// call before if all of them have learned it then: so says known.
	Expose(b []byte) (a Address, known bool, err error)

	// Learn takes note of another rank's address, until it has a new one. An error
	// says that it is none.
	Learn(rank int, a Address) error

	// Place begins to write b to a rank's memory, off bytes behind its beginning,
	// and tells the rank when it is there. It is an error of Wait that its memory is not
	// known, or not as long as ours.
	Place(to, off int, b []byte) Request

	// Placed is done when a rank has written, by one Place, what it has for us.
	Placed(from int) Request
}

// Address is what a rank has to know of another one's memory to write to it.
type Address [32]byte

// places is Needs.Network of those who need a Placer.
func places(n Net) bool {
	p, ok := n.(Placer)
	return ok && p.Places()
}

package coll

// RDMANet is a Net whose ranks write into each other's memory by RDMA.
type RDMANet interface {
	Net

	// CanWrite reports whether that can be done in this call. It is the same on all
	// ranks.
	CanWrite() bool

	// RegisterSource says that the call writes from pieces of b.
	RegisterSource(b []byte) error

	// RegisterTarget lets the other ranks write to b, from when they know of it until all of
	// them have. The address is what they have to know. It is the same as in the
	// call before if all of them have learned it then: so says known.
	RegisterTarget(b []byte) (a Address, known bool, err error)

	// SetRemoteAddress takes note of another rank's address, until it has a new one. An error
	// says that it is none.
	SetRemoteAddress(rank int, a Address) error

	// Write begins to write b to a rank's memory, off bytes behind its beginning,
	// and tells the rank when it is there. It is an error of Wait that its memory is not
	// known, or not as long as ours.
	Write(to, off int, b []byte) Request

	// WriteArrived is done when a rank has written, by one Place, what it has for us.
	WriteArrived(from int) Request
}

// Address is what a rank has to know of another one's memory to write to it.
type Address [32]byte

// canWrite is Needs.Network of those who need a Placer.
func canWrite(n Net) bool {
	p, ok := n.(RDMANet)
	return ok && p.CanWrite()
}

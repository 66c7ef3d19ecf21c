package coll

// An RDMANet is a Net whose ranks write to each other's memory by RDMA.
type RDMANet interface {
	Net

	// CanWrite reports whether the extension is available in this call. The result is
	// the same on all ranks.
	CanWrite() bool

	// RegisterSource registers b as the source of the call's writes.
	RegisterSource(b []byte) error

	// RegisterTarget registers b as the target of the other ranks' writes, until all of
	// them have written. They need the address a; known reports that it is the address
	// of the previous call and that all ranks have received it.
	RegisterTarget(b []byte) (a Address, known bool, err error)

	// SetRemoteAddress records the address of another rank until the next one. It
	// returns an error if a is malformed.
	SetRemoteAddress(rank int, a Address) error

	// Write starts an RDMA write of b to offset off of a rank's memory, with a
	// notification. If the rank's address is unknown or its memory too short, Wait
	// returns an error.
	Write(to, off int, b []byte) Request

	// WriteArrived returns a request that is done when a rank has written its block, by
	// one Write.
	WriteArrived(from int) Request
}

// An Address identifies the registered memory of a rank to the other ranks.
type Address [32]byte

// canWrite is the Needs.Network of algorithms that need an RDMANet.
func canWrite(n Net) bool {
	p, ok := n.(RDMANet)
	return ok && p.CanWrite()
}

package coll

// A Net is the communicator of an algorithm: messages between ranks 0 to Size()-1, of
// this call only, in order between each pair of ranks. Package mpi implements it.
//
// The network owns the buffers of Isend and Irecv until Wait: the sender does not write
// them, the receiver neither reads nor writes them. After a failed call, requests may
// be left pending; the caller cancels them, or waits for them, before it reuses the
// memory. Scratch memory of a failed call is not reused.
type Net interface {
	Rank() int
	Size() int

	// Isend starts a send of b, which may be empty.
	Isend(to int, b []byte) Request
	// Irecv starts a receive of the next message of a rank, whose length must be
	// len(b); otherwise Wait returns an error.
	Irecv(from int, b []byte) Request
	// Wait waits for all of the requests. Each request is waited for once. Wait does
	// not keep the slice.
	Wait(r ...Request) error
}

// A Request is a message in flight. Net chooses its dynamic type, for example a
// pointer, which needs no allocation.
type Request any

// Memory allocates scratch memory. It is not safe for concurrent use.
type Memory interface {
	// Alloc returns n > 0 bytes with arbitrary content, aligned for any element.
	Alloc(n int) []byte
	// Free returns memory of Alloc.
	Free(b []byte)
}

// A CopyObserver is a Net with a model of the time that copies between an algorithm's own buffers
// take.
type CopyObserver interface {
	OnCopies(blocks, bytes int)
}

// observeCopies reports the copies of blocks, bytes in all, to a CopyObserver.
func (c *Call) observeCopies(blocks, bytes int) {
	if o, ok := c.Net.(CopyObserver); ok {
		o.OnCopies(blocks, bytes)
	}
}

// isend and irecv start a message. Requests are waited for in the order in which they were
// started. Both ends know the length, so empty messages are not sent.
func (c *Call) isend(to int, b []byte) {
	if len(b) > 0 {
		c.pending = append(c.pending, c.Net.Isend(to, b))
	}
}

func (c *Call) irecv(from int, b []byte) {
	if len(b) > 0 {
		c.pending = append(c.pending, c.Net.Irecv(from, b))
	}
}

// sendEmpty and recvEmpty start an empty message, for synchronization.
func (c *Call) sendEmpty(to int)   { c.pending = append(c.pending, c.Net.Isend(to, nil)) }
func (c *Call) recvEmpty(from int) { c.pending = append(c.pending, c.Net.Irecv(from, nil)) }

// waitAll waits for all pending requests.
func (c *Call) waitAll() error { return c.waitUntil(0) }

// waitUntil waits for the oldest requests until at most n are pending.
func (c *Call) waitUntil(n int) error {
	excess := len(c.pending) - n
	if excess <= 0 {
		return nil
	}
	err := c.Net.Wait(c.pending[:excess]...)
	left := copy(c.pending, c.pending[excess:])
	clear(c.pending[left:])
	c.pending = c.pending[:left]
	return err
}

// waitFor waits for one request.
func (c *Call) waitFor(r Request) error {
	c.single[0] = r
	err := c.Net.Wait(c.single[:]...)
	c.single[0] = nil
	return err
}

func (c *Call) send(to int, b []byte) error {
	c.isend(to, b)
	return c.waitAll()
}

func (c *Call) recv(from int, b []byte) error {
	c.irecv(from, b)
	return c.waitAll()
}

// exchange sends and receives concurrently.
func (c *Call) exchange(to int, out []byte, from int, in []byte) error {
	c.irecv(from, in)
	c.isend(to, out)
	return c.waitAll()
}

// allocScratch allocates memory until the end of the call.
func (c *Call) allocScratch(n int) []byte {
	if n == 0 {
		return nil
	}
	if c.Memory == nil {
		return make([]byte, n)
	}
	b := c.Memory.Alloc(n)
	c.scratchInUse = append(c.scratchInUse, b)
	return b[:n:n]
}

// scratchCopy allocates a copy of b until the end of the call.
func (c *Call) scratchCopy(b []byte) []byte {
	s := c.allocScratch(len(b))
	copy(s, b)
	return s
}

// A TransportNet is a Net that reports its transports.
type TransportNet interface {
	Net
	Transports() Transports
}

// Transports is the set of transports of a job's messages. It is the same on all ranks.
type Transports uint8

// The transports. A job may use both, for different pairs of ranks.
const (
	ReliableConnections Transports = 1 << iota // RC
	UnreliableDatagrams                        // UD, made reliable in software
)

func transportsOf(n Net) Transports {
	if c, ok := n.(TransportNet); ok {
		return c.Transports()
	}
	return 0
}

// onlyDatagrams is the Needs.Network of an algorithm for datagrams only;
// knownTransport, of one for any known mix of transports.
func onlyDatagrams(n Net) bool  { return transportsOf(n) == UnreliableDatagrams }
func knownTransport(n Net) bool { return transportsOf(n) != 0 }

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

package coll

// Net is what an algorithm has of its communicator: messages between ranks 0 to
// Size()-1, of this call only, in order from each rank to each other. Package mpi
// implements it.
//
// What is given to Isend and Irecv is the network's until Wait: a sender does not
// write it, a receiver neither writes nor reads it. When a call has failed,
// requests may be left that nobody waits for; who called cancels them, or waits,
// before the memory has another use. Scratch memory that they may refer to is not
// used again.
type Net interface {
	Rank() int
	Size() int

	// Isend begins to send b, which may be empty.
	Isend(to int, b []byte) Request
	// Irecv begins to receive the next message of a rank, which has exactly
	// len(b) bytes. That it has not is an error of Wait.
	Irecv(from int, b []byte) Request
	// Wait waits for all of the requests, each of which is waited for once, and
	// does not keep the slice.
	Wait(r ...Request) error
}

// Request is a message under way: what Net makes of it, such as a pointer, which
// costs no allocation.
type Request any

// Memory is where scratch memory comes from and goes to. It has one user at a time.
type Memory interface {
	// Alloc returns n bytes of any content, n > 0, aligned for any element.
	Alloc(n int) []byte
	// Free takes back what Get returned.
	Free(b []byte)
}

// isend and irecv begin a message. Requests are waited for in the order in which
// they were begun. Both ends know the length, so empty messages are not sent.
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

// sendEmpty and await are messages without content.
func (c *Call) sendEmpty(to int)   { c.pending = append(c.pending, c.Net.Isend(to, nil)) }
func (c *Call) recvEmpty(from int) { c.pending = append(c.pending, c.Net.Irecv(from, nil)) }

// waitAll waits for everything that was begun.
func (c *Call) waitAll() error { return c.waitUntil(0) }

// waitUntil waits for the oldest requests until no more than n are left.
func (c *Call) waitUntil(n int) error {
	over := len(c.pending) - n
	if over <= 0 {
		return nil
	}
	err := c.Net.Wait(c.pending[:over]...)
	left := copy(c.pending, c.pending[over:])
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

// exchange sends and receives at once.
func (c *Call) exchange(to int, out []byte, from int, in []byte) error {
	c.irecv(from, in)
	c.isend(to, out)
	return c.waitAll()
}

// scratch is memory until the end of the call.
func (c *Call) scratch(n int) []byte {
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

// scratchCopy is scratch memory with a copy of b.
func (c *Call) scratchCopy(b []byte) []byte {
	s := c.scratch(len(b))
	copy(s, b)
	return s
}

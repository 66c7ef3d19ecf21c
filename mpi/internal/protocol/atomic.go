package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// Atomics is a Net that has atomic operations on memory of other ranks.
type Atomics interface {
	// RDMAAtomic changes the 8 bytes that a key names, at a multiple of 8, and
	// copies what they were before to b, as this machine has them in memory.
	// The rest is as with Fetch. What is sent later arrives behind it.
	RDMAAtomic(rank int, b []byte, key envelope.Key, a Atomic, move uint64) error
}

// Atomic is an atomic operation.
type Atomic struct {
	Swap    bool
	Operand uint64 // is added; of Swap, what must be there
	New     uint64 // of Swap: what is there then
}

// Atomic begins an atomic operation on memory of another rank, r.Dest, which is
// told nothing. r.Buf has 8 bytes, for what was there before.
func (c *Core) Atomic(r *Request, key envelope.Key, a Atomic) {
	if _, ok := c.net.(Atomics); !ok || len(r.Buf) != 8 {
		c.enter()
		defer c.exit()
		c.complete(r, fmt.Errorf("rank %d: no atomic operations on %d bytes: %w", r.Dest, len(r.Buf), errors.ErrUnsupported))
		return
	}
	r.atomic = a
	c.startOneSided(r, key, opAtomic)
}

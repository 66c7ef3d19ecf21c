package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// An Atomics is a Net with atomic operations on remote memory.
type Atomics interface {
	// RDMAAtomic applies a to the 8 aligned bytes of key, and stores their previous
	// value in b, in the byte order of this machine. Otherwise it is as RDMARead.
	// Packets sent later arrive after it is applied.
	RDMAAtomic(rank int, b []byte, key envelope.Key, a Atomic, transferID uint64) error
}

// An Atomic is an atomic operation: fetch-and-add or compare-and-swap.
type Atomic struct {
	Swap    bool
	Operand uint64 // addend; with Swap, the value to compare with
	New     uint64 // with Swap, the new value
}

// Atomic starts an atomic operation on memory of rank r.Dest, without notification.
// r.Buf has 8 bytes and receives the previous value.
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

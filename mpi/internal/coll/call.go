package coll

import (
	"errors"
	"fmt"
)

// ErrArgument is wrapped by the errors of invalid arguments.
var ErrArgument = errors.New("coll: argument")

// A Call executes the collectives of one rank, one at a time. Its fields may be set
// between calls and are the same on all ranks except for Net and Memory. Reusing a Call
// saves allocations.
type Call struct {
	Net     Net
	Memory  Memory  // scratch memory; nil: make
	Choices Choices // algorithms; nil is the defaults
	// Processors is the number of processors of all ranks together; 0 is one per rank.
	Processors int
	Window     int // messages in flight in each direction of the direct alltoall; 0 is 32
	Segment    int // segment size of the chain bcast in bytes; 0 is 64 KiB
	// Last marks the next call as the last one of the communicator; it matches only the
	// last call of the other ranks.
	Last bool
	// Signature identifies the next call for ranks that compare their calls on a Board:
	// calls with different signs do not match. 0 is a sign derived from the arguments.
	Signature uint64

	rank, size   int
	collective   Collective
	bytes        int // Case.Bytes
	args         args
	pending      []Request
	single       [1]Request
	scratchInUse [][]byte // scratch memory of the current call
	sign         uint64
	board        Board // of the current round, or nil
}

// args are the arguments of a collective. Each collective uses some of them.
type args struct {
	root       int
	send, recv blocks
	inPlace    bool
	op         Reduction
}

// start checks the root and records the rank and the size.
func (c *Call) start(collective Collective, root int) error {
	if c == nil || c.Net == nil {
		return fmt.Errorf("%w: %v: nil Call, or Call without Net", ErrArgument, collective)
	}
	c.rank, c.size = c.Net.Rank(), c.Net.Size()
	if root < 0 || root >= c.size {
		return c.argumentError(collective, "root %d of %d ranks", root, c.size)
	}
	return nil
}

// argumentError returns an ErrArgument about a collective.
func (c *Call) argumentError(collective Collective, format string, a ...any) error {
	return fmt.Errorf("%w: %v at rank %d: %s", ErrArgument, collective, c.rank, fmt.Sprintf(format, a...))
}

// runAlgorithm selects the algorithm and executes it. bytes is Case.Bytes.
func (c *Call) runAlgorithm(collective Collective, bytes int, a args) error {
	c.args, c.collective, c.bytes = a, collective, bytes
	alg, err := c.Choices.algorithmFor(collective, Case{Ranks: c.size, Processors: c.Processors, Bytes: bytes, Commutative: a.op.Commutative, Predefined: a.op.Predefined, Net: c.Net})
	if err == nil {
		err = alg.run(c, &c.args)
		if c.board != nil {
			err = errors.Join(err, c.board.EndRound())
			c.board = nil
		}
		if err != nil {
			err = fmt.Errorf("coll: %v by %s at rank %d of %d: %w", collective, alg.Name, c.rank, c.size, err)
		}
	}
	if err == nil {
		for _, b := range c.scratchInUse {
			c.Memory.Free(b)
		}
	} else {
		clear(c.pending)
		c.pending = c.pending[:0] // owned by the network, with its memory
	}
	clear(c.scratchInUse)
	c.scratchInUse = c.scratchInUse[:0]
	c.args = args{}
	return err
}

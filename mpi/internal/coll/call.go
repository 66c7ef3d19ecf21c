package coll

import (
	"errors"
	"fmt"
)

// ErrArgument is a call that cannot be.
var ErrArgument = errors.New("coll: argument")

// Call does collectives for one rank, one at a time. Its fields may be set between
// calls, and are the same on all ranks but for Net and Memory. A Call that is used
// again has its bookkeeping already.
type Call struct {
	Net     Net
	Memory  Memory  // scratch memory; nil: make
	Choices Choices // algorithms; nil: the defaults
	// Processors is how many the ranks have together; 0: one each.
	Processors int
	Window     int // messages that Alltoall's direct has under way each way; 0: 32
	Segment    int // bytes that Bcast's chain hands on at a time; 0: 64 KiB
	// Last says that the next call is the last, to which no call of other ranks belongs
	// but their last.
	Last bool
	// Sign says what the next call is, for ranks that compare their calls on a Board:
	// calls with different signs do not belong together. 0: what Call knows itself.
	Sign uint64

	rank, size   int
	collective   Collective
	bytes        int // of Case
	args         args
	pending      []Request
	single       [1]Request
	scratchInUse [][]byte // scratch memory
	sign         uint64
	board        Board // that something has been shown on
}

// args is what a collective is called with. Each uses some of them.
type args struct {
	root       int
	send, recv blocks
	inPlace    bool
	op         Reduction
}

// start takes note of who we are.
func (c *Call) start(what Collective, root int) error {
	if c == nil || c.Net == nil {
		return fmt.Errorf("%w: %v: no Call, or one without Net", ErrArgument, what)
	}
	c.rank, c.size = c.Net.Rank(), c.Net.Size()
	if root < 0 || root >= c.size {
		return c.argumentError(what, "the root is %d of %d ranks", root, c.size)
	}
	return nil
}

// argumentError is an error of the caller's.
func (c *Call) argumentError(what Collective, format string, a ...any) error {
	return fmt.Errorf("%w: %v at rank %d: %s", ErrArgument, what, c.rank, fmt.Sprintf(format, a...))
}

// run does a call. bytes is that of Case.
func (c *Call) run(what Collective, bytes int, a args) error {
	c.args, c.collective, c.bytes = a, what, bytes
	alg, err := c.Choices.algorithmFor(what, Case{Ranks: c.size, Processors: c.Processors, Bytes: bytes, Commutative: a.op.Commutative, Predefined: a.op.Predefined, Net: c.Net})
	if err == nil {
		err = alg.run(c, &c.args)
		if c.board != nil {
			err = errors.Join(err, c.board.EndRound())
			c.board = nil
		}
		if err != nil {
			err = fmt.Errorf("coll: %v by %s at rank %d of %d: %w", what, alg.Name, c.rank, c.size, err)
		}
	}
	if err == nil {
		for _, b := range c.scratchInUse {
			c.Memory.Free(b)
		}
	} else {
		clear(c.pending)
		c.pending = c.pending[:0] // the network's, with all memory that it was given
	}
	clear(c.scratchInUse)
	c.scratchInUse = c.scratchInUse[:0]
	c.args = args{}
	return err
}

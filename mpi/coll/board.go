package coll

import (
	"errors"
	"fmt"
)

// ErrMismatch is a call that others do not make.
var ErrMismatch = errors.New("the ranks of a collective call do not agree")

// Sharer is a Net whose ranks may have memory in common.
type Sharer interface {
	Net

	// Board is that memory, nil if there is none for this call. That is the same on all
	// ranks.
	Board() Board
}

// Board is memory in which each rank has a place that the others can look at. It is
// used in rounds, which all ranks make alike: everyone shows something, or nothing
// but that it is there, looks at what others show as far as it needs to, and is done.
// Nobody gets further than two rounds ahead of another.
type Board interface {
	// Room is how many bytes a rank can show.
	Room() int

	// Begin begins a round: it returns our place when nobody looks at it any more.
	Begin() ([]byte, error)
	// Show shows what is there now. What others find with it, sign, says what call it
	// belongs to.
	Show(sign uint64) error
	// See waits until a rank has shown what it has, and returns its place, and its sign.
	See(rank int) (place []byte, sign uint64, err error)
	// Done says that we look at nobody's any more.
	Done() error
}

// board is the one of a call, nil if there is none.
func board(n Net) Board {
	if s, ok := n.(Sharer); ok {
		return s.Board()
	}
	return nil
}

// nothing, oneOf and oneEach are Needs.Shown of those who show nothing, what
// Case.Bytes counts at most, and so much for each rank.
func nothing(Case) int   { return 0 }
func oneOf(c Case) int   { return c.Bytes }
func oneEach(c Case) int { return c.Ranks * c.Bytes }

// sign says what a call is: two calls with different ones do not belong together.
func sign(what Collective, root, bytes int) uint64 {
	return uint64(what)<<56 | uint64(root&0xffff)<<40 | uint64(bytes)&(1<<40-1)
}

// lastSign is that of a call that is the last.
const lastSign = uint64(numCollectives) << 56

// signed is a sign in words.
func signed(s uint64) string {
	what := Collective(s >> 56)
	switch {
	case s == lastSign:
		return "finalize"
	case what >= numCollectives:
		return "something else"
	}
	text := what.String()
	if what != Barrier {
		text += fmt.Sprintf(" of %d bytes", s&(1<<40-1))
	}
	switch what {
	case Bcast, Gather, Scatter, Reduce:
		text += fmt.Sprintf(" with root %d", s>>40&0xffff)
	}
	return text
}

// show begins the call's round, in which the others see b.
func (c *Call) show(b []byte) error {
	c.board = board(c.Net)
	place, err := c.board.Begin()
	if err != nil {
		return err
	}
	copy(place, b)
	return c.board.Show(c.sign)
}

// see is the n bytes that another rank shows, until the end of the call.
func (c *Call) see(rank, n int) ([]byte, error) {
	place, theirs, err := c.board.See(rank)
	if err != nil {
		return nil, err
	}
	if theirs != c.sign {
		return nil, fmt.Errorf("%w: rank %d makes another call: %s, not %s", ErrMismatch, rank, signed(theirs), signed(c.sign))
	}
	return place[:n:n], nil
}

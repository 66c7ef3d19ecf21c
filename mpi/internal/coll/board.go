package coll

import (
	"errors"
	"fmt"
)

// ErrMismatch is a call that others do not make.
var ErrMismatch = errors.New("the ranks of a collective call do not agree")

// SharedMemoryNet is a Net whose ranks may have memory in common.
type SharedMemoryNet interface {
	Net

	// SharedBytes is how many bytes a rank can show in this call, 0 if the ranks have no memory
	// in common. It is the same on all ranks.
	SharedBytes() int
	// Board is that memory. It is nil if there is none after all, at all ranks: they may
	// talk to each other to find out. It is asked for calls for which there is room.
	Board() Board
}

// Board is memory in which each rank has a place that the others can look at. It is
// used in rounds, which all ranks make alike: everyone shows something, or nothing
// but that it is there, looks at what others show as far as it needs to, and is done.
// Nobody gets further than two rounds ahead of another.
type Board interface {
	// BeginRound begins a round: it returns our place when nobody looks at it any more.
	BeginRound() ([]byte, error)
	// Show shows what is there now. What others find with it, sign, says what call it
	// belongs to.
	Show(sign uint64) error
	// WaitShown waits until a rank has shown what it has, and returns its place, and its sign.
	WaitShown(rank int) (place []byte, sign uint64, err error)
	// EndRound says that we look at nobody's any more.
	EndRound() error
}

// sharedBytes is how many bytes a rank can show in a call.
func sharedBytes(n Net) int {
	if s, ok := n.(SharedMemoryNet); ok {
		return s.SharedBytes()
	}
	return 0
}

// needNothing, oneOf and oneEach are Needs.SharedBytes of those who show nothing, what
// Case.Bytes counts at most, and so much for each rank.
func needNothing(Case) int         { return 0 }
func needVector(c Case) int        { return c.Bytes }
func needVectorPerRank(c Case) int { return c.Ranks * c.Bytes }

// callSign says what the call is: two calls with different ones do not belong together. It
// has the collective, the root, the bytes, which are few where it counts, and a hash of
// the parts and of the size of elements.
func (c *Call) callSign() uint64 {
	if c.Sign != 0 {
		return c.Sign
	}
	if c.Last {
		return lastSign
	}
	a := &c.args
	const prime = 16777619 // FNV-1a
	hash := uint32(2166136261) ^ uint32(a.op.Size)
	for _, blocks := range []*blocks{&a.send, &a.recv} {
		for _, p := range blocks.parts {
			hash = (hash ^ uint32(p.Len)) * prime
		}
	}
	return uint64(c.collective)<<56 | uint64(a.root&0xffff)<<40 | uint64(c.bytes&0xffff)<<24 | uint64(hash^hash>>24)&(1<<24-1)
}

// lastSign is that of a call that is the last.
const lastSign = uint64(numCollectives) << 56

// formatSign is a sign in words.
func formatSign(s uint64) string {
	what := Collective(s >> 56)
	switch {
	case s == lastSign:
		return "finalize"
	case what >= numCollectives:
		return "something else"
	}
	text := what.String()
	if what != Barrier {
		text += fmt.Sprintf(" of %d bytes", s>>24&0xffff)
	}
	switch what {
	case Bcast, Gather, Scatter, Reduce:
		text += fmt.Sprintf(" with root %d", s>>40&0xffff)
	}
	return text
}

// showRound begins the call's round, in which the others see b.
func (c *Call) showRound(b []byte) error {
	c.board, c.sign = c.Net.(SharedMemoryNet).Board(), c.callSign()
	place, err := c.board.BeginRound()
	if err != nil {
		return err
	}
	copy(place, b)
	return c.board.Show(c.sign)
}

// waitShown is the n bytes that another rank shows, until the end of the call.
func (c *Call) waitShown(rank, n int) ([]byte, error) {
	place, theirs, err := c.board.WaitShown(rank)
	if err != nil {
		return nil, err
	}
	if theirs != c.sign {
		call, ours := formatSign(theirs), formatSign(c.sign)
		if call == ours {
			call, ours = call+" in other pieces", "the same"
		}
		return nil, fmt.Errorf("%w: rank %d makes another call: %s, not %s", ErrMismatch, rank, call, ours)
	}
	return place[:n:n], nil
}

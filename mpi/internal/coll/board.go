package coll

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

// A SharedMemoryNet is a Net whose ranks may share memory.
type SharedMemoryNet interface {
	Net

	// SharedBytes returns the number of bytes that a rank can show in this call, 0 if
	// the ranks share no memory. The result is the same on all ranks.
	SharedBytes() int
	// Board returns the shared memory, or nil on all ranks if it is not available after
	// all: ranks may communicate to find out. It is called only for calls that fit
	// SharedBytes.
	Board() Board
}

// A Board is shared memory in which each rank has a slot that the others can read. It
// is used in rounds, which all ranks make alike: each rank shows its slot, with data or
// empty, reads the slots of other ranks, and ends the round. No rank gets more than two
// rounds ahead of another.
type Board interface {
	// BeginRound starts a round. It returns the own slot when no rank reads it any
	// more.
	BeginRound() ([]byte, error)
	// Show publishes the slot, with the sign of the call.
	Show(sign uint64) error
	// WaitShown waits until a rank has shown its slot, and returns the slot and its
	// sign.
	WaitShown(rank int) (place []byte, sign uint64, err error)
	// Chunk returns the slot of a rank for chunk k of a round with steps. Chunk 0 is in the slot that
	// BeginRound and WaitShown return, and chunk k+2 in the same memory as chunk k. A rank may write
	// chunk 1 when all ranks have shown their slots, and chunk k+2 when none reads chunk k any more.
	Chunk(rank, k int) []byte
	// ShowStep publishes a step of the round, from 1 on in ascending order, with the chunks that this
	// rank has written before.
	ShowStep(step int) error
	// WaitStep waits until a rank has published a step. It has shown its slot before.
	WaitStep(rank, step int) error
	// EndRound declares that this rank reads no slot of the round any more.
	EndRound() error
}

// sharedBytes returns the number of bytes that a rank can show in a call.
func sharedBytes(n Net) int {
	if s, ok := n.(SharedMemoryNet); ok {
		return s.SharedBytes()
	}
	return 0
}

// needNothing, needElement, needVector and needVectorPerRank are the Needs.SharedBytes of algorithms
// that show nothing, at least an element of a predefined reduction, at most Case.Bytes, and Case.Bytes per rank.
func needNothing(Case) int         { return 0 }
func needElement(Case) int         { return 32 }
func needVector(c Case) int        { return c.Bytes }
func needVectorPerRank(c Case) int { return c.Ranks * c.Bytes }

// callSign returns the sign of the call: two calls with different signs do not match.
// It contains the collective, the root, the low bits of the size, and a hash of the
// parts and of the element size.
func (c *Call) callSign() uint64 {
	if c.Signature != 0 {
		return c.Signature
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

// lastSign is the sign of a call with Call.Last.
const lastSign = uint64(numCollectives) << 56

// formatSign describes the call of a sign.
func formatSign(s uint64) string {
	collective := Collective(s >> 56)
	switch {
	case s == lastSign:
		return "finalize"
	case collective >= numCollectives:
		return "something else"
	}
	text := collective.String()
	if collective != Barrier {
		text += fmt.Sprintf(" of %d bytes", s>>24&0xffff)
	}
	switch collective {
	case Bcast, Gather, Scatter, Reduce:
		text += fmt.Sprintf(" with root %d", s>>40&0xffff)
	}
	return text
}

// showRound starts the call's round and shows b to the other ranks.
func (c *Call) showRound(b []byte) error {
	place, err := c.beginRound()
	if err != nil {
		return err
	}
	copy(place, b)
	return c.board.Show(c.sign)
}

// beginRound starts the call's round, and returns the own slot.
func (c *Call) beginRound() ([]byte, error) {
	c.board, c.sign = c.Net.(SharedMemoryNet).Board(), c.callSign()
	return c.board.BeginRound()
}

// waitShown returns the first n bytes that another rank shows, valid until the end of
// the call.
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
		return nil, fmt.Errorf("%w: rank %d calls %s, not %s", deadlock.ErrMismatch, rank, call, ours)
	}
	return place[:n:n], nil
}

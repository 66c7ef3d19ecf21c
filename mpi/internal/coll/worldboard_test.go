package coll_test

import (
	"bytes"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// boards is shared memory: the data that each rank has published, by round. A rank may be at most
// two rounds ahead of another.
type boards struct {
	room    int
	ranks   []*panel
	waiters []*panel
}

// panel is the shared memory of a rank, and its view of the others. It implements coll.Board.
type panel struct {
	r     *rank
	slots [2][]byte // by the parity of the round
	round int
	step  int      // of this round
	shown []notice // by round
	done  int      // rounds
	seen  []glance // in this round

	until func() bool // the condition that it waits for
	what  string
}

// notice is the published data of a rank.
type notice struct {
	b    []byte
	sign uint64
}

// glance is data that a rank reads.
type glance struct{ b, was []byte }

// boardRoom is large enough for all tests.
const boardRoom = 1 << 13

// share gives the world shared memory.
func (w *world) share() { w.shareRoom(boardRoom) }

// shareRoom gives the world shared memory with slots of room bytes.
func (w *world) shareRoom(room int) {
	w.boards = &boards{room: room}
	for _, r := range w.ranks {
		w.boards.ranks = append(w.boards.ranks, &panel{r: r, slots: [2][]byte{make([]byte, room), make([]byte, room)}})
	}
}

// SharedBytes implements coll.SharedMemoryNet.
func (r *rank) SharedBytes() int {
	if r.w == nil || r.w.boards == nil {
		return 0
	}
	return boardRoom
}

// Board implements coll.SharedMemoryNet.
func (r *rank) Board() coll.Board {
	if len(r.w.boards.ranks) == 0 { // of a rank that makes no calls
		return &panel{}
	}
	return r.w.boards.ranks[r.id]
}

// BeginRound implements coll.Board.
func (p *panel) BeginRound() ([]byte, error) {
	p.round, p.step = p.round+1, 0
	for _, other := range p.r.w.boards.ranks {
		if err := p.wait(fmt.Sprintf("rank %d to end round %d", other.r.id, p.round-2), func() bool { return other.done >= p.round-2 }); err != nil {
			return nil, err
		}
	}
	return p.Chunk(p.r.id, 0), nil
}

// Show implements coll.Board.
func (p *panel) Show(sign uint64) error {
	if len(p.shown) != p.round-1 {
		p.r.w.failf("rank %d shows something a second time", p.r.id)
	}
	p.shown = append(p.shown, notice{bytes.Clone(p.Chunk(p.r.id, 0)), sign})
	p.wake()
	return nil
}

// WaitShown implements coll.Board.
func (p *panel) WaitShown(rank int) ([]byte, uint64, error) {
	other := p.r.w.boards.ranks[rank]
	if err := p.wait(fmt.Sprintf("rank %d in round %d", rank, p.round), func() bool { return len(other.shown) >= p.round }); err != nil {
		return nil, 0, err
	}
	p.r.w.glances++
	if p.r.w.fault != nil {
		if err := p.r.w.fault(rank, p.r.id); err != nil {
			return nil, 0, err
		}
	}
	n := other.shown[p.round-1]
	g := glance{bytes.Clone(n.b), n.b}
	p.seen = append(p.seen, g)
	return g.b, n.sign, nil
}

// Chunk implements coll.Board. The memory is shared, so that a rank that writes too early changes the data of
// others.
func (p *panel) Chunk(rank, k int) []byte { return p.r.w.boards.ranks[rank].slots[(p.round+k)%2] }

// ShowStep implements coll.Board.
func (p *panel) ShowStep(step int) error {
	if step <= p.step || len(p.shown) != p.round {
		p.r.w.failf("rank %d shows step %d after step %d of round %d, and has shown %d", p.r.id, step, p.step, p.round, len(p.shown))
	}
	p.step = step
	p.wake()
	return nil
}

// WaitStep implements coll.Board.
func (p *panel) WaitStep(rank, step int) error {
	other := p.r.w.boards.ranks[rank]
	return p.wait(fmt.Sprintf("step %d of rank %d in round %d", step, rank, p.round), func() bool {
		return other.round > p.round || other.round == p.round && other.step >= step
	})
}

// EndRound implements coll.Board. It checks that the rank has not written to the data of others,
// and overwrites its view.
func (p *panel) EndRound() error {
	for _, g := range p.seen {
		if !bytes.Equal(g.b, g.was) {
			p.r.w.failf("rank %d has written to what another one shows", p.r.id)
		}
		for i := range g.b {
			g.b[i] ^= 0x5a
		}
	}
	p.seen, p.done = nil, p.round
	p.wake()
	return nil
}

// wait has the rank wait for a condition.
func (p *panel) wait(what string, until func() bool) error {
	if until() && (p.r.w.rng == nil || p.r.w.rng.IntN(2) == 0) { // else other ranks run first
		return nil
	}
	p.what, p.until = what, until
	p.r.w.boards.waiters = append(p.r.w.boards.waiters, p)
	p.wake()
	if p.r.stopped || !p.r.yield(struct{}{}) {
		return errStopped
	}
	return nil
}

// wake makes ranks runnable whose condition holds.
func (p *panel) wake() {
	all := p.r.w.boards.waiters
	p.r.w.boards.waiters = nil
	for _, x := range all {
		if x.until() {
			x.until = nil
			x.r.w.runnable = append(x.r.w.runnable, x.r)
		} else {
			p.r.w.boards.waiters = append(p.r.w.boards.waiters, x)
		}
	}
}

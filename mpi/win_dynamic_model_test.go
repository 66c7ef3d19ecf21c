package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi"
)

// dynamicProgram is a winProgram with a dynamic window. Each section (the words that one rank puts
// to, those that one rank accumulates on, and those of all) is attached by itself, adjacent to the
// others. Between epochs sections are detached and moved to the other one of two arenas, where they
// have been before.
type dynamicProgram struct {
	*winProgram
	arenas [][][]int // arena by epoch, rank and section
	amiss  [][]amiss // by epoch and rank: operations that must fail
}

// amiss is an operation on memory that is not attached.
type amiss struct {
	get     bool
	target  int
	section int
	how     string
}

// sections returns the first word of each section, and the end of the last.
func sections(n int) (begin []int) {
	for r := range n {
		begin = append(begin, r*privatePuts)
	}
	for r := range n + 1 { // the last one is that of all ranks
		begin = append(begin, n*privatePuts+r*privateAccs)
	}
	return append(begin, winPlaces(n))
}

func drawDynamicProgram(rt *rapid.T, n int) *dynamicProgram {
	p := &dynamicProgram{winProgram: drawWinProgram(rt, n)}
	count := len(sections(n)) - 1
	where := make([][]int, n)
	for r := range where {
		where[r] = make([]int, count)
	}
	for range p.epochs {
		var now [][]int
		var tries []amiss
		for r := range n {
			for s := range count {
				if rapid.IntRange(0, 4).Draw(rt, "moves") == 0 {
					where[r][s] = 1 - where[r][s]
				}
			}
			now = append(now, slices.Clone(where[r]))
			tries = append(tries, amiss{
				get:     rapid.Bool().Draw(rt, "get"),
				target:  rapid.IntRange(0, n-1).Draw(rt, "wrong target"),
				section: rapid.IntRange(0, count-1).Draw(rt, "wrong section"),
				how:     rapid.SampledFrom([]string{"", "moved", "straddles", "beyond", "gap"}).Draw(rt, "wrong")})
		}
		p.arenas = append(p.arenas, now)
		p.amiss = append(p.amiss, tries)
	}
	return p
}

// dynamicRank is the state of a rank that runs a dynamicProgram.
type dynamicRank struct {
	w        mpi.World
	win      *mpi.Win
	begin    []int
	arenas   [2][]int64
	bases    []int // of all ranks' arenas, two each
	attached []int // arena by section; -1 is none
}

func (p *dynamicProgram) run(w mpi.World) error {
	d := &dynamicRank{w: w, begin: sections(p.n), attached: slices.Repeat([]int{-1}, len(sections(p.n))-1)}
	var err error
	if d.win, err = mpi.WinCreateDynamic(w.Comm); err != nil {
		return err
	}
	for i := range d.arenas {
		d.arenas[i] = make([]int64, winPlaces(p.n))
		d.bases = append(d.bases, mpi.Address(d.arenas[i]))
	}
	own := d.bases
	d.bases = make([]int, 2*p.n)
	if err := w.Allgather(mpi.Of(own), mpi.Of(d.bases)); err != nil {
		return err
	}
	for i := range p.epochs {
		if err := p.epoch(d, i); err != nil {
			return fmt.Errorf("epoch %d, %s: %w", i, p.epochs[i].how, err)
		}
	}
	return d.win.Free()
}

// epoch moves sections, executes the epoch, and checks the memory.
func (p *dynamicProgram) epoch(d *dynamicRank, i int) error {
	rank := d.w.Rank()
	if err := d.move(p.arenas[i][rank]); err != nil {
		return err
	}
	if err := d.w.Barrier(); err != nil {
		return err
	}
	where := func(target, index int) int {
		s := slices.IndexFunc(d.begin, func(b int) bool { return b > index }) - 1
		return d.bases[2*target+p.arenas[i][target][s]] + 8*index
	}
	if err := p.epochs[i].run(d.win, d.w, p.n, where); err != nil {
		return err
	}
	if err := d.win.LockAll(); err != nil {
		return err
	}
	if err := d.startInvalid(p.amiss[i][rank], p.arenas[i]); err != nil {
		return err
	}
	if err := d.win.UnlockAll(); err != nil {
		return err
	}
	if err := d.w.Barrier(); err != nil {
		return err
	}
	for s, arena := range p.arenas[i][rank] {
		got, want := d.section(s, arena), p.after[i][rank][d.begin[s]:d.begin[s+1]]
		if !slices.Equal(got, want) {
			return fmt.Errorf("section %d is %v, not %v", s, got, want)
		}
	}
	return d.w.Barrier()
}

func (d *dynamicRank) section(s, arena int) []int64 { return d.arenas[arena][d.begin[s]:d.begin[s+1]] }

// move detaches the sections that move, and attaches them in the other arena.
func (d *dynamicRank) move(to []int) error {
	for s, arena := range to {
		was := d.attached[s]
		if was == arena {
			continue
		}
		if was >= 0 {
			from := d.section(s, was)
			if err := d.win.Detach(mpi.Address(from)); err != nil {
				return err
			}
			copy(d.section(s, arena), from)
			for i := range from {
				from[i] = -1 // must not be visible to any rank
			}
		}
		d.attached[s] = arena
		if _, err := mpi.WinAttach(d.win, d.section(s, arena)); err != nil {
			return err
		}
	}
	return nil
}

// startInvalid starts an invalid operation.
func (d *dynamicRank) startInvalid(x amiss, arenas [][]int) error {
	arena := arenas[x.target][x.section]
	addr := func(arena, index int) int { return d.bases[2*x.target+arena] + 8*index }
	var at mpi.Place
	n := 2
	switch x.how {
	case "":
		return nil
	case "moved":
		at = mpi.At(addr(1-arena, d.begin[x.section]))
	case "straddles": // the boundary to the next section, attached or not
		at = mpi.At(addr(arena, d.begin[x.section+1]-1))
	case "beyond":
		at, n = mpi.At(addr(arena, d.begin[x.section])-8), d.begin[x.section+1]-d.begin[x.section]+1
	case "gap": // each element is within a section, but they are in different ones
		at = mpi.At(addr(arena, d.begin[x.section])).Strided(2, 1, d.begin[x.section+1]-d.begin[x.section])
	}
	var err error
	if b := mpi.Of(make([]int64, n)); x.get {
		err = d.win.Get(b, x.target, at)
	} else {
		err = d.win.Put(b, x.target, at)
	}
	if !errors.Is(err, mpi.ErrRange) {
		return fmt.Errorf("%s, section %d of rank %d: %w", x.how, x.section, x.target, err)
	}
	return nil
}

// TestWinDynamicModel is TestWinModel with memory that is detached, moved and attached again.
func TestWinDynamicModel(t *testing.T) {
	checkWinPrograms(t, func(rt *rapid.T, n int) func(mpi.World) error { return drawDynamicProgram(rt, n).run })
}

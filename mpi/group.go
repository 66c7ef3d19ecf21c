package mpi

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/softrnic/softrnic/mpi/datatype"
)

// Group is a set of ranks of a job in an order: numbers from 0 for some processes,
// without communication (MPI_Group). It does not change. The zero Group is empty
// (MPI_GROUP_EMPTY), the nil pointer the null group (MPI_GROUP_NULL): calls that take it
// are an ErrGroup, or return the null group where they return no error.
type Group struct {
	world *World
	ranks []int // of the job
}

// Group is the communicator's ranks (MPI_Comm_group), the null group of the null
// communicator.
func (c *Comm) Group() *Group {
	if c.isNull() {
		return nil
	}
	g := &Group{world: c.world, ranks: make([]int, c.size)}
	for i := range g.ranks {
		g.ranks[i] = c.worldRank(i)
	}
	return g
}

// Size is the number of its ranks (MPI_Group_size), 0 of the null group.
func (g *Group) Size() int {
	if g == nil {
		return 0
	}
	return len(g.ranks)
}

// Rank is this process's number in the group, or Undefined (MPI_Group_rank).
func (g *Group) Rank() int {
	if g == nil || g.world == nil {
		return Undefined
	}
	return indexOrUndefined(g.ranks, g.world.rank)
}

func indexOrUndefined(ranks []int, rank int) int {
	if i := slices.Index(ranks, rank); i >= 0 {
		return i
	}
	return Undefined
}

// rankSet is the ranks of a group without their order.
func (g *Group) rankSet() map[int]int {
	set := make(map[int]int, len(g.ranks))
	for i, r := range g.ranks {
		set[r] = i
	}
	return set
}

// filterRanks is the group's ranks that are in another, or are not.
func (g *Group) filterRanks(other *Group, in bool) *Group {
	if g == nil || other == nil {
		return nil
	}
	d, set := &Group{world: g.world}, other.rankSet()
	for _, r := range g.ranks {
		if _, there := set[r]; there == in {
			d.ranks = append(d.ranks, r)
		}
	}
	return d
}

// Union is the group's ranks, and behind them those that only the other one has
// (MPI_Group_union).
func (g *Group) Union(other *Group) *Group {
	u := other.filterRanks(g, false)
	if u == nil {
		return nil
	}
	u.ranks = append(slices.Clone(g.ranks), u.ranks...)
	if u.world == nil {
		u.world = g.world
	}
	return u
}

// Intersection is the group's ranks that the other one has, too
// (MPI_Group_intersection).
func (g *Group) Intersection(other *Group) *Group { return g.filterRanks(other, true) }

// Difference is the group's ranks that the other one has not
// (MPI_Group_difference).
func (g *Group) Difference(other *Group) *Group { return g.filterRanks(other, false) }

// Incl is a group of some of its ranks, in this order (MPI_Group_incl).
func (g *Group) Incl(ranks ...int) (*Group, error) {
	if err := g.checkRanks(ranks); err != nil {
		return nil, err
	}
	d := &Group{world: g.world}
	for _, r := range ranks {
		d.ranks = append(d.ranks, g.ranks[r])
	}
	return d, nil
}

// Excl is the group without some of its ranks (MPI_Group_excl).
func (g *Group) Excl(ranks ...int) (*Group, error) {
	out, err := g.Incl(ranks...)
	if err != nil {
		return nil, err
	}
	return g.Difference(out), nil
}

// checkRanks looks for ranks that are not there, or there twice.
func (g *Group) checkRanks(ranks []int) error {
	if g == nil {
		return fmt.Errorf("mpi: group: %w", errNullGroup)
	}
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if r < 0 || r >= len(g.ranks) {
			return fmt.Errorf("mpi: group: %w: %d, there are %d", ErrRank, r, len(g.ranks))
		}
		if seen[r] {
			return fmt.Errorf("mpi: group: %w: %d is named twice", ErrRank, r)
		}
		seen[r] = true
	}
	return nil
}

// Range is the ranks First, First+Stride and so on, not beyond Last. Stride may be
// negative, and not 0.
type Range struct{ First, Last, Stride int }

// RangeIncl is Incl of the ranks of some ranges (MPI_Group_range_incl).
func (g *Group) RangeIncl(ranges ...Range) (*Group, error) {
	ranks, err := g.expandRanges(ranges)
	if err != nil {
		return nil, err
	}
	return g.Incl(ranks...)
}

// RangeExcl is Excl of the ranks of some ranges (MPI_Group_range_excl).
func (g *Group) RangeExcl(ranges ...Range) (*Group, error) {
	ranks, err := g.expandRanges(ranges)
	if err != nil {
		return nil, err
	}
	return g.Excl(ranks...)
}

func (g *Group) expandRanges(ranges []Range) (ranks []int, err error) {
	if g == nil {
		return nil, fmt.Errorf("mpi: group: %w", errNullGroup)
	}
	for _, x := range ranges {
		if x.Stride == 0 || x.First < 0 || x.First >= len(g.ranks) || x.Last < 0 || x.Last >= len(g.ranks) {
			return nil, fmt.Errorf("mpi: group: %w: range %+v, there are %d", ErrRank, x, len(g.ranks))
		}
		if (x.Last < x.First) != (x.Stride < 0) && x.Last != x.First {
			continue
		}
		for i := range (x.Last-x.First)/x.Stride + 1 {
			ranks = append(ranks, x.First+i*x.Stride)
		}
	}
	return ranks, nil
}

// Translate is the numbers in another group of some of this one's ranks
// (MPI_Group_translate_ranks): Undefined where it has them not, and ProcNull for
// ProcNull.
func (g *Group) Translate(ranks []int, other *Group) ([]int, error) {
	if g == nil || other == nil {
		return nil, fmt.Errorf("mpi: group: %w", errNullGroup)
	}
	list, set := make([]int, len(ranks)), other.rankSet()
	for i, r := range ranks {
		if r == ProcNull {
			list[i] = ProcNull
			continue
		}
		if err := g.checkRanks(ranks[i : i+1]); err != nil {
			return nil, err
		}
		var there bool
		if list[i], there = set[g.ranks[r]]; !there {
			list[i] = Undefined
		}
	}
	return list, nil
}

// Comparison is what two groups or communicators have in common.
type Comparison int

const (
	Identical Comparison = iota // they are the same (MPI_IDENT)
	Congruent                   // communicators of the same ranks in the same order (MPI_CONGRUENT)
	Similar                     // the same ranks in another order (MPI_SIMILAR)
	Unequal                     // other ranks (MPI_UNEQUAL)
)

// String returns the comparison's name.
func (c Comparison) String() string {
	if c < Identical || c > Unequal {
		return fmt.Sprintf("Comparison(%d)", int(c))
	}
	return [...]string{"identical", "congruent", "similar", "unequal"}[c]
}

// Compare compares groups (MPI_Group_compare). The null group is Identical to itself,
// and Unequal to all others.
func (g *Group) Compare(other *Group) Comparison {
	switch {
	case g == other:
		return Identical
	case g == nil || other == nil:
		return Unequal
	}
	if slices.Equal(g.ranks, other.ranks) {
		return Identical
	}
	a, b := slices.Sorted(slices.Values(g.ranks)), slices.Sorted(slices.Values(other.ranks))
	if slices.Equal(a, b) {
		return Similar
	}
	return Unequal
}

// Compare compares communicators (MPI_Comm_compare). The null communicator is
// Identical to itself, and Unequal to all others.
func (c *Comm) Compare(other *Comm) Comparison {
	switch {
	case c == other || c.isNull() && other.isNull():
		return Identical
	case c.isNull() || other.isNull():
		return Unequal
	}
	if r := c.Group().Compare(other.Group()); r != Identical {
		return r
	}
	return Congruent
}

// Create makes a communicator of the ranks of a group (MPI_Comm_create). All ranks
// of c call it, with groups that are the same at all of their members, or get an
// ErrMismatch. A rank that is not in its group gets nil.
func (c *Comm) Create(g *Group) (*Comm, error) {
	const op = "create"
	members, err := c.membersOf(g)
	if err != nil {
		return nil, c.rejectCollective(op, err)
	}
	if err := c.compareGroups(op, members); err != nil {
		return nil, c.fail(op, "", err)
	}
	return c.deriveComm(op, c.Name()+".create", members)
}

// compareGroups returns an ErrMismatch at all ranks unless the members of each group of a
// call of Create have given the same group. Others may give others (MPI 4.1, 7.4.2).
func (c *Comm) compareGroups(op string, members []int) error {
	type group struct{ hash, size, member uint64 }
	h := fnv.New64a()
	for _, m := range members {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(m)))
	}
	mine := group{hash: h.Sum64(), size: uint64(len(members))}
	if slices.Contains(members, c.rank) {
		mine.member = 1
	}
	all := make([]group, c.size)
	o := allgatherOp(datatype.Structs([]group{mine}), datatype.Structs(all))
	o.calledAs = op
	if err := c.runCollective(&o); err != nil {
		return err
	}
	given := map[group]uint64{} // by its members
	for _, g := range all {
		given[group{g.hash, g.size, 1}] += g.member
	}
	for r, g := range all {
		if n := given[group{g.hash, g.size, 1}]; n != g.size {
			return fmt.Errorf("%w: rank %d gives a group of %d ranks, of which %d give the same", ErrMismatch, r, g.size, n)
		}
	}
	return nil
}

// membersOf returns the numbers in c of a group's ranks.
func (c *Comm) membersOf(g *Group) ([]int, error) {
	switch {
	case c.isNull():
		return nil, errNullComm
	case g == nil:
		return nil, errNullGroup
	}
	members := make([]int, len(g.ranks))
	for i, r := range g.ranks {
		if members[i] = c.localRank(r); members[i] < 0 || members[i] >= c.size {
			return nil, fmt.Errorf("%w: its rank %d is not one of the communicator", ErrGroup, i)
		}
	}
	return members, nil
}

package mpi

import (
	"fmt"
	"slices"
)

// Group is an ordered set of ranks of a job (MPI_Group). It is immutable and needs no
// communication. The zero Group is the empty group (MPI_GROUP_EMPTY), the nil pointer the null
// group (MPI_GROUP_NULL): calls on the null group return ErrGroup, or the null group if they
// return no error.
type Group struct {
	world *job
	ranks []int // of the job
}

// Group returns the ranks of the communicator (MPI_Comm_group), the null group for the null
// communicator.
func (c *Comm) Group() *Group {
	if c.isNull() {
		return nil
	}
	g := &Group{world: c.world, ranks: make([]int, c.base.Size)}
	for i := range g.ranks {
		g.ranks[i] = c.base.WorldRank(i)
	}
	return g
}

// Size returns the number of ranks (MPI_Group_size), 0 for the null group.
func (g *Group) Size() int {
	if g == nil {
		return 0
	}
	return len(g.ranks)
}

// Rank returns this process's rank in the group, or Undefined (MPI_Group_rank).
func (g *Group) Rank() int {
	if g == nil || g.world == nil {
		return Undefined
	}
	return indexOrUndefined(g.ranks, g.world.comm.base.Rank)
}

// indexOrUndefined returns the index of rank in ranks, or Undefined.
func indexOrUndefined(ranks []int, rank int) int {
	if i := slices.Index(ranks, rank); i >= 0 {
		return i
	}
	return Undefined
}

// rankSet returns the index of each job rank in the group.
func (g *Group) rankSet() map[int]int {
	set := make(map[int]int, len(g.ranks))
	for i, r := range g.ranks {
		set[r] = i
	}
	return set
}

// filterRanks returns the ranks of g that are in other, or those that are not, in the order of
// g.
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

// Union returns the ranks of g, followed by the ranks of other that are not in g
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

// Intersection returns the ranks of g that are in other (MPI_Group_intersection).
func (g *Group) Intersection(other *Group) *Group { return g.filterRanks(other, true) }

// Difference returns the ranks of g that are not in other (MPI_Group_difference).
func (g *Group) Difference(other *Group) *Group { return g.filterRanks(other, false) }

// Incl returns the group of the given ranks of g, in the given order (MPI_Group_incl).
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

// Excl returns g without the given ranks (MPI_Group_excl).
func (g *Group) Excl(ranks ...int) (*Group, error) {
	out, err := g.Incl(ranks...)
	if err != nil {
		return nil, err
	}
	return g.Difference(out), nil
}

// checkRanks returns ErrRank if a rank is out of range or given twice.
func (g *Group) checkRanks(ranks []int) error {
	if g == nil {
		return errNullGroup
	}
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if r < 0 || r >= len(g.ranks) {
			return fmt.Errorf("%w: %d, want [0, %d)", ErrRank, r, len(g.ranks))
		}
		if seen[r] {
			return fmt.Errorf("%w: duplicate rank %d", ErrRank, r)
		}
		seen[r] = true
	}
	return nil
}

// Range is the ranks First, First+Stride and so on up to Last. Stride may be negative but not
// 0.
type Range struct{ First, Last, Stride int }

// RangeIncl is Incl of the ranks of ranges (MPI_Group_range_incl).
func (g *Group) RangeIncl(ranges ...Range) (*Group, error) {
	ranks, err := g.expandRanges(ranges)
	if err != nil {
		return nil, err
	}
	return g.Incl(ranks...)
}

// RangeExcl is Excl of the ranks of ranges (MPI_Group_range_excl).
func (g *Group) RangeExcl(ranges ...Range) (*Group, error) {
	ranks, err := g.expandRanges(ranges)
	if err != nil {
		return nil, err
	}
	return g.Excl(ranks...)
}

// expandRanges lists the ranks of ranges.
func (g *Group) expandRanges(ranges []Range) (ranks []int, err error) {
	if g == nil {
		return nil, errNullGroup
	}
	for _, x := range ranges {
		if x.Stride == 0 || x.First < 0 || x.First >= len(g.ranks) || x.Last < 0 || x.Last >= len(g.ranks) {
			return nil, fmt.Errorf("%w: range %+v of a group of %d ranks", ErrRank, x, len(g.ranks))
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

// Translate returns the ranks in other of the given ranks of g (MPI_Group_translate_ranks):
// Undefined for ranks that are not in other, ProcNull for ProcNull.
func (g *Group) Translate(ranks []int, other *Group) ([]int, error) {
	if g == nil || other == nil {
		return nil, errNullGroup
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

// Comparison is the relation of two groups or communicators.
type Comparison int

const (
	Identical Comparison = iota // same ranks, same order, same context (MPI_IDENT)
	Congruent                   // communicators of the same ranks in the same order (MPI_CONGRUENT)
	Similar                     // same ranks in another order (MPI_SIMILAR)
	Unequal                     // different ranks (MPI_UNEQUAL)
)

// String returns the comparison's name.
func (c Comparison) String() string {
	if c < Identical || c > Unequal {
		return fmt.Sprintf("Comparison(%d)", int(c))
	}
	return [...]string{"identical", "congruent", "similar", "unequal"}[c]
}

// Compare compares groups (MPI_Group_compare). The null group is Identical to itself and
// Unequal to all other groups.
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

// Compare compares communicators (MPI_Comm_compare). The null communicator is Identical to
// itself and Unequal to all others.
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

// Create makes a communicator of the ranks of a group (MPI_Comm_create). It is collective over
// c. The members of a group must all give the same group, or all ranks get an ErrMismatch. A
// rank that is not in its group gets nil.
func (c *Comm) Create(g *Group) (*Comm, error) {
	const op = "create"
	members, err := c.membersOf(g)
	if err != nil {
		return nil, c.rejectCollective(op, err)
	}
	if err := c.callState().AgreeGroup(op, members); err != nil {
		return nil, c.fail(op, "", err)
	}
	return c.deriveComm(op, c.Name()+".create", members)
}

// membersOf returns the ranks in c of the ranks of a group.
func (c *Comm) membersOf(g *Group) ([]int, error) {
	switch {
	case c.isNull():
		return nil, errNullComm
	case g == nil:
		return nil, errNullGroup
	}
	members := make([]int, len(g.ranks))
	for i, r := range g.ranks {
		if members[i] = c.base.LocalRank(r); members[i] < 0 || members[i] >= c.base.Size {
			return nil, fmt.Errorf("%w: rank %d of the group is not in the communicator", ErrGroup, i)
		}
	}
	return members, nil
}

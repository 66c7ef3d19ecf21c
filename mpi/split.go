package mpi

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// Dup makes a communicator of the same ranks with a context of its own (MPI_Comm_dup), for
// example for a library. It copies attributes as their keys define.
func (c *Comm) Dup() (*Comm, error) {
	if c.isNull() {
		return nil, c.fail("dup", "", errNullComm)
	}
	all := make([]int, c.base.Size)
	for i := range all {
		all[i] = i
	}
	d, err := c.deriveComm("dup", c.Name()+".dup", all)
	if err == nil {
		c.copyAttrs(d)
	}
	return d, err
}

// Split makes a communicator of the ranks of each color, sorted by key and then by rank
// (MPI_Comm_split). A rank with color Undefined gets nil.
func (c *Comm) Split(color, key int) (*Comm, error) {
	const op = "split"
	if c.isNull() {
		return nil, c.fail(op, "", errNullComm)
	}
	if color < 0 && color != Undefined {
		return nil, c.rejectCollective(op, fmt.Errorf("%w: color %d is negative", ErrComm, color))
	}
	all := make([]int64, 2*c.base.Size)
	if err := c.callState().RunAs(op, collective.AllgatherOp(datatype.Of([]int64{int64(color), int64(key)}), datatype.Of(all))); err != nil {
		return nil, c.fail(op, "", err)
	}
	var mine []int
	if color != Undefined {
		for r := range c.base.Size {
			if all[2*r] == int64(color) {
				mine = append(mine, r)
			}
		}
		slices.SortStableFunc(mine, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	}
	return c.deriveComm(op, fmt.Sprintf("%s.split(%d)", c.Name(), color), mine)
}

// SplitShared makes a communicator of the ranks of each node (MPI_Comm_split_type with
// MPI_COMM_TYPE_SHARED).
func (c *Comm) SplitShared() (*Comm, error) {
	if c.isNull() {
		return nil, c.fail("split-shared", "", errNullComm)
	}
	var mine []int
	nodes := c.world.Manager
	for r := range c.base.Size {
		if nodes.Node(c.base.WorldRank(r)) == nodes.Node(c.base.WorldRank(c.base.Rank)) {
			mine = append(mine, r)
		}
	}
	return c.deriveComm("split-shared", c.Name()+".shared", mine)
}

// deriveComm makes a communicator of some ranks of c. It is collective over c; members lists
// the ranks of the communicator that this rank will be in, and may be empty. args must be equal
// at all ranks.
func (c *Comm) deriveComm(op, name string, members []int, args ...any) (*Comm, error) {
	ctx, err := c.callState().AgreeContext(op, args...)
	if err != nil {
		return nil, c.fail(op, "", err)
	}
	rank := slices.Index(members, c.base.Rank)
	if rank < 0 {
		ctx.Release()
		return nil, nil
	}
	return c.newDerivedComm(ctx, name, members, rank), nil
}

// newDerivedComm returns the communicator of members after they have agreed on a context.
func (c *Comm) newDerivedComm(ctx collective.Context, name string, members []int, rank int) *Comm {
	ranks := make([]int, len(members))
	same := len(ranks) == c.world.comm.base.Size
	for i, m := range members {
		ranks[i] = c.base.WorldRank(m)
		same = same && ranks[i] == i
	}
	if same {
		ranks = nil
	}
	d := c.world.newComm(name, ctx.ID(), ranks, rank, len(members), ctx.Release)
	d.handler.Store(c.handler.Load())
	return d
}

// CreateGroup makes a communicator of the ranks of a group (MPI_Comm_create_group). Only the
// members call it, all with the same group. Groups that share ranks and make communicators
// concurrently need different tags, from 0 to 2^28-1.
func (c *Comm) CreateGroup(g *Group, tag int) (*Comm, error) {
	d, err := c.createGroup(g, tag)
	if err != nil {
		return nil, c.fail("create-group", fmt.Sprintf("with tag %d", tag), err)
	}
	return d, nil
}

func (c *Comm) createGroup(g *Group, tag int) (*Comm, error) {
	if err := c.checkUsable(); err != nil {
		return nil, err
	}
	if tag < 0 || tag > collective.MaxGroupTag {
		return nil, fmt.Errorf("%w: want 0 to %d", ErrTag, collective.MaxGroupTag)
	}
	members, err := c.membersOf(g)
	if err != nil {
		return nil, err
	}
	rank := slices.Index(members, c.base.Rank)
	if rank < 0 {
		return nil, fmt.Errorf("%w: calling rank is not a member", ErrGroup)
	}
	// The members use the contexts of c, with their ranks in the group, until they have an id.
	base := comm.Comm{Usable: c.world.checkUsable}
	base.Init(c.base.Engine, c.base.ContextID, c.Name()+".group", slices.Clone(g.ranks), rank, len(members))
	ctx, err := c.world.Calls.NewGroup(&base, tag).AgreeContext("create-group", g.ranks)
	if err != nil {
		return nil, err
	}
	return c.newDerivedComm(ctx, base.Name(), members, rank), nil
}

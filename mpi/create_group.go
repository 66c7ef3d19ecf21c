package mpi

import (
	"fmt"
	"slices"
)

// groupTag marks the messages by which the members of a group agree on a context id. They are
// messages of the collective calls of the parent communicator, which set persistentTag or
// checkTag but never both.
const groupTag = persistentTag | checkTag

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
	switch {
	case tag < 0 || tag > maxSeq>>1:
		return nil, fmt.Errorf("%w: want 0 to %d", ErrTag, maxSeq>>1)
	}
	members, err := c.membersOf(g)
	if err != nil {
		return nil, err
	}
	rank := slices.Index(members, c.rank)
	if rank < 0 {
		return nil, fmt.Errorf("%w: calling rank is not a member", ErrGroup)
	}
	// The members use the contexts of c, with their ranks in the group, until they have an id.
	p := &Comm{world: c.world, eng: c.eng, contextID: c.contextID, rank: rank, size: len(members), worldRanks: slices.Clone(g.ranks), localRanks: map[int]int{}, fixedTag: groupTag | int32(tag)}
	for i, r := range g.ranks {
		p.localRanks[r] = i
	}
	p.SetName(c.Name() + ".group")
	ticket, err := p.agreeContextID("create-group", g.ranks)
	if err != nil {
		return nil, err
	}
	return c.newDerivedComm(ticket, p.Name(), members, rank), nil
}

package mpi

import (
	"fmt"
	"slices"
)

// Group is a set of ranks of a job in an order: numbers from 0 for some processes,
// without communication (MPI_Group). It does not change.
type Group struct {
	me    int   // this process, in the job
	ranks []int // in the job
}

// Group is the communicator's ranks (MPI_Comm_group).
func (c *Comm) Group() *Group {
	g := &Group{me: c.job(c.rank), ranks: make([]int, c.size)}
	for i := range g.ranks {
		g.ranks[i] = c.job(i)
	}
	return g
}

// Size is the number of its ranks (MPI_Group_size).
func (g *Group) Size() int { return len(g.ranks) }

// Rank is this process's number in the group, or Undefined (MPI_Group_rank).
func (g *Group) Rank() int { return g.find(g.me) }

func (g *Group) find(job int) int {
	if i := slices.Index(g.ranks, job); i >= 0 {
		return i
	}
	return Undefined
}

// Create makes a communicator of the ranks of a group (MPI_Comm_create). All ranks
// of c call it, with groups that are the same at all of their members. Who is not
// in its group gets nil.
func (c *Comm) Create(g *Group) (*Comm, error) {
	const op = "create"
	members := make([]int, len(g.ranks))
	for i, r := range g.ranks {
		if members[i] = c.local(r); members[i] == Undefined {
			return nil, c.fail(op, "", fmt.Errorf("%w: its rank %d is not one of the communicator", ErrGroup, i))
		}
	}
	return c.derive(op, c.Name()+".create", members)
}

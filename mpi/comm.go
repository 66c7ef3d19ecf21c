package mpi

import (
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/engine"
)

// Comm is a communicator: some ranks of a job, numbered from 0, whose messages
// are not mixed up with those of any other. Its methods may be called from any
// goroutine; collective calls are made in the same order by all of its ranks.
type Comm struct {
	world *World
	eng   *engine.Engine
	name  string
	id    uint32 // of its messages; id+1 of its collectives'
	rank  int
	size  int
	ranks []int       // of the job, by rank here; nil if they are the same
	here  map[int]int // the other way round
	seq   atomic.Uint32
	freed atomic.Bool
	cart  *cart
}

// Numbers of communicators: each takes two.
const (
	worldID = 0
	selfID  = 2
	firstID = 4
)

func (w *World) comm(name string, id uint32, ranks []int, rank, size int) *Comm {
	c := &Comm{world: w, eng: w.eng, name: name, id: id, rank: rank, size: size, ranks: ranks}
	if ranks != nil {
		c.here = make(map[int]int, len(ranks))
		for i, r := range ranks {
			c.here[r] = i
		}
	}
	return c
}

// Rank is this process's number in the communicator (MPI_Comm_rank).
func (c *Comm) Rank() int { return c.rank }

// Size is the number of its ranks (MPI_Comm_size).
func (c *Comm) Size() int { return c.size }

// Name is what errors call it (MPI_Comm_get_name).
func (c *Comm) Name() string { return c.name }

// SetName gives it another name, which is this rank's own business.
func (c *Comm) SetName(name string) { c.name = name }

func (c *Comm) String() string { return fmt.Sprintf("%s (rank %d of %d)", c.name, c.rank, c.size) }

// job is a rank's number in the job.
func (c *Comm) job(rank int) int {
	if c.ranks == nil {
		return rank
	}
	return c.ranks[rank]
}

// local is the number here of a rank of the job.
func (c *Comm) local(rank int) int {
	if c.ranks == nil || rank < 0 {
		return rank
	}
	if i, ok := c.here[rank]; ok {
		return i
	}
	return Undefined
}

// Free ends the use of a communicator by this rank (MPI_Comm_free). Those of
// the world stay.
func (c *Comm) Free() error {
	if c.id < firstID {
		return c.fail("free", "", ErrRequest)
	}
	c.freed.Store(true)
	return nil
}

// Package comm holds the identity of a communicator (MPI 4.1, 7.2): its members, its context and
// its name. Package mpi and the packages below it that need no more of a communicator share it.
//
// A communicator numbers its members from 0. Messages carry ranks of the job and the id of the
// context, so the packages translate ranks at their edges.
//
//	var c comm.Comm
//	c.Init(eng, 4, "pair", []int{2, 5}, 1, 2) // rank 1 of the ranks 2 and 5 of the job
//	c.WorldRank(0)                            // 2
//	c.LocalRank(5)                            // 1
package comm

import (
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Errors of calls on a communicator.
var (
	ErrRank  = errors.New("mpi: invalid rank")         // MPI_ERR_RANK
	ErrComm  = errors.New("mpi: invalid communicator") // MPI_ERR_COMM
	ErrFreed = errors.New("mpi: communicator freed")
	ErrNull  = fmt.Errorf("%w: null handle", ErrComm)
)

// Values in place of a rank.
const (
	ProcNull  = -2 // MPI_PROC_NULL: communication with it completes at once
	Undefined = -3 // MPI_UNDEFINED: not a rank
)

// Context ids. A communicator has two, for point-to-point messages and for collective calls.
const (
	WorldID = 0 // of the predefined communicators
	SelfID  = 2
	FirstID = 4 // of the first other communicator
)

// Comm is the identity of a communicator. All fields but the name and Freed are immutable.
type Comm struct {
	// Usable returns the error of calls on a communicator that is freed or whose job has ended.
	Usable func() error
	// Fail returns the error of a call with the communicator and the name and the arguments of
	// the call, after it has passed it to the error handler.
	Fail func(op, args string, err error) error

	Engine     *engine.Engine
	ContextID  uint32 // of point-to-point messages; ContextID+1 is that of collective calls
	Rank, Size int
	WorldRanks []int       // rank in the job by rank here; nil if they are equal
	localRanks map[int]int // the inverse of WorldRanks
	name       atomic.Pointer[string]
	Freed      atomic.Bool
}

// Init sets the members of a communicator: worldRanks lists their ranks in the job, nil means
// that the numbers are equal.
func (c *Comm) Init(e *engine.Engine, id uint32, name string, worldRanks []int, rank, size int) {
	c.Engine, c.ContextID, c.Rank, c.Size, c.WorldRanks = e, id, rank, size, worldRanks
	c.SetName(name)
	if worldRanks != nil {
		c.localRanks = make(map[int]int, len(worldRanks))
		for i, r := range worldRanks {
			c.localRanks[r] = i
		}
	}
}

// Name returns the name of the communicator in errors.
func (c *Comm) Name() string { return *c.name.Load() }

// SetName sets the name of the communicator.
func (c *Comm) SetName(name string) { c.name.Store(&name) }

// WorldRank returns the rank in the job of a rank of the communicator.
func (c *Comm) WorldRank(rank int) int {
	if c.WorldRanks == nil {
		return rank
	}
	return c.WorldRanks[rank]
}

// LocalRank returns the rank in the communicator of a rank of the job, Undefined if it is not a
// member. Negative numbers, such as ProcNull, stay as they are.
func (c *Comm) LocalRank(rank int) int {
	if c.WorldRanks == nil || rank < 0 {
		return rank
	}
	if i, ok := c.localRanks[rank]; ok {
		return i
	}
	return Undefined
}

// SourceRanks returns the ranks of the job from which a receive or a probe may match, and
// whether any one of them is enough.
func (c *Comm) SourceRanks(e match.Envelope) (ranks []int, any bool) {
	if e.Source != match.Any {
		return []int{int(e.Source)}, false
	}
	if c.WorldRanks != nil {
		return c.WorldRanks, true
	}
	return RanksBelow(c.Size), true
}

// RanksBelow returns the ranks from 0 to n-1.
func RanksBelow(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// RanksHash returns a hash of the members. It distinguishes communicators with the same context
// id at different ranks.
func (c *Comm) RanksHash() uint64 {
	h := fnv.New64a()
	for r := range c.Size {
		fmt.Fprintln(h, c.WorldRank(r))
	}
	return h.Sum64()
}

// DescribeRank returns the rank in the communicator of a rank of the job, and its rank in the
// job if that differs, for reports.
func (c *Comm) DescribeRank(job int32) string {
	here := c.LocalRank(int(job))
	if c.WorldRanks == nil || job < 0 || here == int(job) {
		return DescribeNumber(here)
	}
	return fmt.Sprintf("%d, rank %d of the job", here, job)
}

// DescribeNumber returns a rank or a tag for reports: "any" for match.Any.
func DescribeNumber(n int) string {
	if n == match.Any {
		return "any"
	}
	return fmt.Sprint(n)
}

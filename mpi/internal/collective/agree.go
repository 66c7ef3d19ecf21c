package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

// ErrContexts is the error of ranks that have no context id left.
var ErrContexts = errors.New("mpi: too many communicators")

// AgreeContext finds a context id that is free at all ranks and reserves it at each. The ranks
// propose tickets until all propose the highest one; other communicators may do the same
// concurrently. op names the call in errors; args are arguments that must be equal at all ranks.
func (c *Comm) AgreeContext(op string, args ...any) (Context, error) {
	if c == nil {
		return Context{}, comm.ErrNull
	}
	x := c.job.Contexts
	reserve := func(from uint64) uint64 {
		t := x.reserveID(from)
		if t != noTicket {
			c.job.comms.evictFreed(x.idOf(t))
		}
		return t
	}
	ticket := reserve(0)
	for {
		v := [2]uint64{ticket, ^ticket}
		if ticket == noTicket {
			v[1] = noTicket
		}
		err := c.RunAs(op, AllreduceOp(datatype.InPlace, datatype.Of(v[:]), datatype.Max), args...)
		if err == nil && v[0] == noTicket {
			err = fmt.Errorf("%w: a rank has reached the limit of %d", ErrContexts, x.limit)
		}
		if err != nil {
			x.releaseID(ticket)
			return Context{}, err
		}
		highest, lowest := v[0], ^v[1]
		if highest == lowest {
			return Context{x, ticket}, nil
		}
		if ticket != highest {
			x.releaseID(ticket)
			ticket = reserve(highest)
		}
	}
}

// AgreeGroup returns an ErrMismatch at all ranks unless the members of each group, all ranks of c,
// have given the same group. Ranks may give different groups (MPI 4.1, 7.4.2). op names the call in
// errors.
func (c *Comm) AgreeGroup(op string, members []int) error {
	type group struct{ hash, size, member uint64 }
	h := fnv.New64a()
	for _, m := range members {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(m)))
	}
	mine := group{hash: h.Sum64(), size: uint64(len(members))}
	if slices.Contains(members, c.Rank) {
		mine.member = 1
	}
	all := make([]group, c.Size)
	if err := c.RunAs(op, AllgatherOp(datatype.Structs([]group{mine}), datatype.Structs(all))); err != nil {
		return err
	}
	given := map[group]uint64{} // number of members that gave the group
	for _, g := range all {
		given[group{g.hash, g.size, 1}] += g.member
	}
	for r, g := range all {
		if n := given[group{g.hash, g.size, 1}]; n != g.size {
			return fmt.Errorf("%w: rank %d gave a group of %d ranks, but only %d of them gave the same", deadlock.ErrMismatch, r, g.size, n)
		}
	}
	return nil
}

package collective

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
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

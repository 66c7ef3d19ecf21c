package mpi

import (
	"context"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Collective calls in the background: begun here in the same order as blocking
// ones, done when their Request is. Each has a goroutine, which waits as others do,
// so that they go on while the program computes. Buffers, counts and displs belong
// to the call until then. Several may be under way on one communicator.

// Ibarrier begins a Barrier (MPI_Ibarrier).
func (c *Comm) Ibarrier() (*Request, error) { return c.start(barrier()) }

// Ibcast begins a Bcast (MPI_Ibcast).
func (c *Comm) Ibcast(b Buffer, root int) (*Request, error) { return c.start(bcast(b, root)) }

// Igather begins a Gather (MPI_Igather).
func (c *Comm) Igather(send, recv Buffer, root int) (*Request, error) {
	return c.start(gather(send, recv, root))
}

// Igatherv begins a Gatherv (MPI_Igatherv).
func (c *Comm) Igatherv(send, recv Buffer, counts, displs []int, root int) (*Request, error) {
	return c.start(gatherv(send, recv, counts, displs, root))
}

// Iscatter begins a Scatter (MPI_Iscatter).
func (c *Comm) Iscatter(send, recv Buffer, root int) (*Request, error) {
	return c.start(scatter(send, recv, root))
}

// Iscatterv begins a Scatterv (MPI_Iscatterv).
func (c *Comm) Iscatterv(send Buffer, counts, displs []int, recv Buffer, root int) (*Request, error) {
	return c.start(scatterv(send, counts, displs, recv, root))
}

// Iallgather begins an Allgather (MPI_Iallgather).
func (c *Comm) Iallgather(send, recv Buffer) (*Request, error) { return c.start(allgather(send, recv)) }

// Iallgatherv begins an Allgatherv (MPI_Iallgatherv).
func (c *Comm) Iallgatherv(send, recv Buffer, counts, displs []int) (*Request, error) {
	return c.start(allgatherv(send, recv, counts, displs))
}

// Ialltoall begins an Alltoall (MPI_Ialltoall).
func (c *Comm) Ialltoall(send, recv Buffer) (*Request, error) { return c.start(alltoall(send, recv)) }

// Ialltoallv begins an Alltoallv (MPI_Ialltoallv).
func (c *Comm) Ialltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) (*Request, error) {
	return c.start(alltoallv(send, sendCounts, sendDispls, recv, recvCounts, recvDispls))
}

// Ialltoallw begins an Alltoallw (MPI_Ialltoallw).
func (c *Comm) Ialltoallw(send, recv []Buffer) (*Request, error) {
	return c.start(alltoallw(send, recv))
}

// Ireduce begins a Reduce (MPI_Ireduce).
func (c *Comm) Ireduce(send, recv Buffer, op Op, root int) (*Request, error) {
	return c.start(reduce(send, recv, op, root))
}

// Iallreduce begins an Allreduce (MPI_Iallreduce).
func (c *Comm) Iallreduce(send, recv Buffer, op Op) (*Request, error) {
	return c.start(allreduce(send, recv, op))
}

// IreduceScatter begins a ReduceScatter (MPI_Ireduce_scatter).
func (c *Comm) IreduceScatter(send, recv Buffer, counts []int, op Op) (*Request, error) {
	return c.start(reduceScatter(send, recv, counts, op))
}

// IreduceScatterBlock begins a ReduceScatterBlock (MPI_Ireduce_scatter_block).
func (c *Comm) IreduceScatterBlock(send, recv Buffer, op Op) (*Request, error) {
	return c.start(reduceScatterBlock(send, recv, op))
}

// Iscan begins a Scan (MPI_Iscan).
func (c *Comm) Iscan(send, recv Buffer, op Op) (*Request, error) {
	return c.start(scan(send, recv, op))
}

// Iexscan begins an Exscan (MPI_Iexscan).
func (c *Comm) Iexscan(send, recv Buffer, op Op) (*Request, error) {
	return c.start(exscan(send, recv, op))
}

// work is a call that a goroutine does.
type work struct {
	done bool // with the engine's lock held
	err  error
	over chan struct{} // closed when it is done

	waiting atomic.Int32 // goroutines that wait for it
}

// start begins a call in the background.
func (c *Comm) start(o operation) (*Request, error) {
	o.form = background
	k, err := c.take(&o)
	if err != nil {
		return nil, c.fail(o.name(), o.with(), err)
	}
	refused := k.refused
	r := &Request{comm: c, op: o.name()}
	r.work.over = make(chan struct{})
	k.work = &r.work
	go func() {
		err := k.run()
		if err != nil {
			err = c.fail(k.op.name(), k.op.with(), err)
		}
		c.give(k, err)
		r.work.end(c, err)
	}()
	if refused != nil {
		return nil, c.fail(o.name(), o.with(), refused)
	}
	return r, nil
}

// end makes a call known as done.
func (w *work) end(c *Comm, err error) {
	c.eng.Do(func(*protocol.Core) { w.done, w.err = true, err })
	close(w.over)
}

// wait waits for a call, and leaves the network to its goroutine, which does not
// have to be woken then for what has come.
func (w *work) wait(ctx context.Context) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	select {
	case <-w.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

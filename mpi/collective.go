package mpi

import "github.com/softrnic/softrnic/mpi/internal/coll"

// Collective calls are made by all ranks of a communicator, in the same order.
//
// Where ranks have a piece each of a buffer the pieces are of one size and lie in
// the order of the ranks, or as counts and displs say: both in elements, one for
// each rank. Without displs pieces lie back to back. Buffers that do not count at
// a rank, such as what Gather receives at others than the root, may be Buffer{}.
//
// InPlace takes the place of the buffer of which MPI says so (6.2 ff.): at the
// root that of Gather, Gatherv and Reduce to send and that of Scatter and Scatterv
// to receive, else that to send. All that is sent then lies where it would be
// received.

// Barrier returns when all ranks have called it (MPI_Barrier).
func (c *Comm) Barrier() error { return c.runBlocking(barrierOp()) }

// Bcast gives all ranks what is in the root's buffer (MPI_Bcast).
func (c *Comm) Bcast(b Buffer, root int) error { return c.runBlocking(bcastOp(b, root)) }

// Gather gives the root what all ranks send (MPI_Gather).
func (c *Comm) Gather(send, recv Buffer, root int) error {
	return c.runBlocking(gatherOp(send, recv, root))
}

// Gatherv is Gather of pieces that differ in size (MPI_Gatherv). counts and displs
// are the root's.
func (c *Comm) Gatherv(send, recv Buffer, counts, displs []int, root int) error {
	return c.runBlocking(gathervOp(send, recv, counts, displs, root))
}

// Scatter gives each rank its piece of what the root sends (MPI_Scatter).
func (c *Comm) Scatter(send, recv Buffer, root int) error {
	return c.runBlocking(scatterOp(send, recv, root))
}

// Scatterv is Scatter of pieces that differ in size (MPI_Scatterv). counts and
// displs are the root's.
func (c *Comm) Scatterv(send Buffer, counts, displs []int, recv Buffer, root int) error {
	return c.runBlocking(scattervOp(send, counts, displs, recv, root))
}

// Allgather gives all ranks what all send (MPI_Allgather).
func (c *Comm) Allgather(send, recv Buffer) error { return c.runBlocking(allgatherOp(send, recv)) }

// Allgatherv is Allgather of pieces that differ in size (MPI_Allgatherv). counts
// are the same on all ranks.
func (c *Comm) Allgatherv(send, recv Buffer, counts, displs []int) error {
	return c.runBlocking(allgathervOp(send, recv, counts, displs))
}

// Alltoall gives each rank its piece of what every rank sends (MPI_Alltoall).
func (c *Comm) Alltoall(send, recv Buffer) error { return c.runBlocking(alltoallOp(send, recv)) }

// Alltoallv is Alltoall of pieces that differ in size (MPI_Alltoallv).
func (c *Comm) Alltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) error {
	return c.runBlocking(alltoallvOp(send, sendCounts, sendDispls, recv, recvCounts, recvDispls))
}

// Alltoallw is Alltoall of buffers of any kind, one for each rank
// (MPI_Alltoallw). In place send is InPlace alone.
func (c *Comm) Alltoallw(send, recv []Buffer) error { return c.runBlocking(alltoallwOp(send, recv)) }

// Reduce gives the root the combination of what all ranks send (MPI_Reduce).
func (c *Comm) Reduce(send, recv Buffer, op Op, root int) error {
	return c.runBlocking(reduceCollective(send, recv, op, root))
}

// Allreduce gives all ranks the combination of what all send (MPI_Allreduce).
func (c *Comm) Allreduce(send, recv Buffer, op Op) error {
	return c.runBlocking(allreduceOp(send, recv, op))
}

// ReduceScatter combines what all ranks send, and gives each its piece of the
// result (MPI_Reduce_scatter): so many elements, back to back. In place the result
// is at the beginning of recv, and what is behind it of no use.
func (c *Comm) ReduceScatter(send, recv Buffer, counts []int, op Op) error {
	return c.runBlocking(reduceScatterOp(send, recv, counts, op))
}

// ReduceScatterBlock is ReduceScatter with pieces of one size
// (MPI_Reduce_scatter_block).
func (c *Comm) ReduceScatterBlock(send, recv Buffer, op Op) error {
	return c.runBlocking(reduceScatterBlockOp(send, recv, op))
}

// Scan gives each rank the combination of what the ranks up to itself send
// (MPI_Scan).
func (c *Comm) Scan(send, recv Buffer, op Op) error { return c.runBlocking(scanOp(send, recv, op)) }

// Exscan is Scan without the rank's own (MPI_Exscan). Rank 0 receives nothing: its
// buffer stays as it was.
func (c *Comm) Exscan(send, recv Buffer, op Op) error { return c.runBlocking(exscanOp(send, recv, op)) }

// runBlocking makes a call and waits for it.
func (c *Comm) runBlocking(o collectiveOp) error {
	if err := c.runCollective(&o); err != nil {
		return c.fail(o.callName(), o.describeRoot(), err)
	}
	return nil
}

func (c *Comm) runCollective(o *collectiveOp) error {
	k, err := c.beginCall(o)
	if err == nil {
		err = k.run()
		c.endCall(k, err)
	}
	return err
}

// rejectCollective ends a call whose arguments cannot be. Where calls are compared the other
// ranks are told.
func (c *Comm) rejectCollective(op string, err error) error {
	if !c.isNull() && c.world.o.Check {
		err = c.runCollective(&collectiveOp{collective: coll.Barrier, calledAs: op, argErr: err})
	}
	return c.fail(op, "", err)
}

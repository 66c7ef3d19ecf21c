package mpi

import "github.com/softrnic/softrnic/mpi/internal/collective"

// Collective calls are made by all ranks of a communicator in the same order.
//
// The blocks of the ranks in a buffer have equal size and lie in rank order, or lie where
// counts and displs say, in elements, with one entry for each rank. Without displs the blocks
// are adjacent. Buffers that are not significant at a rank, such as the receive buffer of
// Gather at other ranks than the root, may be Buffer{}.
//
// InPlace replaces the buffer that MPI names (6.2 ff.): at the root the send buffer of Gather,
// Gatherv and Reduce and the receive buffer of Scatter and Scatterv, else the send buffer. The
// data to send then lies in the receive buffer.

// Barrier returns after all ranks have called it (MPI_Barrier).
func (c *Comm) Barrier() error { return c.runBlocking(collective.BarrierOp()) }

// Bcast copies the root's buffer to all ranks (MPI_Bcast).
func (c *Comm) Bcast(b Buffer, root int) error {
	return c.runBlocking(collective.BcastOp(b.data, root))
}

// Gather collects a block of each rank at the root (MPI_Gather).
func (c *Comm) Gather(send, recv Buffer, root int) error {
	return c.runBlocking(collective.GatherOp(send.data, recv.data, root))
}

// Gatherv is Gather of blocks of different sizes (MPI_Gatherv). counts and displs are
// significant at the root.
func (c *Comm) Gatherv(send, recv Buffer, counts, displs []int, root int) error {
	return c.runBlocking(collective.GathervOp(send.data, recv.data, counts, displs, root))
}

// Scatter distributes the blocks of the root's buffer to the ranks (MPI_Scatter).
func (c *Comm) Scatter(send, recv Buffer, root int) error {
	return c.runBlocking(collective.ScatterOp(send.data, recv.data, root))
}

// Scatterv is Scatter of blocks of different sizes (MPI_Scatterv). counts and displs are
// significant at the root.
func (c *Comm) Scatterv(send Buffer, counts, displs []int, recv Buffer, root int) error {
	return c.runBlocking(collective.ScattervOp(send.data, counts, displs, recv.data, root))
}

// Allgather collects a block of each rank at all ranks (MPI_Allgather).
func (c *Comm) Allgather(send, recv Buffer) error {
	return c.runBlocking(collective.AllgatherOp(send.data, recv.data))
}

// Allgatherv is Allgather of blocks of different sizes (MPI_Allgatherv). counts must be equal
// at all ranks.
func (c *Comm) Allgatherv(send, recv Buffer, counts, displs []int) error {
	return c.runBlocking(collective.AllgathervOp(send.data, recv.data, counts, displs))
}

// Alltoall sends a block from each rank to each rank (MPI_Alltoall).
func (c *Comm) Alltoall(send, recv Buffer) error {
	return c.runBlocking(collective.AlltoallOp(send.data, recv.data))
}

// Alltoallv is Alltoall of blocks of different sizes (MPI_Alltoallv).
func (c *Comm) Alltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) error {
	return c.runBlocking(collective.AlltoallvOp(send.data, sendCounts, sendDispls, recv.data, recvCounts, recvDispls))
}

// Alltoallw is Alltoall with one buffer of any datatype for each rank (MPI_Alltoallw). In
// place, send is InPlace alone.
func (c *Comm) Alltoallw(send, recv []Buffer) error {
	return c.runBlocking(collective.AlltoallwOp(dataOf(send), dataOf(recv)))
}

// Reduce combines the elements of all ranks at the root (MPI_Reduce).
func (c *Comm) Reduce(send, recv Buffer, op Op, root int) error {
	return c.runBlocking(collective.ReduceOp(send.data, recv.data, op.op, root))
}

// Allreduce combines the elements of all ranks at all ranks (MPI_Allreduce).
func (c *Comm) Allreduce(send, recv Buffer, op Op) error {
	return c.runBlocking(collective.AllreduceOp(send.data, recv.data, op.op))
}

// ReduceScatter combines the elements of all ranks and distributes the result in adjacent
// blocks of counts elements (MPI_Reduce_scatter). In place the result is at the beginning of
// recv, and the rest of recv is undefined.
func (c *Comm) ReduceScatter(send, recv Buffer, counts []int, op Op) error {
	return c.runBlocking(collective.ReduceScatterOp(send.data, recv.data, counts, op.op))
}

// ReduceScatterBlock is ReduceScatter with blocks of equal size (MPI_Reduce_scatter_block).
func (c *Comm) ReduceScatterBlock(send, recv Buffer, op Op) error {
	return c.runBlocking(collective.ReduceScatterBlockOp(send.data, recv.data, op.op))
}

// Scan combines at each rank the elements of all ranks up to and including it (MPI_Scan).
func (c *Comm) Scan(send, recv Buffer, op Op) error {
	return c.runBlocking(collective.ScanOp(send.data, recv.data, op.op))
}

// Exscan is Scan without the rank's own elements (MPI_Exscan). The buffer of rank 0 is not
// written.
func (c *Comm) Exscan(send, recv Buffer, op Op) error {
	return c.runBlocking(collective.ExscanOp(send.data, recv.data, op.op))
}

// callState returns the state for collective calls, nil for the null communicator.
func (c *Comm) callState() *collective.Comm {
	if c.isNull() {
		return nil
	}
	return c.calls
}

// runBlocking executes a blocking call.
func (c *Comm) runBlocking(o collective.Op) error {
	if err := c.callState().Run(&o); err != nil {
		return c.fail(o.Name(), o.RootText(), err)
	}
	return nil
}

// rejectCollective returns the error of a call with invalid arguments. With Options.Check it
// notifies the other ranks.
func (c *Comm) rejectCollective(op string, err error) error {
	if !c.isNull() && c.world.o.Check {
		o := collective.RejectedOp(op, err)
		err = c.calls.Run(&o)
	}
	return c.fail(op, "", err)
}

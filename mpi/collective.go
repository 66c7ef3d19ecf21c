package mpi

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
func (c *Comm) Barrier() error { return c.runBlocking(barrierOp()) }

// Bcast copies the root's buffer to all ranks (MPI_Bcast).
func (c *Comm) Bcast(b Buffer, root int) error { return c.runBlocking(bcastOp(b, root)) }

// Gather collects a block of each rank at the root (MPI_Gather).
func (c *Comm) Gather(send, recv Buffer, root int) error {
	return c.runBlocking(gatherOp(send, recv, root))
}

// Gatherv is Gather of blocks of different sizes (MPI_Gatherv). counts and displs are
// significant at the root.
func (c *Comm) Gatherv(send, recv Buffer, counts, displs []int, root int) error {
	return c.runBlocking(gathervOp(send, recv, counts, displs, root))
}

// Scatter distributes the blocks of the root's buffer to the ranks (MPI_Scatter).
func (c *Comm) Scatter(send, recv Buffer, root int) error {
	return c.runBlocking(scatterOp(send, recv, root))
}

// Scatterv is Scatter of blocks of different sizes (MPI_Scatterv). counts and displs are
// significant at the root.
func (c *Comm) Scatterv(send Buffer, counts, displs []int, recv Buffer, root int) error {
	return c.runBlocking(scattervOp(send, counts, displs, recv, root))
}

// Allgather collects a block of each rank at all ranks (MPI_Allgather).
func (c *Comm) Allgather(send, recv Buffer) error { return c.runBlocking(allgatherOp(send, recv)) }

// Allgatherv is Allgather of blocks of different sizes (MPI_Allgatherv). counts must be equal
// at all ranks.
func (c *Comm) Allgatherv(send, recv Buffer, counts, displs []int) error {
	return c.runBlocking(allgathervOp(send, recv, counts, displs))
}

// Alltoall sends a block from each rank to each rank (MPI_Alltoall).
func (c *Comm) Alltoall(send, recv Buffer) error { return c.runBlocking(alltoallOp(send, recv)) }

// Alltoallv is Alltoall of blocks of different sizes (MPI_Alltoallv).
func (c *Comm) Alltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) error {
	return c.runBlocking(alltoallvOp(send, sendCounts, sendDispls, recv, recvCounts, recvDispls))
}

// Alltoallw is Alltoall with one buffer of any datatype for each rank (MPI_Alltoallw). In
// place, send is InPlace alone.
func (c *Comm) Alltoallw(send, recv []Buffer) error { return c.runBlocking(alltoallwOp(send, recv)) }

// Reduce combines the elements of all ranks at the root (MPI_Reduce).
func (c *Comm) Reduce(send, recv Buffer, op Op, root int) error {
	return c.runBlocking(reduceCollective(send, recv, op, root))
}

// Allreduce combines the elements of all ranks at all ranks (MPI_Allreduce).
func (c *Comm) Allreduce(send, recv Buffer, op Op) error {
	return c.runBlocking(allreduceOp(send, recv, op))
}

// ReduceScatter combines the elements of all ranks and distributes the result in adjacent
// blocks of counts elements (MPI_Reduce_scatter). In place the result is at the beginning of
// recv, and the rest of recv is undefined.
func (c *Comm) ReduceScatter(send, recv Buffer, counts []int, op Op) error {
	return c.runBlocking(reduceScatterOp(send, recv, counts, op))
}

// ReduceScatterBlock is ReduceScatter with blocks of equal size (MPI_Reduce_scatter_block).
func (c *Comm) ReduceScatterBlock(send, recv Buffer, op Op) error {
	return c.runBlocking(reduceScatterBlockOp(send, recv, op))
}

// Scan combines at each rank the elements of all ranks up to and including it (MPI_Scan).
func (c *Comm) Scan(send, recv Buffer, op Op) error { return c.runBlocking(scanOp(send, recv, op)) }

// Exscan is Scan without the rank's own elements (MPI_Exscan). The buffer of rank 0 is not
// written.
func (c *Comm) Exscan(send, recv Buffer, op Op) error { return c.runBlocking(exscanOp(send, recv, op)) }

// callState returns the state for collective calls, nil for the null communicator.
func (c *Comm) callState() *collectiveComm {
	if c.isNull() {
		return nil
	}
	return c.calls
}

// runBlocking executes a blocking call.
func (c *Comm) runBlocking(o collectiveOp) error {
	if err := c.callState().Run(&o); err != nil {
		return c.fail(o.Name(), o.Root(), err)
	}
	return nil
}

// rejectCollective returns the error of a call with invalid arguments. With Options.Check it
// notifies the other ranks.
func (c *Comm) rejectCollective(op string, err error) error {
	if !c.isNull() && c.world.o.Check {
		o := rejectedOp(op, err)
		err = c.calls.Run(&o)
	}
	return c.fail(op, "", err)
}

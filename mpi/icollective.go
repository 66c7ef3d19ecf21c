package mpi

import "github.com/softrnic/softrnic/mpi/internal/collective"

// Nonblocking collective calls. They count in the order of the collective calls like blocking
// ones. Each has a goroutine that waits for its messages, so the call progresses while the
// program computes. Buffers, counts and displs belong to the call until its Request is done.
// Several calls may be in progress on one communicator.

// Ibarrier starts a Barrier (MPI_Ibarrier).
func (c *Comm) Ibarrier() (*Request, error) { return c.startNonblocking(collective.BarrierOp()) }

// Ibcast starts a Bcast (MPI_Ibcast).
func (c *Comm) Ibcast(b Buffer, root int) (*Request, error) {
	return c.startNonblocking(collective.BcastOp(b.data, root))
}

// Igather starts a Gather (MPI_Igather).
func (c *Comm) Igather(send, recv Buffer, root int) (*Request, error) {
	return c.startNonblocking(collective.GatherOp(send.data, recv.data, root))
}

// Igatherv starts a Gatherv (MPI_Igatherv).
func (c *Comm) Igatherv(send, recv Buffer, counts, displs []int, root int) (*Request, error) {
	return c.startNonblocking(collective.GathervOp(send.data, recv.data, counts, displs, root))
}

// Iscatter starts a Scatter (MPI_Iscatter).
func (c *Comm) Iscatter(send, recv Buffer, root int) (*Request, error) {
	return c.startNonblocking(collective.ScatterOp(send.data, recv.data, root))
}

// Iscatterv starts a Scatterv (MPI_Iscatterv).
func (c *Comm) Iscatterv(send Buffer, counts, displs []int, recv Buffer, root int) (*Request, error) {
	return c.startNonblocking(collective.ScattervOp(send.data, counts, displs, recv.data, root))
}

// Iallgather starts an Allgather (MPI_Iallgather).
func (c *Comm) Iallgather(send, recv Buffer) (*Request, error) {
	return c.startNonblocking(collective.AllgatherOp(send.data, recv.data))
}

// Iallgatherv starts an Allgatherv (MPI_Iallgatherv).
func (c *Comm) Iallgatherv(send, recv Buffer, counts, displs []int) (*Request, error) {
	return c.startNonblocking(collective.AllgathervOp(send.data, recv.data, counts, displs))
}

// Ialltoall starts an Alltoall (MPI_Ialltoall).
func (c *Comm) Ialltoall(send, recv Buffer) (*Request, error) {
	return c.startNonblocking(collective.AlltoallOp(send.data, recv.data))
}

// Ialltoallv starts an Alltoallv (MPI_Ialltoallv).
func (c *Comm) Ialltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) (*Request, error) {
	return c.startNonblocking(collective.AlltoallvOp(send.data, sendCounts, sendDispls, recv.data, recvCounts, recvDispls))
}

// Ialltoallw starts an Alltoallw (MPI_Ialltoallw).
func (c *Comm) Ialltoallw(send, recv []Buffer) (*Request, error) {
	return c.startNonblocking(collective.AlltoallwOp(dataOf(send), dataOf(recv)))
}

// Ireduce starts a Reduce (MPI_Ireduce).
func (c *Comm) Ireduce(send, recv Buffer, op Op, root int) (*Request, error) {
	return c.startNonblocking(collective.ReduceOp(send.data, recv.data, op.op, root))
}

// Iallreduce starts an Allreduce (MPI_Iallreduce).
func (c *Comm) Iallreduce(send, recv Buffer, op Op) (*Request, error) {
	return c.startNonblocking(collective.AllreduceOp(send.data, recv.data, op.op))
}

// IreduceScatter starts a ReduceScatter (MPI_Ireduce_scatter).
func (c *Comm) IreduceScatter(send, recv Buffer, counts []int, op Op) (*Request, error) {
	return c.startNonblocking(collective.ReduceScatterOp(send.data, recv.data, counts, op.op))
}

// IreduceScatterBlock starts a ReduceScatterBlock (MPI_Ireduce_scatter_block).
func (c *Comm) IreduceScatterBlock(send, recv Buffer, op Op) (*Request, error) {
	return c.startNonblocking(collective.ReduceScatterBlockOp(send.data, recv.data, op.op))
}

// Iscan starts a Scan (MPI_Iscan).
func (c *Comm) Iscan(send, recv Buffer, op Op) (*Request, error) {
	return c.startNonblocking(collective.ScanOp(send.data, recv.data, op.op))
}

// Iexscan starts an Exscan (MPI_Iexscan).
func (c *Comm) Iexscan(send, recv Buffer, op Op) (*Request, error) {
	return c.startNonblocking(collective.ExscanOp(send.data, recv.data, op.op))
}

// startNonblocking starts a nonblocking call.
func (c *Comm) startNonblocking(o collective.Op) (*Request, error) {
	r, err := c.messageState().StartCall(c.callState(), &o)
	return handleOf(r), err
}

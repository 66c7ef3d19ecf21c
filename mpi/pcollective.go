package mpi

import "github.com/softrnic/softrnic/mpi/internal/collective"

// Persistent collective calls (MPI 4.1, 6.13). All ranks make them in the same order among
// their other collective calls. Start starts a call, in any order, and Wait waits for it.

// BarrierInit makes a persistent Barrier (MPI_Barrier_init).
func (c *Comm) BarrierInit() (*Request, error) { return c.newPersistentCall(collective.BarrierOp()) }

// BcastInit makes a persistent Bcast (MPI_Bcast_init).
func (c *Comm) BcastInit(b Buffer, root int) (*Request, error) {
	return c.newPersistentCall(collective.BcastOp(b.data, root))
}

// GatherInit makes a persistent Gather (MPI_Gather_init).
func (c *Comm) GatherInit(send, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(collective.GatherOp(send.data, recv.data, root))
}

// GathervInit makes a persistent Gatherv (MPI_Gatherv_init).
func (c *Comm) GathervInit(send, recv Buffer, counts, displs []int, root int) (*Request, error) {
	return c.newPersistentCall(collective.GathervOp(send.data, recv.data, counts, displs, root))
}

// ScatterInit makes a persistent Scatter (MPI_Scatter_init).
func (c *Comm) ScatterInit(send, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(collective.ScatterOp(send.data, recv.data, root))
}

// ScattervInit makes a persistent Scatterv (MPI_Scatterv_init).
func (c *Comm) ScattervInit(send Buffer, counts, displs []int, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(collective.ScattervOp(send.data, counts, displs, recv.data, root))
}

// AllgatherInit makes a persistent Allgather (MPI_Allgather_init).
func (c *Comm) AllgatherInit(send, recv Buffer) (*Request, error) {
	return c.newPersistentCall(collective.AllgatherOp(send.data, recv.data))
}

// AllgathervInit makes a persistent Allgatherv (MPI_Allgatherv_init).
func (c *Comm) AllgathervInit(send, recv Buffer, counts, displs []int) (*Request, error) {
	return c.newPersistentCall(collective.AllgathervOp(send.data, recv.data, counts, displs))
}

// AlltoallInit makes a persistent Alltoall (MPI_Alltoall_init).
func (c *Comm) AlltoallInit(send, recv Buffer) (*Request, error) {
	return c.newPersistentCall(collective.AlltoallOp(send.data, recv.data))
}

// AlltoallvInit makes a persistent Alltoallv (MPI_Alltoallv_init).
func (c *Comm) AlltoallvInit(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) (*Request, error) {
	return c.newPersistentCall(collective.AlltoallvOp(send.data, sendCounts, sendDispls, recv.data, recvCounts, recvDispls))
}

// AlltoallwInit makes a persistent Alltoallw (MPI_Alltoallw_init).
func (c *Comm) AlltoallwInit(send, recv []Buffer) (*Request, error) {
	return c.newPersistentCall(collective.AlltoallwOp(dataOf(send), dataOf(recv)))
}

// ReduceInit makes a persistent Reduce (MPI_Reduce_init).
func (c *Comm) ReduceInit(send, recv Buffer, op Op, root int) (*Request, error) {
	return c.newPersistentCall(collective.ReduceOp(send.data, recv.data, op.op, root))
}

// AllreduceInit makes a persistent Allreduce (MPI_Allreduce_init).
func (c *Comm) AllreduceInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(collective.AllreduceOp(send.data, recv.data, op.op))
}

// ReduceScatterInit makes a persistent ReduceScatter (MPI_Reduce_scatter_init).
func (c *Comm) ReduceScatterInit(send, recv Buffer, counts []int, op Op) (*Request, error) {
	return c.newPersistentCall(collective.ReduceScatterOp(send.data, recv.data, counts, op.op))
}

// ReduceScatterBlockInit makes a persistent ReduceScatterBlock (MPI_Reduce_scatter_block_init).
func (c *Comm) ReduceScatterBlockInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(collective.ReduceScatterBlockOp(send.data, recv.data, op.op))
}

// ScanInit makes a persistent Scan (MPI_Scan_init).
func (c *Comm) ScanInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(collective.ScanOp(send.data, recv.data, op.op))
}

// ExscanInit makes a persistent Exscan (MPI_Exscan_init).
func (c *Comm) ExscanInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(collective.ExscanOp(send.data, recv.data, op.op))
}

// newPersistentCall makes a persistent call.
func (c *Comm) newPersistentCall(o collective.Op) (*Request, error) {
	r, err := c.messageState().InitCall(c.callState(), &o)
	return handleOf(r), err
}

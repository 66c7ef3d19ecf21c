package mpi

// Persistent collective calls (MPI 4.1, 6.13). All ranks make them in the same order among
// their other collective calls. Start starts a call, in any order, and Wait waits for it.

// BarrierInit makes a persistent Barrier (MPI_Barrier_init).
func (c *Comm) BarrierInit() (*Request, error) { return c.newPersistentCall(barrierOp()) }

// BcastInit makes a persistent Bcast (MPI_Bcast_init).
func (c *Comm) BcastInit(b Buffer, root int) (*Request, error) {
	return c.newPersistentCall(bcastOp(b, root))
}

// GatherInit makes a persistent Gather (MPI_Gather_init).
func (c *Comm) GatherInit(send, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(gatherOp(send, recv, root))
}

// GathervInit makes a persistent Gatherv (MPI_Gatherv_init).
func (c *Comm) GathervInit(send, recv Buffer, counts, displs []int, root int) (*Request, error) {
	return c.newPersistentCall(gathervOp(send, recv, counts, displs, root))
}

// ScatterInit makes a persistent Scatter (MPI_Scatter_init).
func (c *Comm) ScatterInit(send, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(scatterOp(send, recv, root))
}

// ScattervInit makes a persistent Scatterv (MPI_Scatterv_init).
func (c *Comm) ScattervInit(send Buffer, counts, displs []int, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(scattervOp(send, counts, displs, recv, root))
}

// AllgatherInit makes a persistent Allgather (MPI_Allgather_init).
func (c *Comm) AllgatherInit(send, recv Buffer) (*Request, error) {
	return c.newPersistentCall(allgatherOp(send, recv))
}

// AllgathervInit makes a persistent Allgatherv (MPI_Allgatherv_init).
func (c *Comm) AllgathervInit(send, recv Buffer, counts, displs []int) (*Request, error) {
	return c.newPersistentCall(allgathervOp(send, recv, counts, displs))
}

// AlltoallInit makes a persistent Alltoall (MPI_Alltoall_init).
func (c *Comm) AlltoallInit(send, recv Buffer) (*Request, error) {
	return c.newPersistentCall(alltoallOp(send, recv))
}

// AlltoallvInit makes a persistent Alltoallv (MPI_Alltoallv_init).
func (c *Comm) AlltoallvInit(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) (*Request, error) {
	return c.newPersistentCall(alltoallvOp(send, sendCounts, sendDispls, recv, recvCounts, recvDispls))
}

// AlltoallwInit makes a persistent Alltoallw (MPI_Alltoallw_init).
func (c *Comm) AlltoallwInit(send, recv []Buffer) (*Request, error) {
	return c.newPersistentCall(alltoallwOp(send, recv))
}

// ReduceInit makes a persistent Reduce (MPI_Reduce_init).
func (c *Comm) ReduceInit(send, recv Buffer, op Op, root int) (*Request, error) {
	return c.newPersistentCall(reduceCollective(send, recv, op, root))
}

// AllreduceInit makes a persistent Allreduce (MPI_Allreduce_init).
func (c *Comm) AllreduceInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(allreduceOp(send, recv, op))
}

// ReduceScatterInit makes a persistent ReduceScatter (MPI_Reduce_scatter_init).
func (c *Comm) ReduceScatterInit(send, recv Buffer, counts []int, op Op) (*Request, error) {
	return c.newPersistentCall(reduceScatterOp(send, recv, counts, op))
}

// ReduceScatterBlockInit makes a persistent ReduceScatterBlock (MPI_Reduce_scatter_block_init).
func (c *Comm) ReduceScatterBlockInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(reduceScatterBlockOp(send, recv, op))
}

// ScanInit makes a persistent Scan (MPI_Scan_init).
func (c *Comm) ScanInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(scanOp(send, recv, op))
}

// ExscanInit makes a persistent Exscan (MPI_Exscan_init).
func (c *Comm) ExscanInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(exscanOp(send, recv, op))
}

// newPersistentCall makes a persistent call.
func (c *Comm) newPersistentCall(o collectiveOp) (*Request, error) {
	p, err := c.callState().Init(&o)
	if err != nil {
		return nil, c.fail(o.Name(), o.Root(), err)
	}
	start := func(r *Request) (err error) {
		if r.background, err = p.Start(); err != nil {
			return c.fail(o.Name(), o.Root(), err)
		}
		return nil
	}
	return &Request{comm: c, op: o.Name(), persistent: true, start: start, free: p.Free}, nil
}

package mpi

import "fmt"

// Collective calls that are made again and again with the same arguments (MPI 4.1,
// 6.13). All ranks keep them in the same order, among their other collective calls;
// each is done by Start, in any order, and Wait.

// BarrierInit keeps a Barrier (MPI_Barrier_init).
func (c *Comm) BarrierInit() (*Request, error) { return c.newPersistentCall(barrierOp()) }

// BcastInit keeps a Bcast (MPI_Bcast_init).
func (c *Comm) BcastInit(b Buffer, root int) (*Request, error) {
	return c.newPersistentCall(bcastOp(b, root))
}

// GatherInit keeps a Gather (MPI_Gather_init).
func (c *Comm) GatherInit(send, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(gatherOp(send, recv, root))
}

// GathervInit keeps a Gatherv (MPI_Gatherv_init).
func (c *Comm) GathervInit(send, recv Buffer, counts, displs []int, root int) (*Request, error) {
	return c.newPersistentCall(gathervOp(send, recv, counts, displs, root))
}

// ScatterInit keeps a Scatter (MPI_Scatter_init).
func (c *Comm) ScatterInit(send, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(scatterOp(send, recv, root))
}

// ScattervInit keeps a Scatterv (MPI_Scatterv_init).
func (c *Comm) ScattervInit(send Buffer, counts, displs []int, recv Buffer, root int) (*Request, error) {
	return c.newPersistentCall(scattervOp(send, counts, displs, recv, root))
}

// AllgatherInit keeps an Allgather (MPI_Allgather_init).
func (c *Comm) AllgatherInit(send, recv Buffer) (*Request, error) {
	return c.newPersistentCall(allgatherOp(send, recv))
}

// AllgathervInit keeps an Allgatherv (MPI_Allgatherv_init).
func (c *Comm) AllgathervInit(send, recv Buffer, counts, displs []int) (*Request, error) {
	return c.newPersistentCall(allgathervOp(send, recv, counts, displs))
}

// AlltoallInit keeps an Alltoall (MPI_Alltoall_init).
func (c *Comm) AlltoallInit(send, recv Buffer) (*Request, error) {
	return c.newPersistentCall(alltoallOp(send, recv))
}

// AlltoallvInit keeps an Alltoallv (MPI_Alltoallv_init).
func (c *Comm) AlltoallvInit(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) (*Request, error) {
	return c.newPersistentCall(alltoallvOp(send, sendCounts, sendDispls, recv, recvCounts, recvDispls))
}

// AlltoallwInit keeps an Alltoallw (MPI_Alltoallw_init).
func (c *Comm) AlltoallwInit(send, recv []Buffer) (*Request, error) {
	return c.newPersistentCall(alltoallwOp(send, recv))
}

// ReduceInit keeps a Reduce (MPI_Reduce_init).
func (c *Comm) ReduceInit(send, recv Buffer, op Op, root int) (*Request, error) {
	return c.newPersistentCall(reduceCollective(send, recv, op, root))
}

// AllreduceInit keeps an Allreduce (MPI_Allreduce_init).
func (c *Comm) AllreduceInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(allreduceOp(send, recv, op))
}

// ReduceScatterInit keeps a ReduceScatter (MPI_Reduce_scatter_init).
func (c *Comm) ReduceScatterInit(send, recv Buffer, counts []int, op Op) (*Request, error) {
	return c.newPersistentCall(reduceScatterOp(send, recv, counts, op))
}

// ReduceScatterBlockInit keeps a ReduceScatterBlock (MPI_Reduce_scatter_block_init).
func (c *Comm) ReduceScatterBlockInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(reduceScatterBlockOp(send, recv, op))
}

// ScanInit keeps a Scan (MPI_Scan_init).
func (c *Comm) ScanInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(scanOp(send, recv, op))
}

// ExscanInit keeps an Exscan (MPI_Exscan_init).
func (c *Comm) ExscanInit(send, recv Buffer, op Op) (*Request, error) {
	return c.newPersistentCall(exscanOp(send, recv, op))
}

// newPersistentCall makes a persistent call. Its messages have a tag of their own, so that it
// does not matter when it is begun.
func (c *Comm) newPersistentCall(o collectiveOp) (*Request, error) {
	o.form = persistent
	k, err := c.beginCall(&o)
	if err == nil {
		if err = k.checkAgreement(); err != nil {
			c.endCall(k, err)
		}
	}
	if err != nil {
		return nil, c.fail(o.callName(), o.describeRoot(), err)
	}
	k.net.tag |= persistentTag
	var broken error
	r := &Request{comm: c, op: o.callName(), persistent: true}
	r.start = func(r *Request) error {
		if err := c.checkUsable(); err != nil {
			return c.fail(o.callName(), o.describeRoot(), err)
		}
		if broken != nil {
			return c.fail(o.callName(), o.describeRoot(), fmt.Errorf("%w: it has failed before: %w", ErrRequest, broken))
		}
		r.background = backgroundCall{doneCh: make(chan struct{})}
		k.background = &r.background
		go func() {
			err := k.execute()
			if k.releaseBuffers(); err != nil {
				k.net.cancelReceives()
				broken = err // seen by who has waited
				err = c.fail(o.callName(), o.describeRoot(), err)
			}
			r.background.complete(c, err)
		}()
		return nil
	}
	r.free = func() { c.endCall(k, broken) }
	return r, nil
}

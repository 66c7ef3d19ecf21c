package mpi

import "fmt"

// Collective calls that are made again and again with the same arguments (MPI 4.1,
// 6.13). All ranks keep them in the same order, among their other collective calls;
// each is done by Start, in any order, and Wait.

// BarrierInit keeps a Barrier (MPI_Barrier_init).
func (c *Comm) BarrierInit() (*Request, error) { return c.keep(barrier()) }

// BcastInit keeps a Bcast (MPI_Bcast_init).
func (c *Comm) BcastInit(b Buffer, root int) (*Request, error) { return c.keep(bcast(b, root)) }

// GatherInit keeps a Gather (MPI_Gather_init).
func (c *Comm) GatherInit(send, recv Buffer, root int) (*Request, error) {
	return c.keep(gather(send, recv, root))
}

// GathervInit keeps a Gatherv (MPI_Gatherv_init).
func (c *Comm) GathervInit(send, recv Buffer, counts, displs []int, root int) (*Request, error) {
	return c.keep(gatherv(send, recv, counts, displs, root))
}

// ScatterInit keeps a Scatter (MPI_Scatter_init).
func (c *Comm) ScatterInit(send, recv Buffer, root int) (*Request, error) {
	return c.keep(scatter(send, recv, root))
}

// ScattervInit keeps a Scatterv (MPI_Scatterv_init).
func (c *Comm) ScattervInit(send Buffer, counts, displs []int, recv Buffer, root int) (*Request, error) {
	return c.keep(scatterv(send, counts, displs, recv, root))
}

// AllgatherInit keeps an Allgather (MPI_Allgather_init).
func (c *Comm) AllgatherInit(send, recv Buffer) (*Request, error) {
	return c.keep(allgather(send, recv))
}

// AllgathervInit keeps an Allgatherv (MPI_Allgatherv_init).
func (c *Comm) AllgathervInit(send, recv Buffer, counts, displs []int) (*Request, error) {
	return c.keep(allgatherv(send, recv, counts, displs))
}

// AlltoallInit keeps an Alltoall (MPI_Alltoall_init).
func (c *Comm) AlltoallInit(send, recv Buffer) (*Request, error) { return c.keep(alltoall(send, recv)) }

// AlltoallvInit keeps an Alltoallv (MPI_Alltoallv_init).
func (c *Comm) AlltoallvInit(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) (*Request, error) {
	return c.keep(alltoallv(send, sendCounts, sendDispls, recv, recvCounts, recvDispls))
}

// AlltoallwInit keeps an Alltoallw (MPI_Alltoallw_init).
func (c *Comm) AlltoallwInit(send, recv []Buffer) (*Request, error) {
	return c.keep(alltoallw(send, recv))
}

// ReduceInit keeps a Reduce (MPI_Reduce_init).
func (c *Comm) ReduceInit(send, recv Buffer, op Op, root int) (*Request, error) {
	return c.keep(reduce(send, recv, op, root))
}

// AllreduceInit keeps an Allreduce (MPI_Allreduce_init).
func (c *Comm) AllreduceInit(send, recv Buffer, op Op) (*Request, error) {
	return c.keep(allreduce(send, recv, op))
}

// ReduceScatterInit keeps a ReduceScatter (MPI_Reduce_scatter_init).
func (c *Comm) ReduceScatterInit(send, recv Buffer, counts []int, op Op) (*Request, error) {
	return c.keep(reduceScatter(send, recv, counts, op))
}

// ReduceScatterBlockInit keeps a ReduceScatterBlock (MPI_Reduce_scatter_block_init).
func (c *Comm) ReduceScatterBlockInit(send, recv Buffer, op Op) (*Request, error) {
	return c.keep(reduceScatterBlock(send, recv, op))
}

// ScanInit keeps a Scan (MPI_Scan_init).
func (c *Comm) ScanInit(send, recv Buffer, op Op) (*Request, error) {
	return c.keep(scan(send, recv, op))
}

// ExscanInit keeps an Exscan (MPI_Exscan_init).
func (c *Comm) ExscanInit(send, recv Buffer, op Op) (*Request, error) {
	return c.keep(exscan(send, recv, op))
}

// keep makes a persistent call. Its messages have a tag of their own, so that it
// does not matter when it is begun.
func (c *Comm) keep(o operation) (*Request, error) {
	o.form = kept
	k, err := c.take(&o)
	if err == nil {
		if err = k.check(); err != nil {
			c.give(k, err)
		}
	}
	if err != nil {
		return nil, c.fail(o.name(), o.with(), err)
	}
	k.net.tag |= keptTag
	var broken error
	r := &Request{comm: c, op: o.name(), persistent: true}
	r.start = func(r *Request) error {
		if err := c.usable(); err != nil {
			return c.fail(o.name(), o.with(), err)
		}
		if broken != nil {
			return c.fail(o.name(), o.with(), fmt.Errorf("%w: it has failed before: %w", ErrRequest, broken))
		}
		r.work = work{over: make(chan struct{})}
		k.work = &r.work
		go func() {
			err := k.again()
			if k.rest(); err != nil {
				k.net.abandon()
				broken = err // seen by who has waited
				err = c.fail(o.name(), o.with(), err)
			}
			r.work.end(c, err)
		}()
		return nil
	}
	r.free = func() { c.give(k, broken) }
	return r, nil
}

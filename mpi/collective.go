package mpi

import "github.com/softrnic/softrnic/mpi/coll"

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
func (c *Comm) Barrier() error { return c.do(operation{what: coll.Barrier}) }

// Bcast gives all ranks what is in the root's buffer (MPI_Bcast).
func (c *Comm) Bcast(b Buffer, root int) error {
	return c.do(operation{what: coll.Bcast, recv: b, root: root})
}

// Gather gives the root what all ranks send (MPI_Gather).
func (c *Comm) Gather(send, recv Buffer, root int) error {
	return c.do(operation{what: coll.Gather, send: send, recv: recv, root: root})
}

// Gatherv is Gather of pieces that differ in size (MPI_Gatherv). counts and displs
// are the root's.
func (c *Comm) Gatherv(send, recv Buffer, counts, displs []int, root int) error {
	return c.do(operation{what: coll.Gatherv, send: send, recv: recv, recvParts: parts{counts, displs}, root: root})
}

// Scatter gives each rank its piece of what the root sends (MPI_Scatter).
func (c *Comm) Scatter(send, recv Buffer, root int) error {
	return c.do(operation{what: coll.Scatter, send: send, recv: recv, root: root})
}

// Scatterv is Scatter of pieces that differ in size (MPI_Scatterv). counts and
// displs are the root's.
func (c *Comm) Scatterv(send Buffer, counts, displs []int, recv Buffer, root int) error {
	return c.do(operation{what: coll.Scatterv, send: send, sendParts: parts{counts, displs}, recv: recv, root: root})
}

// Allgather gives all ranks what all send (MPI_Allgather).
func (c *Comm) Allgather(send, recv Buffer) error {
	return c.do(operation{what: coll.Allgather, send: send, recv: recv})
}

// Allgatherv is Allgather of pieces that differ in size (MPI_Allgatherv). counts
// are the same on all ranks.
func (c *Comm) Allgatherv(send, recv Buffer, counts, displs []int) error {
	return c.do(operation{what: coll.Allgatherv, send: send, recv: recv, recvParts: parts{counts, displs}})
}

// Alltoall gives each rank its piece of what every rank sends (MPI_Alltoall).
func (c *Comm) Alltoall(send, recv Buffer) error {
	return c.do(operation{what: coll.Alltoall, send: send, recv: recv})
}

// Alltoallv is Alltoall of pieces that differ in size (MPI_Alltoallv).
func (c *Comm) Alltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) error {
	return c.do(operation{what: coll.Alltoallv, send: send, sendParts: parts{sendCounts, sendDispls}, recv: recv, recvParts: parts{recvCounts, recvDispls}})
}

// Alltoallw is Alltoall of buffers of any kind, one for each rank
// (MPI_Alltoallw). In place send is InPlace alone.
func (c *Comm) Alltoallw(send, recv []Buffer) error {
	return c.do(operation{what: coll.Alltoallw, sends: send, recvs: recv})
}

// Reduce gives the root the combination of what all ranks send (MPI_Reduce).
func (c *Comm) Reduce(send, recv Buffer, op Op, root int) error {
	return c.do(operation{what: coll.Reduce, send: send, recv: recv, op: op, root: root})
}

// Allreduce gives all ranks the combination of what all send (MPI_Allreduce).
func (c *Comm) Allreduce(send, recv Buffer, op Op) error {
	return c.do(operation{what: coll.Allreduce, send: send, recv: recv, op: op})
}

// ReduceScatter combines what all ranks send, and gives each its piece of the
// result (MPI_Reduce_scatter): so many elements, back to back. In place the result
// is at the beginning of recv, and what is behind it of no use.
func (c *Comm) ReduceScatter(send, recv Buffer, counts []int, op Op) error {
	return c.do(operation{what: coll.ReduceScatter, send: send, sendParts: parts{counts: counts}, recv: recv, op: op})
}

// ReduceScatterBlock is ReduceScatter with pieces of one size
// (MPI_Reduce_scatter_block).
func (c *Comm) ReduceScatterBlock(send, recv Buffer, op Op) error {
	return c.do(operation{what: coll.ReduceScatterBlock, send: send, recv: recv, op: op})
}

// Scan gives each rank the combination of what the ranks up to itself send
// (MPI_Scan).
func (c *Comm) Scan(send, recv Buffer, op Op) error {
	return c.do(operation{what: coll.Scan, send: send, recv: recv, op: op})
}

// Exscan is Scan without the rank's own (MPI_Exscan). Rank 0 receives nothing: its
// buffer stays as it was.
func (c *Comm) Exscan(send, recv Buffer, op Op) error {
	return c.do(operation{what: coll.Exscan, send: send, recv: recv, op: op})
}

// do makes a call and waits for it.
func (c *Comm) do(o operation) error {
	k, err := c.take(&o)
	if err == nil {
		err = k.run()
		c.give(k, err)
	}
	if err != nil {
		return c.fail(o.what.String(), o.with(), err)
	}
	return nil
}

package mpi

import "github.com/softrnic/softrnic/mpi/internal/partitioned"

// Partitioned communication (MPI 4.1, chapter 4) is a channel between two ranks: a persistent
// message whose partitions are sent one at a time, as they become ready. Sends and receives with
// the same ranks and tag match once, in the order in which they were initialized, and not with
// other messages. Over RDMA the receiver registers its memory when it starts first, and each
// partition is one write to it.
//
// The buffers of both sides must be equal in size, and consist of elements of one type. The
// numbers of partitions may differ.

// PsendInit makes a partitioned send (MPI_Psend_init). The elements of b must be a multiple of the
// partitions. Start starts the send, Pready makes its partitions ready, and Wait waits until all
// are sent. Errors about the number of partitions wrap ErrPartition. If the buffer of the receive
// has another size, both sides fail with ErrPartitionSize.
func (c *Comm) PsendInit(b Buffer, partitions, dest, tag int) (*Request, error) {
	r, err := c.messageState().PsendInit(c.partitions(), b.data, partitions, dest, tag)
	return handleOf(r), err
}

// PrecvInit makes a partitioned receive (MPI_Precv_init), without wildcards. Start starts the
// receive, Parrived reports whether a partition has arrived, and Wait waits for all of them. Errors
// are those of PsendInit.
func (c *Comm) PrecvInit(b Buffer, partitions, source, tag int) (*Request, error) {
	r, err := c.messageState().PrecvInit(c.partitions(), b.data, partitions, source, tag)
	return handleOf(r), err
}

// partitions returns the partitioned messages of the rank, nil for the null communicator.
func (c *Comm) partitions() *partitioned.Table {
	if c.isNull() {
		return nil
	}
	return c.world.Partitioned
}

// Pready makes a partition of a partitioned send ready (MPI_Pready), once after each Start. The
// program must not write to the partition until Wait has returned. A partition that is out of
// range, or ready already, is an error that wraps ErrPartition. Pready, PreadyRange, PreadyList
// and Parrived may be called concurrently.
func (r *Request) Pready(partition int) error { return r.PreadyRange(partition, partition+1) }

// PreadyRange is Pready of the partitions [from, to) (MPI_Pready_range, whose upper end is
// included).
func (r *Request) PreadyRange(from, to int) error {
	if r.core().IsNull() {
		return (*Comm)(nil).fail("partition-ready", "", errNullRequest)
	}
	return r.core().Pready(from, to)
}

// PreadyList is Pready of some partitions (MPI_Pready_list). It ends at the first error.
func (r *Request) PreadyList(partitions ...int) error {
	if err := r.PreadyRange(0, 0); err != nil {
		return err
	}
	for _, p := range partitions {
		if err := r.Pready(p); err != nil {
			return err
		}
	}
	return nil
}

// Parrived reports whether a partition of a partitioned receive has arrived (MPI_Parrived). The
// program may then read it. It returns true if the request is not active.
func (r *Request) Parrived(partition int) (bool, error) {
	if r.core().IsNull() {
		return false, (*Comm)(nil).fail("partition-arrived", "", errNullRequest)
	}
	return r.core().Parrived(partition)
}

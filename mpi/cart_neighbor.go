package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// The neighbors of a rank are two in each dimension, the lower one first (MPI 4.1, 8.6). Their
// blocks in a buffer lie in this order. The block of a neighbor beyond the edge is not written.

// NeighborAllgather sends a buffer to each neighbor (MPI_Neighbor_allgather).
func (g Cart) NeighborAllgather(send, recv Buffer) error {
	return g.runBlocking(g.neighborOp(coll.Allgather, send, recv))
}

// NeighborAlltoall sends a block to each neighbor (MPI_Neighbor_alltoall).
func (g Cart) NeighborAlltoall(send, recv Buffer) error {
	return g.runBlocking(g.neighborOp(coll.Alltoall, send, recv))
}

// IneighborAllgather starts a NeighborAllgather (MPI_Ineighbor_allgather).
func (g Cart) IneighborAllgather(send, recv Buffer) (*Request, error) {
	return g.startNonblocking(g.neighborOp(coll.Allgather, send, recv))
}

// IneighborAlltoall starts a NeighborAlltoall (MPI_Ineighbor_alltoall).
func (g Cart) IneighborAlltoall(send, recv Buffer) (*Request, error) {
	return g.startNonblocking(g.neighborOp(coll.Alltoall, send, recv))
}

// NeighborAllgatherInit makes a persistent NeighborAllgather (MPI_Neighbor_allgather_init).
func (g Cart) NeighborAllgatherInit(send, recv Buffer) (*Request, error) {
	return g.newPersistentCall(g.neighborOp(coll.Allgather, send, recv))
}

// NeighborAlltoallInit makes a persistent NeighborAlltoall (MPI_Neighbor_alltoall_init).
func (g Cart) NeighborAlltoallInit(send, recv Buffer) (*Request, error) {
	return g.newPersistentCall(g.neighborOp(coll.Alltoall, send, recv))
}

func (g Cart) neighborOp(collective coll.Collective, send, recv Buffer) collectiveOp {
	o := collectiveOp{collective: collective, grid: g.grid, send: send.data, recv: recv.data}
	if g.grid == nil {
		o.grid, o.argErr = &grid{}, errNullComm
	}
	return o
}

// validateNeighbors checks the arguments of a neighborhood call.
func (g *grid) validateNeighbors(o *collectiveOp) error {
	for receives, b := range []datatype.Buffer{o.send, o.recv} {
		if err := b.Check(receives == 1); err != nil {
			return err
		}
	}
	n := 2 * len(g.dims)
	out, in := o.send.Count(), o.recv.Count()
	if o.collective == coll.Allgather {
		out *= n
	}
	if out != in || n > 0 && in%n != 0 {
		return fmt.Errorf("%w: %d elements to send, %d to receive: want equal blocks for %d neighbors", ErrCount, out, in, n)
	}
	if in == 0 {
		return nil
	}
	if err := checkSelfSignatures(o.send.Slice(0, 1).Signature(), o.recv.Slice(0, 1).Signature()); err != nil {
		return err
	}
	if buffersOverlap(o.send, o.recv) {
		return fmt.Errorf("%w: send and receive buffers overlap", ErrBuffer)
	}
	return nil
}

// exchangeBlocks executes the call on packed memory. In a dimension of one or two points both
// neighbors are the same rank: the block that it sends to its lower neighbor, which comes
// first, is from our upper one.
func (g *grid) exchangeBlocks(n *callNet, collective coll.Collective, send, recv []byte) error {
	if len(recv) == 0 {
		return nil
	}
	size := len(recv) / (2 * len(g.dims))
	piece := func(i int) []byte { return recv[i*size:][:size:size] }
	ours := func(i int) []byte {
		if collective == coll.Allgather {
			return send
		}
		return send[i*size:][:size:size]
	}
	var requests []coll.Request
	for d := range g.dims {
		before, behind := g.shiftRanks(d, 1)
		if behind != ProcNull {
			requests = append(requests, n.Irecv(behind, piece(2*d+1)))
		}
		if before != ProcNull {
			requests = append(requests, n.Irecv(before, piece(2*d)))
		}
	}
	for d := range g.dims {
		before, behind := g.shiftRanks(d, 1)
		if before != ProcNull {
			requests = append(requests, n.Isend(before, ours(2*d)))
		}
		if behind != ProcNull {
			requests = append(requests, n.Isend(behind, ours(2*d+1)))
		}
	}
	return n.Wait(requests...)
}

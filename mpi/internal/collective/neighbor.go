package collective

import (
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/topology"
)

// NeighborAllgatherOp sends a buffer to each neighbor. A nil grid is that of the null communicator.
func NeighborAllgatherOp(g *topology.Grid, send, recv datatype.Buffer) Op {
	return newNeighborOp(coll.Allgather, g, send, recv)
}

// NeighborAlltoallOp sends a block to each neighbor. A nil grid is that of the null communicator.
func NeighborAlltoallOp(g *topology.Grid, send, recv datatype.Buffer) Op {
	return newNeighborOp(coll.Alltoall, g, send, recv)
}

func newNeighborOp(like coll.Collective, g *topology.Grid, send, recv datatype.Buffer) Op {
	o := Op{collective: like, grid: g, send: send, recv: recv}
	if g == nil {
		o.grid, o.argErr = &topology.Grid{}, comm.ErrNull
	}
	return o
}

// exchangeBlocks executes the call on packed memory. In a dimension of one or two points both
// neighbors are the same rank: the block that it sends to its lower neighbor, which comes
// first, is from our upper one.
func (n *callNet) exchangeBlocks(g *topology.Grid, like coll.Collective, send, recv []byte) error {
	if len(recv) == 0 {
		return nil
	}
	size := len(recv) / (2 * len(g.Dims))
	piece := func(i int) []byte { return recv[i*size:][:size:size] }
	ours := func(i int) []byte {
		if like == coll.Allgather {
			return send
		}
		return send[i*size:][:size:size]
	}
	var requests []coll.Request
	for d := range g.Dims {
		before, behind := g.Shift(n.comm.Rank, d, 1)
		if behind != comm.ProcNull {
			requests = append(requests, n.Irecv(behind, piece(2*d+1)))
		}
		if before != comm.ProcNull {
			requests = append(requests, n.Irecv(before, piece(2*d)))
		}
	}
	for d := range g.Dims {
		before, behind := g.Shift(n.comm.Rank, d, 1)
		if before != comm.ProcNull {
			requests = append(requests, n.Isend(before, ours(2*d)))
		}
		if behind != comm.ProcNull {
			requests = append(requests, n.Isend(behind, ours(2*d+1)))
		}
	}
	return n.Wait(requests...)
}

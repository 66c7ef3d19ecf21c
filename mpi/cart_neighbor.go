package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// grid is a Cartesian topology. Its ranks are in row-major order.
type grid struct {
	rank    int // of this process
	dims    []int
	periods []bool // by dimension: the last point is adjacent to the first
}

// coordsOf returns the coordinates of a rank.
func (g *grid) coordsOf(rank int) []int {
	at := make([]int, len(g.dims))
	for i := len(at) - 1; i >= 0; i-- {
		at[i] = rank % g.dims[i]
		rank /= g.dims[i]
	}
	return at
}

// rankOf returns the rank at the given coordinates, ProcNull outside of the grid.
func (g *grid) rankOf(coords []int) (rank int) {
	for i, x := range coords {
		n := g.dims[i]
		if g.periods[i] {
			x = (x%n + n) % n
		}
		if x < 0 || x >= n {
			return comm.ProcNull
		}
		rank = rank*n + x
	}
	return rank
}

// shiftRanks returns the source and the destination of this rank when all ranks send by ranks
// along a dimension, ProcNull beyond the edge.
func (g *grid) shiftRanks(dim, by int) (source, dest int) {
	at := g.coordsOf(g.rank)
	x := at[dim]
	at[dim] = x + by
	dest = g.rankOf(at)
	at[dim] = x - by
	return g.rankOf(at), dest
}

// neighborOp returns a neighborhood call. g is nil for the null communicator.
func neighborOp(collective coll.Collective, g *grid, send, recv Buffer) collectiveOp {
	o := collectiveOp{collective: collective, grid: g, send: send.data, recv: recv.data}
	if g == nil {
		o.grid, o.argErr = &grid{}, comm.ErrNull
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
		return fmt.Errorf("%w: %d elements to send, %d to receive: want equal blocks for %d neighbors", datatype.ErrCount, out, in, n)
	}
	if in == 0 {
		return nil
	}
	if err := checkSelfSignatures(o.send.Slice(0, 1).Signature(), o.recv.Slice(0, 1).Signature()); err != nil {
		return err
	}
	if buffersOverlap(o.send, o.recv) {
		return fmt.Errorf("%w: send and receive buffers overlap", datatype.ErrLayout)
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
		if behind != comm.ProcNull {
			requests = append(requests, n.Irecv(behind, piece(2*d+1)))
		}
		if before != comm.ProcNull {
			requests = append(requests, n.Irecv(before, piece(2*d)))
		}
	}
	for d := range g.dims {
		before, behind := g.shiftRanks(d, 1)
		if before != comm.ProcNull {
			requests = append(requests, n.Isend(before, ours(2*d)))
		}
		if behind != comm.ProcNull {
			requests = append(requests, n.Isend(behind, ours(2*d+1)))
		}
	}
	return n.Wait(requests...)
}

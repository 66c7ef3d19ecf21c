package mpi

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/topology"
)

// Cart is a communicator with a Cartesian topology. The ranks are in row-major order: the last
// coordinate varies fastest (MPI 4.1, chapter 8).
//
// Cart is a handle, passed by value. The zero Cart is MPI's null handle: its Comm is nil and
// its calls return ErrComm.
type Cart struct {
	*Comm
	grid *topology.Grid
}

func newCart(c *Comm, dims []int, periods []bool) Cart {
	return Cart{c, &topology.Grid{Dims: dims, Periods: periods}}
}

// DimsCreate returns the dimensions of a grid of the given number of ranks (MPI_Dims_create).
// It fills in the dimensions that are 0, as equal as possible, in decreasing order.
func DimsCreate(ranks int, dims ...int) ([]int, error) {
	return topology.FillDims(ranks, dims)
}

// CartCreate makes a communicator with a Cartesian topology (MPI_Cart_create). Its members are
// the first ranks of c, in their order, as many as the grid has points; the other ranks get
// the zero Cart. In a periodic dimension the last point is adjacent to the first. All ranks give the same
// arguments. reorder permits another order, which is not used.
func (c *Comm) CartCreate(dims []int, periods []bool, reorder bool) (Cart, error) {
	const op = "cart-create"
	if c.isNull() {
		return Cart{}, c.fail(op, "", errNullComm)
	}
	points := 1
	for _, d := range dims {
		if d < 1 || points > c.base.Size/d {
			return Cart{}, c.rejectCollective(op, fmt.Errorf("%w: dimensions %v for %d ranks", ErrGrid, dims, c.base.Size))
		}
		points *= d
	}
	if len(periods) != len(dims) {
		return Cart{}, c.rejectCollective(op, fmt.Errorf("%w: %d periods for %d dimensions", ErrGrid, len(periods), len(dims)))
	}
	members := make([]int, points)
	for i := range members {
		members[i] = i
	}
	d, err := c.deriveComm(op, c.Name()+".cart", members, dims, periods)
	if d == nil {
		return Cart{}, err
	}
	return newCart(d, slices.Clone(dims), slices.Clone(periods)), nil
}

// Dup is Comm.Dup with the same grid.
func (g Cart) Dup() (Cart, error) {
	if g.grid == nil {
		return Cart{}, g.fail("dup", "", errNullComm)
	}
	c, err := g.Comm.Dup()
	if err != nil {
		return Cart{}, err
	}
	return newCart(c, g.grid.Dims, g.grid.Periods), nil
}

// Dims returns the number of points in each dimension (MPI_Cart_get), nil for the null
// communicator.
func (g Cart) Dims() []int {
	if g.grid == nil {
		return nil
	}
	return slices.Clone(g.grid.Dims)
}

// Periods reports for each dimension whether it is periodic (MPI_Cart_get).
func (g Cart) Periods() []bool {
	if g.grid == nil {
		return nil
	}
	return slices.Clone(g.grid.Periods)
}

// Coords returns the coordinates of a rank (MPI_Cart_coords).
func (g Cart) Coords(rank int) ([]int, error) {
	if g.grid == nil {
		return nil, g.fail("coords", "", errNullComm)
	}
	if rank < 0 || rank >= g.base.Size {
		return nil, g.fail("coords", "", fmt.Errorf("%w: %d, want [0, %d)", ErrRank, rank, g.base.Size))
	}
	return g.grid.CoordsOf(rank), nil
}

// RankOf returns the rank at the given coordinates (MPI_Cart_rank). In a periodic dimension a
// coordinate may be any number.
func (g Cart) RankOf(coords ...int) (int, error) {
	if g.grid == nil {
		return Undefined, g.fail("rank-of", "", errNullComm)
	}
	rank := Undefined
	if len(coords) == len(g.grid.Dims) {
		rank = g.grid.RankOf(coords)
	}
	if rank < 0 {
		return Undefined, g.fail("rank-of", "", fmt.Errorf("%w: grid %v has no point %v", ErrGrid, g.grid.Dims, coords))
	}
	return rank, nil
}

// Shift returns the source and the destination of this rank when all ranks send by ranks along
// a dimension (MPI_Cart_shift), ProcNull beyond the edge.
func (g Cart) Shift(dim, by int) (source, dest int, err error) {
	if g.grid == nil {
		return Undefined, Undefined, g.fail("shift", "", errNullComm)
	}
	if dim < 0 || dim >= len(g.grid.Dims) {
		return Undefined, Undefined, g.fail("shift", "", fmt.Errorf("%w: dimension %d, want [0, %d)", ErrGrid, dim, len(g.grid.Dims)))
	}
	source, dest = g.grid.Shift(g.base.Rank, dim, by)
	return source, dest, nil
}

// Sub partitions the grid into grids of the remaining dimensions (MPI_Cart_sub) and returns the
// one that contains this rank.
func (g Cart) Sub(remain []bool) (Cart, error) {
	const op = "cart-sub"
	if g.grid == nil {
		return Cart{}, g.fail(op, "", errNullComm)
	}
	if len(remain) != len(g.grid.Dims) {
		return Cart{}, g.rejectCollective(op, fmt.Errorf("%w: remain has %d entries for %d dimensions", ErrGrid, len(remain), len(g.grid.Dims)))
	}
	here := g.grid.CoordsOf(g.base.Rank)
	var members []int
	for r := range g.base.Size {
		at, same := g.grid.CoordsOf(r), true
		for i := range at {
			same = same && (remain[i] || at[i] == here[i])
		}
		if same {
			members = append(members, r)
		}
	}
	c, err := g.deriveComm(op, g.Name()+".sub", members, remain)
	if err != nil {
		return Cart{}, err
	}
	var dims []int
	var periods []bool
	for i, stays := range remain {
		if stays {
			dims, periods = append(dims, g.grid.Dims[i]), append(periods, g.grid.Periods[i])
		}
	}
	return newCart(c, dims, periods), nil
}

// The neighbors of a rank are two in each dimension, the lower one first (MPI 4.1, 8.6). Their
// blocks in a buffer lie in this order. The block of a neighbor beyond the edge is not written.

// NeighborAllgather sends a buffer to each neighbor (MPI_Neighbor_allgather).
func (g Cart) NeighborAllgather(send, recv Buffer) error {
	return g.runBlocking(collective.NeighborAllgatherOp(g.grid, send.data, recv.data))
}

// NeighborAlltoall sends a block to each neighbor (MPI_Neighbor_alltoall).
func (g Cart) NeighborAlltoall(send, recv Buffer) error {
	return g.runBlocking(collective.NeighborAlltoallOp(g.grid, send.data, recv.data))
}

// IneighborAllgather starts a NeighborAllgather (MPI_Ineighbor_allgather).
func (g Cart) IneighborAllgather(send, recv Buffer) (*Request, error) {
	return g.startNonblocking(collective.NeighborAllgatherOp(g.grid, send.data, recv.data))
}

// IneighborAlltoall starts a NeighborAlltoall (MPI_Ineighbor_alltoall).
func (g Cart) IneighborAlltoall(send, recv Buffer) (*Request, error) {
	return g.startNonblocking(collective.NeighborAlltoallOp(g.grid, send.data, recv.data))
}

// NeighborAllgatherInit makes a persistent NeighborAllgather (MPI_Neighbor_allgather_init).
func (g Cart) NeighborAllgatherInit(send, recv Buffer) (*Request, error) {
	return g.newPersistentCall(collective.NeighborAllgatherOp(g.grid, send.data, recv.data))
}

// NeighborAlltoallInit makes a persistent NeighborAlltoall (MPI_Neighbor_alltoall_init).
func (g Cart) NeighborAlltoallInit(send, recv Buffer) (*Request, error) {
	return g.newPersistentCall(collective.NeighborAlltoallOp(g.grid, send.data, recv.data))
}

// Package topology computes Cartesian topologies (MPI 4.1, chapter 8): the dimensions of a grid of
// ranks, and the coordinates and neighbors of a rank.
//
//	dims, err := topology.FillDims(6, []int{0, 0}) // 3 x 2
//	g := topology.Grid{Dims: dims, Periods: []bool{true, false}}
//	g.CoordsOf(5)                                  // [2 1]
//	source, dest := g.Shift(5, 0, 1)               // 3 and 1: the first dimension is a ring
package topology

import (
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/comm"
)

// ErrGrid is the error of dimensions that the ranks do not fill.
var ErrGrid = errors.New("mpi: invalid topology") // MPI_ERR_TOPOLOGY

// Grid is a Cartesian topology. Its ranks are in row-major order: the last coordinate varies
// fastest.
type Grid struct {
	Dims    []int  // number of points in each dimension
	Periods []bool // by dimension: the last point is adjacent to the first
}

// CoordsOf returns the coordinates of a rank.
func (g *Grid) CoordsOf(rank int) []int {
	at := make([]int, len(g.Dims))
	for i := len(at) - 1; i >= 0; i-- {
		at[i] = rank % g.Dims[i]
		rank /= g.Dims[i]
	}
	return at
}

// RankOf returns the rank at the given coordinates, ProcNull outside of the grid.
func (g *Grid) RankOf(coords []int) (rank int) {
	for i, x := range coords {
		n := g.Dims[i]
		if g.Periods[i] {
			x = (x%n + n) % n
		}
		if x < 0 || x >= n {
			return comm.ProcNull
		}
		rank = rank*n + x
	}
	return rank
}

// Shift returns the source and the destination of a rank when all ranks send by ranks along a
// dimension, ProcNull beyond the edge.
func (g *Grid) Shift(rank, dim, by int) (source, dest int) {
	at := g.CoordsOf(rank)
	x := at[dim]
	at[dim] = x + by
	dest = g.RankOf(at)
	at[dim] = x - by
	return g.RankOf(at), dest
}

// FillDims returns the dimensions of a grid of the given number of ranks. It fills in the
// dimensions that are 0, as equal as possible, in decreasing order.
func FillDims(ranks int, dims []int) ([]int, error) {
	all, left, free := slices.Clone(dims), ranks, 0
	for _, d := range dims {
		switch {
		case d < 0:
			return nil, fmt.Errorf("%w: dimension %d is negative", ErrGrid, d)
		case d == 0:
			free++
		case left%d != 0:
			return nil, fmt.Errorf("%w: %d ranks do not fill dimensions %v", ErrGrid, ranks, dims)
		default:
			left /= d
		}
	}
	if ranks > maxPoints {
		return nil, fmt.Errorf("%w: %d ranks, limit %d", ErrGrid, ranks, maxPoints)
	}
	if ranks < 1 || free == 0 && left != 1 {
		return nil, fmt.Errorf("%w: %d ranks do not fill dimensions %v", ErrGrid, ranks, dims)
	}
	found := splitFactors(left, free, listDivisors(left))
	for i := range all {
		if all[i] == 0 {
			all[i], found = found[0], found[1:]
		}
	}
	return all, nil
}

// maxPoints is the maximum number of ranks of a grid: MPI counts them in a C int.
const maxPoints = 1<<31 - 1

// listDivisors returns the divisors of n in increasing order.
func listDivisors(n int) (list []int) {
	for d := 1; d*d <= n; d++ {
		if n%d == 0 {
			list = append(list, d)
			if d*d < n {
				list = append(list, n/d)
			}
		}
	}
	slices.Sort(list)
	return list
}

// splitFactors returns k factors of n in decreasing order, with the smallest possible greatest
// factor. among lists the divisors of a multiple of n.
func splitFactors(n, k int, among []int) []int {
	if k == 0 {
		return nil
	}
	for _, d := range among {
		if n%d != 0 || !powerReaches(d, k, n) {
			continue
		}
		if rest := splitFactors(n/d, k-1, among); k == 1 || rest[0] <= d {
			return append([]int{d}, rest...)
		}
	}
	return nil
}

// powerReaches reports whether d to the power of k is at least n.
func powerReaches(d, k, n int) bool {
	for p := 1; k > 0; k-- {
		if p *= d; p >= n {
			return true
		}
	}
	return false
}

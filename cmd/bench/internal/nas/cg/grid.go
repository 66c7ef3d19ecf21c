package cg

import (
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
)

// A gridPosition is the position of a rank in the grid, and its part of n rows and columns.
//
//	 columns of ranks          The rank in row i and column j has block (i, j).
//	   0   1   2   3           With twice as many columns as rows a block is twice
//	+---+---+---+---+          as high as wide; then of a sum along the row even
//	| 0 | 1 | 2 | 3 | row 0    columns take the upper half, and odd ones the lower.
//	+---+---+---+---+
//	| 4 | 5 | 6 | 7 | row 1
//	+---+---+---+---+
type gridPosition struct {
	height, width int // number of ranks in a column and in a row
	row, col      int
	rows, cols    span // of the matrix; cols also of vectors
	heldRows      span // rows of a sum that this rank has, as many as one rank has columns
	transposed    int  // rank for the transposition: it has the rows of our columns and needs heldRows
}

// newGridPosition returns the position of a rank among size ranks, where size is a power of
// two.
func newGridPosition(rank, size, n int) gridPosition {
	p := gridPosition{height: 1, width: 1}
	for p.height*p.width < size {
		if p.width == p.height {
			p.width *= 2
		} else {
			p.height *= 2
		}
	}
	p.row, p.col = rank/p.width, rank%p.width
	part := func(i int) span { return span{i * n / p.width, (i + 1) * n / p.width} }
	ratio := p.width / p.height
	held := p.row*ratio + p.col%ratio
	p.cols, p.heldRows = part(p.col), part(held)
	p.rows = span{part(p.row * ratio).from, part((p.row+1)*ratio - 1).to}
	p.transposed = p.col/ratio*p.width + held
	return p
}

// A grid is a gridPosition with communication. All memory is allocated before the iteration.
type grid struct {
	gridPosition
	comm      *mpi.Comm
	w         []float64 // product of this rank's rows, then the sum over the row of ranks
	ownHalf   []float64 // part of w with heldRows
	otherHalf []float64 // part of the neighbour, if any
	in        []float64 // received vectors
}

func newGrid(c *mpi.Comm, n int) (*grid, error) {
	if err := nas.CheckPowerOfTwo(c.Size()); err != nil {
		return nil, err
	}
	g := &grid{gridPosition: newGridPosition(c.Rank(), c.Size(), n), comm: c}
	g.w, g.in = make([]float64, g.rows.length()), make([]float64, g.rows.length()+2)
	from, to := g.gridPosition.heldRows.from-g.rows.from, g.gridPosition.heldRows.to-g.rows.from
	g.ownHalf = g.w[from:to]
	if g.otherHalf = g.w[to:]; from > 0 {
		g.otherHalf = g.w[:from]
	}
	return g, nil
}

// Tags of messages.
const (
	tagSum = iota + 1
	tagTranspose
)

// multiplyMatrix sets q to the product of the matrix and p.
func (g *grid) multiplyMatrix(m *matrix, q, p []float64) error {
	m.multiplyVector(g.w, p)
	distance := 1
	if g.width > g.height {
		if err := g.exchangeAdd(1, g.otherHalf, g.ownHalf); err != nil {
			return err
		}
		distance = 2
	}
	if err := g.sumVectors(distance, g.ownHalf); err != nil {
		return err
	}
	if g.transposed == g.comm.Rank() {
		copy(q, g.ownHalf)
		return nil
	}
	_, err := g.comm.Sendrecv(mpi.Of(g.ownHalf), g.transposed, tagTranspose, mpi.Of(q), g.transposed, tagTranspose)
	return err
}

// sumVectors adds the vectors x of the ranks of the row by recursive doubling, starting at the
// given distance. The results of all ranks are bitwise equal.
func (g *grid) sumVectors(distance int, x []float64) error {
	for ; distance < g.width; distance *= 2 {
		if err := g.exchangeAdd(distance, x, x); err != nil {
			return err
		}
	}
	return nil
}

// exchangeAdd sends out to the rank at a distance in the row, and adds the vector received from
// it to x.
func (g *grid) exchangeAdd(distance int, out, x []float64) error {
	partner := g.comm.Rank() ^ distance // distance is less than a row
	in := g.in[:len(x)]
	if _, err := g.comm.Sendrecv(mpi.Of(out), partner, tagSum, mpi.Of(in), partner, tagSum); err != nil {
		return err
	}
	for i, v := range in {
		x[i] += v
	}
	return nil
}

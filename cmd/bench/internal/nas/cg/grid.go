package cg

import (
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
)

// gridPosition is where a rank is in the grid, and what it has of n rows and columns.
//
//	 columns of ranks          The rank in row i and column j has block (i, j).
//	   0   1   2   3           With twice as many columns as rows a block is twice
//	+---+---+---+---+          as high as wide; then of a sum along the row even
//	| 0 | 1 | 2 | 3 | row 0    columns take the upper half, and odd ones the lower.
//	+---+---+---+---+
//	| 4 | 5 | 6 | 7 | row 1
//	+---+---+---+---+
type gridPosition struct {
	height, width int // ranks in a column, in a row
	row, col      int
	rows, cols    span // of the matrix; cols also of vectors
	heldRows      span // the rows that we have of a sum: as many as some rank has columns
	transposed    int  // the rank that holds our columns' rows, and wants those we hold
}

// newGridPosition is the place of a rank among size, a power of two.
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
	piece := func(i int) span { return span{i * n / p.width, (i + 1) * n / p.width} }
	ratio := p.width / p.height
	holds := p.row*ratio + p.col%ratio
	p.cols, p.heldRows = piece(p.col), piece(holds)
	p.rows = span{piece(p.row * ratio).from, piece((p.row+1)*ratio - 1).to}
	p.transposed = p.col/ratio*p.width + holds
	return p
}

// grid is a place with the means to talk to the others. Everything is allocated
// before the iteration begins.
type grid struct {
	gridPosition
	comm      *mpi.Comm
	w         []float64 // a product of our rows, then a sum of such
	ownHalf   []float64 // the part of w that we hold
	otherHalf []float64 // the part that our neighbour holds, if any
	in        []float64 // what comes from others
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

// multiplyMatrix makes q the product of the matrix and p.
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

// sumVectors adds up the vectors of the ranks of our row: from this distance on, by
// recursive doubling. All get the same, to the last bit.
func (g *grid) sumVectors(distance int, x []float64) error {
	for ; distance < g.width; distance *= 2 {
		if err := g.exchangeAdd(distance, x, x); err != nil {
			return err
		}
	}
	return nil
}

// exchangeAdd sends out to the rank at a distance in our row, and adds what comes
// from it to x.
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

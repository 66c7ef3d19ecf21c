package cg

import (
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
)

// place is where a rank is in the grid, and what it has of n rows and columns.
//
//	 columns of ranks          The rank in row i and column j has block (i, j).
//	   0   1   2   3           With twice as many columns as rows a block is twice
//	+---+---+---+---+          as high as wide; then of a sum along the row even
//	| 0 | 1 | 2 | 3 | row 0    columns take the upper half, and odd ones the lower.
//	+---+---+---+---+
//	| 4 | 5 | 6 | 7 | row 1
//	+---+---+---+---+
type place struct {
	height, width int // ranks in a column, in a row
	row, col      int
	rows, cols    span // of the matrix; cols also of vectors
	held          span // the rows that we have of a sum: as many as some rank has columns
	transposed    int  // the rank that holds our columns' rows, and wants those we hold
}

// newPlace is the place of a rank among size, a power of two.
func newPlace(rank, size, n int) place {
	p := place{height: 1, width: 1}
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
	p.cols, p.held = piece(p.col), piece(holds)
	p.rows = span{piece(p.row * ratio).from, piece((p.row+1)*ratio - 1).to}
	p.transposed = p.col/ratio*p.width + holds
	return p
}

// grid is a place with the means to talk to the others. Everything is allocated
// before the iteration begins.
type grid struct {
	place
	comm *mpi.Comm
	w    []float64 // a product of our rows, then a sum of such
	held []float64 // the part of w that we hold
	rest []float64 // the part that our neighbour holds, if any
	in   []float64 // what comes from others
}

func newGrid(c *mpi.Comm, n int) (*grid, error) {
	if err := nas.PowerOfTwo(c.Size()); err != nil {
		return nil, err
	}
	g := &grid{place: newPlace(c.Rank(), c.Size(), n), comm: c}
	g.w, g.in = make([]float64, g.rows.len()), make([]float64, g.rows.len()+2)
	from, to := g.place.held.from-g.rows.from, g.place.held.to-g.rows.from
	g.held = g.w[from:to]
	if g.rest = g.w[to:]; from > 0 {
		g.rest = g.w[:from]
	}
	return g, nil
}

// Tags of messages.
const (
	tagSum = iota + 1
	tagTranspose
)

// product makes q the product of the matrix and p.
func (g *grid) product(m *matrix, q, p []float64) error {
	m.multiply(g.w, p)
	distance := 1
	if g.width > g.height {
		if err := g.exchange(1, g.rest, g.held); err != nil {
			return err
		}
		distance = 2
	}
	if err := g.sum(distance, g.held); err != nil {
		return err
	}
	if g.transposed == g.comm.Rank() {
		copy(q, g.held)
		return nil
	}
	_, err := g.comm.Sendrecv(mpi.Of(g.held), g.transposed, tagTranspose, mpi.Of(q), g.transposed, tagTranspose)
	return err
}

// sum adds up the vectors of the ranks of our row: from this distance on, by
// recursive doubling. All get the same, to the last bit.
func (g *grid) sum(distance int, x []float64) error {
	for ; distance < g.width; distance *= 2 {
		if err := g.exchange(distance, x, x); err != nil {
			return err
		}
	}
	return nil
}

// exchange sends out to the rank at a distance in our row, and adds what comes
// from it to x.
func (g *grid) exchange(distance int, out, x []float64) error {
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

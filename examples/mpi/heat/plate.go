package main

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
)

// plate is a rank's rectangle of the plate: rows x cols points with a halo of one point, which
// holds points of the neighbors or the edge of the plate.
type plate struct {
	grid       mpi.Cart
	points     int // along each edge of the plate
	rows, cols int
	stride     int // between rows
	now, next  []float64
}

const (
	hot  = 100.0 // temperature of the upper edge; that of the other edges is 0
	rate = 0.2   // share of a temperature difference that a step equalizes; stable up to 0.25
)

func newPlate(c *mpi.Comm, points int) (*plate, error) {
	dims, err := mpi.DimsCreate(c.Size(), 0, 0)
	if err != nil {
		return nil, err
	}
	if points < dims[0] { // the greatest
		return nil, fmt.Errorf("%d points along an edge are too few for %d ranks", points, dims[0])
	}
	grid, err := c.CartCreate(dims, []bool{false, false}, false)
	if err != nil {
		return nil, err
	}
	p := &plate{grid: grid, points: points}
	_, _, p.rows, p.cols = p.subRectangle(grid.Rank())
	p.stride = p.cols + 2
	p.now, p.next = make([]float64, (p.rows+2)*p.stride), make([]float64, (p.rows+2)*p.stride)
	if at, _ := grid.Coords(grid.Rank()); at[0] == 0 {
		for j := range p.stride {
			p.now[j], p.next[j] = hot, hot
		}
	}
	return p, nil
}

// subRectangle returns the origin and the size of a rank's rectangle.
func (p *plate) subRectangle(rank int) (row, col, rows, cols int) {
	at, _ := p.grid.Coords(rank)
	dims := p.grid.Dims()
	cut := func(dim, i int) int { return i * p.points / dims[dim] }
	row, col = cut(0, at[0]), cut(1, at[1])
	return row, col, cut(0, at[0]+1) - row, cut(1, at[1]+1) - col
}

// advance computes one time step.
func (p *plate) advance() error {
	if err := p.exchangeBorders(); err != nil {
		return err
	}
	for i := 1; i <= p.rows; i++ {
		up, row, down := p.now[(i-1)*p.stride:i*p.stride], p.now[i*p.stride:(i+1)*p.stride], p.now[(i+1)*p.stride:(i+2)*p.stride]
		next := p.next[i*p.stride : (i+1)*p.stride]
		for j := 1; j <= p.cols; j++ {
			next[j] = row[j] + rate*(up[j]+down[j]+row[j-1]+row[j+1]-4*row[j])
		}
	}
	p.now, p.next = p.next, p.now
	return nil
}

// exchangeBorders sends the outermost points to the neighbors and receives the halo. Beyond the
// edge of the plate the neighbor is ProcNull, and no message is sent.
func (p *plate) exchangeBorders() error {
	row := func(i int) mpi.Buffer { return mpi.Of(p.now[i*p.stride+1:][:p.cols]) }
	col := func(j int) mpi.Buffer { return mpi.Strided(p.now[p.stride+j:], p.rows, 1, p.stride) }
	for _, to := range []struct {
		dim, by int
		out, in mpi.Buffer
	}{
		{0, -1, row(1), row(p.rows + 1)}, // all send upwards and receive from below
		{0, +1, row(p.rows), row(0)},
		{1, -1, col(1), col(p.cols + 1)},
		{1, +1, col(p.cols), col(0)},
	} {
		source, dest, err := p.grid.Shift(to.dim, to.by)
		if err != nil {
			return err
		}
		if _, err := p.grid.Sendrecv(to.out, dest, 0, to.in, source, 0); err != nil {
			return err
		}
	}
	return nil
}

// gatherPlate returns the whole plate at rank 0. Strided layouts describe the rectangle at both
// sides: within its halo and within the plate.
func (p *plate) gatherPlate() ([]float64, error) {
	ours := mpi.Strided(p.now[p.stride+1:], p.rows, p.cols, p.stride)
	send, err := p.grid.Isend(ours, 0, 1)
	if err != nil {
		return nil, err
	}
	var whole []float64
	if p.grid.Rank() == 0 {
		whole = make([]float64, p.points*p.points)
		for rank := range p.grid.Size() {
			row, col, rows, cols := p.subRectangle(rank)
			theirs := mpi.Strided(whole[row*p.points+col:], rows, cols, p.points)
			if _, err := p.grid.Recv(theirs, rank, 1); err != nil {
				return nil, err
			}
		}
	}
	_, err = send.Wait()
	return whole, err
}

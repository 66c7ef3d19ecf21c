// Package cg is CG of the NAS Parallel Benchmarks, "conjugate gradient": the
// smallest eigenvalue of a large sparse matrix is estimated by inverse iteration,
// whose systems are solved by 25 steps of the conjugate gradient method. Its performance
// depends on many medium-sized messages and on the latency of sums.
//
//	report, err := cg.Run(world.Comm, nas.S) // on 1, 2, 4, 8, 16, ... ranks
//
// The ranks are a grid with as many columns as rows, or twice as many, and each has
// a block of the matrix. A vector is distributed like the columns, and each column of
// ranks has a copy of its part:
//
//	matrix.go    generation of a block of the matrix
//	grid.go      layout of ranks; the product of matrix and vector: sums along the row
//	             of ranks, then an exchange with the rank that is transposed
//	cg.go        the iteration, and Run
package cg

import (
	"fmt"
	"math"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
)

// A problem is a class and its published eigenvalue.
type problem struct {
	rows   int
	nonzer int // number of nonzeros of a random vector
	steps  int // steps of the inverse iteration
	shift  float64
	zeta   float64
}

var problems = map[nas.Class]problem{
	nas.S: {1400, 7, 15, 10, 8.5971775078648},
	nas.W: {7000, 8, 15, 12, 10.362595087124},
	nas.A: {14000, 11, 15, 20, 17.130235054029},
	nas.B: {75000, 13, 75, 60, 22.712745482631},
	nas.C: {150000, 15, 75, 110, 28.973605592845},
}

const (
	inner     = 25 // steps of the conjugate gradient method
	tolerance = 1e-10
)

// Run runs the benchmark. It is collective: all ranks call it, their number is a power of two,
// and all receive the report.
func Run(c *mpi.Comm, class nas.Class) (nas.Report, error) {
	p, ok := problems[class]
	if !ok {
		return nas.Report{}, fmt.Errorf("class %v: %w", class, nas.ErrClass)
	}
	s, err := newSolver(c, p)
	if err != nil {
		return nas.Report{}, err
	}
	if _, err := s.iterateOnce(); err != nil { // an unmeasured step, to establish all connections
		return nas.Report{}, err
	}
	s.resetGuess()
	if err := c.Barrier(); err != nil {
		return nas.Report{}, err
	}
	zeta, start := 0.0, time.Now()
	for range p.steps {
		if zeta, err = s.iterateOnce(); err != nil {
			return nas.Report{}, err
		}
	}
	slowest, err := nas.MaxTime(c, time.Since(start))
	return nas.Report{
		Benchmark: "CG", Class: class, Size: int64(p.rows), Iterations: p.steps, Processes: c.Size(), Time: slowest,
		Operations: p.opCount(), Operation: "floating point",
		Checks: []nas.Check{{Name: "zeta", Got: zeta, Want: p.zeta, Tolerance: tolerance}},
	}, err
}

// opCount returns the number of operations as counted by NPB.
func (p problem) opCount() float64 {
	products := float64(p.nonzer * (p.nonzer + 1))
	return 2 * float64(p.steps) * float64(p.rows) * (3 + products + inner*(5+products) + 3)
}

// A solver is a rank's part of the problem. It has the rank's columns of the vectors.
type solver struct {
	problem
	g             *grid
	m             *matrix
	x, z, p, q, r []float64
	sums          [2]float64
}

func newSolver(c *mpi.Comm, p problem) (*solver, error) {
	g, err := newGrid(c, p.rows)
	if err != nil {
		return nil, err
	}
	s := &solver{problem: p, g: g, m: makeMatrix(p, g.rows, g.cols)}
	for _, v := range []*[]float64{&s.x, &s.z, &s.p, &s.q, &s.r} {
		*v = make([]float64, g.cols.length())
	}
	s.resetGuess()
	return s, nil
}

// resetGuess sets the initial guess.
func (s *solver) resetGuess() {
	for i := range s.x {
		s.x[i] = 1
	}
}

// iterateOnce runs one step of the inverse iteration: it solves A z = x, and the normalized z
// is the next x. It returns the estimate of the eigenvalue.
func (s *solver) iterateOnce() (zeta float64, err error) {
	if err := s.solveSystem(); err != nil {
		return 0, err
	}
	s.sums[0], s.sums[1] = dotProduct(s.x, s.z), dotProduct(s.z, s.z)
	if err := s.g.sumVectors(1, s.sums[:]); err != nil {
		return 0, err
	}
	scale := 1 / math.Sqrt(s.sums[1])
	for i, z := range s.z {
		s.x[i] = z * scale
	}
	return s.shift + 1/s.sums[0], nil
}

// solveSystem sets z to the approximate solution of A z = x by the conjugate gradient method.
func (s *solver) solveSystem() error {
	z, r, p, q := s.z, s.r, s.p, s.q
	clear(z)
	copy(r, s.x)
	copy(p, s.x)
	rho, err := s.sumRow(dotProduct(r, r))
	if err != nil {
		return err
	}
	for range inner {
		if err := s.g.multiplyMatrix(s.m, q, p); err != nil {
			return err
		}
		d, err := s.sumRow(dotProduct(p, q))
		if err != nil {
			return err
		}
		last := rho
		if rho, err = s.sumRow(updateSolution(z, r, p, q, rho/d)); err != nil {
			return err
		}
		updateDirection(p, r, rho/last)
	}
	return s.computeResidual()
}

// computeResidual computes the residual of z. The result is not used, but NPB includes its
// computation in the measured time.
func (s *solver) computeResidual() error {
	if err := s.g.multiplyMatrix(s.m, s.r, s.z); err != nil {
		return err
	}
	sum := 0.0
	for i, r := range s.r {
		d := s.x[i] - r
		sum += d * d
	}
	_, err := s.sumRow(sum)
	return err
}

// sumRow returns the sum of v over the ranks of the row.
func (s *solver) sumRow(v float64) (float64, error) {
	s.sums[0] = v
	err := s.g.sumVectors(1, s.sums[:1])
	return s.sums[0], err
}

// updateSolution moves along p, where q is its product: z += alpha p, r -= alpha q. It returns
// the dot product of the new r with itself.
func updateSolution(z, r, p, q []float64, alpha float64) (rho float64) {
	z, p, q = z[:len(r)], p[:len(r)], q[:len(r)]
	for i := range r {
		z[i] += alpha * p[i]
		v := r[i] - alpha*q[i]
		r[i] = v
		rho += v * v
	}
	return rho
}

// updateDirection sets the next direction: p = r + beta p.
func updateDirection(p, r []float64, beta float64) {
	r = r[:len(p)]
	for i := range p {
		p[i] = r[i] + beta*p[i]
	}
}

func dotProduct(x, y []float64) (sum float64) {
	y = y[:len(x)]
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

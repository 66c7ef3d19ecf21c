// Package ep is EP of the NAS Parallel Benchmarks, "embarrassingly parallel": pairs
// of random numbers become pairs of normally distributed ones by Marsaglia's polar
// method. The results are their sums and their number in each square ring
// around the origin. Ranks communicate at the end only, so the benchmark
// measures the processor.
//
//	report, err := ep.Run(world.Comm, nas.S) // on any number of ranks
package ep

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
)

// seed is the start of the random number sequence.
const seed = 271828183

// A problem is a class: 2^m pairs and the published sums.
type problem struct {
	m      int
	sx, sy float64
}

var problems = map[nas.Class]problem{
	nas.S: {24, -3.247834652034740e+3, -6.958407078382297e+3},
	nas.W: {25, -2.863319731645753e+3, -6.320053679109499e+3},
	nas.A: {28, -4.295875165629892e+3, -1.580732573678431e+4},
	nas.B: {30, 4.033815542441498e+4, -2.660669192809235e+4},
	nas.C: {32, 4.764367927995374e+4, -8.084072988043731e+4},
}

// tolerance is the relative tolerance of the sums.
const tolerance = 1e-8

// Run runs the benchmark. It is collective: all ranks call it, and all receive the report.
func Run(c *mpi.Comm, class nas.Class) (nas.Report, error) {
	p, ok := problems[class]
	if !ok {
		return nas.Report{}, fmt.Errorf("class %v: %w", class, nas.ErrClass)
	}
	if err := c.Barrier(); err != nil {
		return nas.Report{}, err
	}
	start := time.Now()
	s := sumPairs(pairShare(p.m, c.Rank(), c.Size()))
	if err := s.reduceAll(c); err != nil {
		return nas.Report{}, err
	}
	slowest, err := nas.MaxTime(c, time.Since(start))
	numbers := int64(2) << p.m
	return nas.Report{
		Benchmark: "EP", Class: class, Size: numbers, Processes: c.Size(), Time: slowest,
		Operations: float64(numbers), Operation: "Random numbers generated",
		Checks: []nas.Check{
			{Name: "sum of X", Got: s.sum[0], Want: p.sx, Tolerance: tolerance},
			{Name: "sum of Y", Got: s.sum[1], Want: p.sy, Tolerance: tolerance},
		},
	}, err
}

// pairShare returns a rank's share of 2^m pairs: the first pair and the number of pairs.
func pairShare(m, rank, size int) (first, n uint64) {
	total := uint64(1) << m
	first = total * uint64(rank) / uint64(size)
	return first, total*uint64(rank+1)/uint64(size) - first
}

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
	"math"
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

// sums has the results of a range of pairs.
type sums struct {
	sum   [2]float64 // of X, of Y
	count [16]int64  // number of Gaussian pairs whose larger absolute value is in [i, i+1)
}

// batch is the number of pairs that fit into the first-level cache.
const batch = 256

// sumPairs sums n pairs, starting at first. Each batch is first drawn and then transformed, so
// that no branch depends on random data: mispredicted branches would cost more than the
// arithmetic.
func sumPairs(first, n uint64) (s sums) {
	random := nas.Random(seed).Skip(2 * first)
	var pairs [batch]struct{ x, y, t float64 }
	var sx, sy float64
	for n > 0 {
		inside := 0 // pairs inside the unit circle
		m := min(n, batch)
		for range m {
			random = random.Next()
			x := 2*random.Float64() - 1
			random = random.Next()
			y := 2*random.Float64() - 1
			t := x*x + y*y
			p := &pairs[inside%batch]
			p.x, p.y, p.t = x, y, t
			inside += 1 - int(math.Float64bits(1-t)>>63) // adds 0 if 1-t is negative
		}
		n -= m
		for i := range pairs[:inside] {
			p := &pairs[i]
			f := math.Sqrt(-2 * math.Log(p.t) / p.t)
			x, y := p.x*f, p.y*f
			sx += x
			sy += y
			// Absolute values are ordered like their bits. None is larger than 12, because the
			// smallest t is 2^-90.
			larger := math.Float64frombits(max(math.Float64bits(x)<<1, math.Float64bits(y)<<1) >> 1)
			s.count[int(larger)&15]++
		}
	}
	s.sum = [2]float64{sx, sy}
	return s
}

// reduceAll replaces the sums of the rank by those of all ranks. It is collective.
func (s *sums) reduceAll(c *mpi.Comm) error {
	if err := c.Allreduce(mpi.InPlace, mpi.Of(s.sum[:]), mpi.Sum); err != nil {
		return err
	}
	return c.Allreduce(mpi.InPlace, mpi.Of(s.count[:]), mpi.Sum)
}

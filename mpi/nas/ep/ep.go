package ep

import (
	"fmt"
	"math"
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/nas"
)

// seed is where the random numbers begin.
const seed = 271828183

// problem is a class: 2^m pairs, and what is published for them.
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

// tolerance is that of the sums.
const tolerance = 1e-8

// Run runs the benchmark: all ranks call it, and all have the report.
func Run(c *mpi.Comm, class nas.Class) (nas.Report, error) {
	p, ok := problems[class]
	if !ok {
		return nas.Report{}, fmt.Errorf("class %v: %w", class, nas.ErrClass)
	}
	if err := c.Barrier(); err != nil {
		return nas.Report{}, err
	}
	start := time.Now()
	s := some(share(p.m, c.Rank(), c.Size()))
	if err := s.reduce(c); err != nil {
		return nas.Report{}, err
	}
	slowest, err := nas.Slowest(c, time.Since(start))
	numbers := int64(2) << p.m
	return nas.Report{
		Benchmark: "EP", Class: class, Size: numbers, Processes: c.Size(), Time: slowest,
		Operations: float64(numbers), Operation: "Random numbers generated",
		Checks: []nas.Check{
			{What: "sum of X", Got: s.sum[0], Want: p.sx, Tolerance: tolerance},
			{What: "sum of Y", Got: s.sum[1], Want: p.sy, Tolerance: tolerance},
		},
	}, err
}

// share is a rank's part of 2^m pairs: from which on, and how many.
func share(m, rank, size int) (first, n uint64) {
	total := uint64(1) << m
	first = total * uint64(rank) / uint64(size)
	return first, total*uint64(rank+1)/uint64(size) - first
}

// sums are those of some pairs.
type sums struct {
	sum   [2]float64 // of X, of Y
	count [16]int64  // of Gaussian pairs whose larger number is in [i, i+1)
}

// some sums n pairs up, from one on.
func some(first, n uint64) (s sums) {
	x := nas.Random(seed).Skip(2 * first)
	var sx, sy float64
	for range n {
		x = x.Next()
		a := 2*x.Float64() - 1
		x = x.Next()
		b := 2*x.Float64() - 1
		t := a*a + b*b
		if t > 1 {
			continue
		}
		f := math.Sqrt(-2 * math.Log(t) / t)
		a, b = a*f, b*f
		s.count[int(max(math.Abs(a), math.Abs(b)))&15]++ // none is larger than 12: the least t is 2^-90
		sx += a
		sy += b
	}
	s.sum = [2]float64{sx, sy}
	return s
}

// reduce makes a rank's sums those of all.
func (s *sums) reduce(c *mpi.Comm) error {
	if err := c.Allreduce(mpi.InPlace, mpi.Of(s.sum[:]), mpi.Sum); err != nil {
		return err
	}
	return c.Allreduce(mpi.InPlace, mpi.Of(s.count[:]), mpi.Sum)
}

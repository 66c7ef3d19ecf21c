package ep

import (
	"math"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
)

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

package ep

import (
	"math"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
)

// sums are those of some pairs.
type sums struct {
	sum   [2]float64 // of X, of Y
	count [16]int64  // of Gaussian pairs whose larger number is in [i, i+1)
}

// batch is so many pairs that they stay in the nearest cache.
const batch = 256

// sumPairs sums n pairs up, from one on. Each batch is drawn first and made Gaussian
// then, so that no branch depends on chance: a processor that guesses wrong loses
// more time than all of the arithmetic takes.
func sumPairs(first, n uint64) (s sums) {
	random := nas.Random(seed).Skip(2 * first)
	var pairs [batch]struct{ x, y, t float64 }
	var sx, sy float64
	for n > 0 {
		inside := 0 // the unit circle
		m := min(n, batch)
		for range m {
			random = random.Next()
			x := 2*random.Float64() - 1
			random = random.Next()
			y := 2*random.Float64() - 1
			t := x*x + y*y
			p := &pairs[inside%batch]
			p.x, p.y, p.t = x, y, t
			inside += 1 - int(math.Float64bits(1-t)>>63) // none if 1-t is negative
		}
		n -= m
		for i := range pairs[:inside] {
			p := &pairs[i]
			f := math.Sqrt(-2 * math.Log(p.t) / p.t)
			x, y := p.x*f, p.y*f
			sx += x
			sy += y
			// Without their signs, numbers are ordered as their bits are. None is larger
			// than 12: the least t is 2^-90.
			larger := math.Float64frombits(max(math.Float64bits(x)<<1, math.Float64bits(y)<<1) >> 1)
			s.count[int(larger)&15]++
		}
	}
	s.sum = [2]float64{sx, sy}
	return s
}

// reduceAll makes a rank's sums those of all.
func (s *sums) reduceAll(c *mpi.Comm) error {
	if err := c.Allreduce(mpi.InPlace, mpi.Of(s.sum[:]), mpi.Sum); err != nil {
		return err
	}
	return c.Allreduce(mpi.InPlace, mpi.Of(s.count[:]), mpi.Sum)
}

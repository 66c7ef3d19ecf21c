package impair

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"
)

// A random is a stream of 32-bit numbers. A link has several, so that adding a
// rule does not change the draws of others.
type random struct{ pcg rand.PCG }

// newRandom returns the stream of the given name for a seed and a link. The
// address is part of the seed because both ends of a connection often have the
// same Spec, and should not lose the same packets.
func newRandom(seed uint64, local netip.AddrPort, name string) random {
	h := fnv.New64a()
	h.Write([]byte(local.String()))
	h.Write([]byte(name))
	var r random
	r.pcg.Seed(seed, h.Sum64())
	return r
}

func (r *random) next() uint32 { return uint32(r.pcg.Uint64() >> 32) }

// below returns a number from 0 to n-1.
func (r *random) below(n int) int { return int(uint64(r.next()) * uint64(n) >> 32) }

// happens draws for an event of the given probability.
func (r *random) happens(p Percent) bool { return uint64(r.next()) < p.threshold() }

// correlated is a stream in which each number depends on the one before:
//
//	next = draw * (1 - rho) + last * rho
//
// in fixed point, as in sch_netem.c.
type correlated struct {
	rho  uint64 // 0 to 2^32
	last uint64
}

func newCorrelated(c Percent) correlated { return correlated{rho: c.threshold()} }

func (c *correlated) next(r *random) uint32 {
	v := uint64(r.next())
	if c.rho == 0 {
		return uint32(v)
	}
	// (v*(2^32-rho) + last*rho) / 2^32, where 2^32 itself does not fit 32 bits
	c.last = (v*(1<<32-c.rho) + c.last*c.rho) >> 32
	return uint32(c.last)
}

// A chance draws for a Chance.
type chance struct {
	below uint64
	draws correlated
}

func newChance(c Chance) chance { return chance{c.P.threshold(), newCorrelated(c.Correlation)} }

// happens draws for the event. It does not draw if the probability is 0.
func (c *chance) happens(r *random) bool {
	return c.below > 0 && uint64(c.draws.next(r)) < c.below
}

// spread returns a delay around d.Mean for a draw; it may be negative.
func (d *Delay) spread(draw uint32) time.Duration {
	u := (float64(draw) + 0.5) / (1 << 32) // above 0, below 1
	return d.Mean + time.Duration(math.Round(float64(d.Jitter)*d.Distribution.quantile(u)))
}

// cutOff bounds the distributions, in units of the jitter.
const cutOff = 4

// quantile returns by how many jitters the delay at probability u, 0 < u < 1,
// differs from the mean. Mean 0; uniform from -1 to 1, or standard deviation
// about 1.
func (d Distribution) quantile(u float64) float64 {
	switch d {
	case Normal:
		z := math.Sqrt2 * math.Erfinv(2*u-1)
		return max(-cutOff, min(z, cutOff))
	case Pareto:
		// Shape 3 from 1 on has mean 3/2 and standard deviation about 3/4.
		return min((math.Pow(1-u, -1./3)-1.5)*4/3, cutOff)
	case ParetoNormal:
		return Normal.quantile(u)/4 + Pareto.quantile(u)*3/4
	default:
		return 2*u - 1
	}
}

// Package measure turns the runs of an experiment into
// figures: latency histograms that travel between processes, medians, and
// alternating rounds.
//
// Shared machines are noisy, and the noise drifts. A ratio of two figures taken
// one after the other includes the drift. Therefore baseline and target
// run in short alternating rounds and are compared pair by pair:
//
//	v, err := measure.Alternate(ctx, 9, baseline, target)
//	ratio := measure.MedianRatio(v[1], v[0])
//
// All packages use the same units: latency in microseconds (us), bandwidth in
// MB/s of payload with 1 MB = 1e6 bytes, rates in messages/s.
package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A Round measures once, for a short time, and returns the figure.
type Round func(ctx context.Context) (float64, error)

// Alternate runs every round n times, interleaved, and returns the figures: result[i][k] is the
// k-th figure of rounds[i]. The order is shuffled in every even iteration and reversed in every
// odd one, with a fixed seed. So no round always runs first after a pause or directly behind
// the same predecessor, which may have left the processors warm, busy or asleep.
//
// Alternate returns the first error of a round, or the cause of ctx when it ends.
func Alternate(ctx context.Context, n int, rounds ...Round) ([][]float64, error) {
	return AlternateFor(ctx, math.MaxInt64, n, rounds...)
}

// AlternateFor is an Alternate with at most n iterations, which begins none after limit has
// passed, except for the first.
func AlternateFor(ctx context.Context, limit time.Duration, n int, rounds ...Round) ([][]float64, error) {
	began := time.Now()
	out := make([][]float64, len(rounds))
	for i := range out {
		out[i] = make([]float64, 0, n)
	}
	var order []int
	for turn := range n {
		if turn > 0 && time.Since(began) >= limit {
			break
		}
		if turn%2 == 0 {
			order = rand.New(rand.NewPCG(uint64(turn), 0)).Perm(len(rounds))
		} else {
			slices.Reverse(order)
		}
		for _, i := range order {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			v, err := rounds[i](ctx)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], v)
		}
	}
	return out, nil
}

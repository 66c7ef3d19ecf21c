package measure

import "context"

// A Round measures once, for a short while, and returns the figure.
type Round func(ctx context.Context) (float64, error)

// Alternate runs every round n times, taking turns, and returns the figures:
// result[i][k] is what rounds[i] measured in turn k. The order is reversed
// every other turn, so that none always runs first after a pause.
//
// It stops at the first error, or when ctx ends.
func Alternate(ctx context.Context, n int, rounds ...Round) ([][]float64, error) {
	out := make([][]float64, len(rounds))
	for i := range out {
		out[i] = make([]float64, 0, n)
	}
	for turn := range n {
		for k := range rounds {
			i := k
			if turn%2 == 1 {
				i = len(rounds) - 1 - k
			}
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

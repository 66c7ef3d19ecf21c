// Package measure holds what every experiment needs to turn runs into
// figures: latency histograms that travel between processes, medians, and
// alternating rounds.
//
// Shared machines are noisy, and the noise drifts. A ratio of two figures taken
// one after the other measures the drift as well, so baseline and subject are
// run in short alternating rounds and compared pair by pair:
//
//	v, err := measure.Alternate(ctx, 9, baseline, subject)
//	ratio := measure.MedianRatio(v[1], v[0])
//
// Units are the same throughout: latency in microseconds (us), bandwidth in
// MB/s of payload with 1 MB = 1e6 bytes, rates in messages/s.
package measure

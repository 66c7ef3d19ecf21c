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

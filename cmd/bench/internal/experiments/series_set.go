package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A seriesSet is the series that are measured alternately at one point: the baseline, followed
// by the targets.
type seriesSet struct {
	samples []bench.Sample
	rounds  []measure.Round
	events  []*measure.Latency // times of single events; nil if there are none
	failed  map[string]error   // opponents that failed, by series
}

// addSeries adds a series whose rounds return one figure.
func (l *seriesSet) addSeries(series string, round measure.Round) {
	l.samples = append(l.samples, bench.Sample{Series: series})
	l.rounds = append(l.rounds, round)
	l.events = append(l.events, nil)
}

// addOpponent adds a series of another implementation. If a round of it fails, the others
// continue, and the series is left out of the samples. The error names the packages that have the
// implementation.
func (l *seriesSet) addOpponent(series, packages string, round measure.Round) {
	if l.failed == nil {
		l.failed = map[string]error{}
	}
	l.addSeries(series, func(ctx context.Context) (float64, error) {
		if l.failed[series] != nil {
			return 0, nil
		}
		v, err := round(ctx)
		if err != nil && ctx.Err() == nil {
			l.failed[series], err = fmt.Errorf("(%s): %w", packages, err), nil
		}
		return v, err
	})
}

// A pinger is a ping-pong of package udpraw or verbsbench.
type pinger interface {
	LatencyRounds(iters int, into *measure.Latency) measure.Round
}

// addPing adds a ping-pong.
func (l *seriesSet) addPing(series string, p pinger, iters int) {
	l.addEvents(series, func(into *measure.Latency) measure.Round { return p.LatencyRounds(iters, into) })
}

// addEvents adds a series whose rounds add the times of single events to into.
func (l *seriesSet) addEvents(series string, rounds func(into *measure.Latency) measure.Round) {
	events := measure.NewLatency()
	l.addSeries(series, rounds(events))
	l.events[len(l.events)-1] = events
}

// addMeans adds a series of single events whose figure is the mean of each round instead of the
// median, which is smaller. It is for comparison with series that have only the total time of a
// round.
func (l *seriesSet) addMeans(series string, rounds func(into *measure.Latency) measure.Round) {
	events := measure.NewLatency()
	l.addSeries(series, meanRounds(rounds, events))
	l.events[len(l.events)-1] = events
}

// meanRounds returns rounds whose figure is the mean of their events. The events are added to
// all, unless it is nil.
func meanRounds(rounds func(into *measure.Latency) measure.Round, all *measure.Latency) measure.Round {
	return func(ctx context.Context) (float64, error) {
		round := measure.NewLatency()
		if _, err := rounds(round)(ctx); err != nil {
			return 0, err
		}
		if all != nil {
			all.Merge(round)
		}
		return round.Mean(), nil
	}
}

// runAlternating runs n alternating rounds and returns the samples in the order of adding,
// without those of opponents that failed.
func (l *seriesSet) runAlternating(ctx context.Context, n int) ([]bench.Sample, error) {
	return l.runAlternatingFor(ctx, math.MaxInt64, n)
}

// runAlternatingFor is a runAlternating that begins no round after limit has passed, except for
// the first.
func (l *seriesSet) runAlternatingFor(ctx context.Context, limit time.Duration, n int) ([]bench.Sample, error) {
	figures, err := measure.AlternateFor(ctx, limit, n, l.rounds...)
	if err != nil {
		return nil, err
	}
	for i := range l.samples {
		l.samples[i].Figures = figures[i]
		if l.events[i] != nil {
			stats := l.events[i].Stats()
			l.samples[i].Stats = &stats
		}
	}
	return slices.DeleteFunc(slices.Clone(l.samples), func(s bench.Sample) bool { return l.failed[s.Series] != nil }), nil
}

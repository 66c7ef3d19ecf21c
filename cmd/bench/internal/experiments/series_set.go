package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A seriesSet is what takes turns at one point: baseline and subjects.
type seriesSet struct {
	samples []bench.Sample
	rounds  []measure.Round
	events  []*measure.Latency // of single events; nil where there are none
}

// addSeries lines up a figure of whole rounds.
func (l *seriesSet) addSeries(series string, round measure.Round) {
	l.samples = append(l.samples, bench.Sample{Series: series})
	l.rounds = append(l.rounds, round)
	l.events = append(l.events, nil)
}

// pinger is a ping-pong of package udpraw or verbsbench.
type pinger interface {
	LatencyRounds(iters int, into *measure.Latency) measure.Round
}

// addPing lines up a ping-pong.
func (l *seriesSet) addPing(series string, p pinger, iters int) {
	l.addEvents(series, func(into *measure.Latency) measure.Round { return p.LatencyRounds(iters, into) })
}

// addEvents lines up rounds of single events, which they add to into.
func (l *seriesSet) addEvents(series string, rounds func(into *measure.Latency) measure.Round) {
	events := measure.NewLatency()
	l.addSeries(series, rounds(events))
	l.events[len(l.events)-1] = events
}

// addMeans lines up rounds of single events whose figure is the mean of each round, for
// comparison with what only whole rounds are known of: the median of events is less.
func (l *seriesSet) addMeans(series string, rounds func(into *measure.Latency) measure.Round) {
	events := measure.NewLatency()
	l.addSeries(series, meanRounds(rounds, events))
	l.events[len(l.events)-1] = events
}

// meanRounds makes rounds of single events ones of their mean, and adds the events to all,
// unless that is nil.
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

// runAlternating lets them take n turns and returns what each measured, in the order of
// adding.
func (l *seriesSet) runAlternating(ctx context.Context, n int) ([]bench.Sample, error) {
	figures, err := measure.Alternate(ctx, n, l.rounds...)
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
	return l.samples, nil
}

package main

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// Assumed duration of an experiment without an earlier run.
const (
	guessQuick = 8 * time.Second
	guessFull  = time.Minute
)

// An estimate predicts the remaining time of a list of experiments: the time of a saved earlier
// run of each, or else an assumed time, scaled by the ratio of actual to expected time of the
// experiments done so far.
type estimate struct {
	left     []time.Duration // expected time of each remaining experiment
	expected time.Duration   // expected time of the finished experiments
	took     time.Duration
}

// newEstimate returns the estimate of experiments that run with options o. Saved earlier runs
// are read from dir, unless it is "".
func newEstimate(experiments []*bench.Experiment, o bench.Options, dir string) *estimate {
	t := &estimate{}
	for _, e := range experiments {
		d, ok := report.EarlierRun(dir, e, o)
		switch {
		case ok:
		case o.Quick:
			d = guessQuick
		default:
			d = guessFull
		}
		t.left = append(t.left, max(d, time.Millisecond))
	}
	return t
}

// addElapsed records the elapsed time of the next experiment.
func (t *estimate) addElapsed(took time.Duration) {
	t.expected += t.left[0]
	t.took += took
	t.left = t.left[1:]
}

// remainingTime returns the expected time of the remaining experiments.
func (t *estimate) remainingTime() (sum time.Duration) {
	for _, d := range t.left {
		sum += d
	}
	if t.expected > 0 {
		sum = time.Duration(float64(sum) * float64(t.took) / float64(t.expected))
	}
	return sum
}

// String formats the remaining time, rounded to its accuracy.
func (t *estimate) String() string {
	d := t.remainingTime()
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("about %d s left", max(1, int(d.Round(time.Second).Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("about %d min left", int(d.Round(time.Minute).Minutes()))
	}
	d = d.Round(10 * time.Minute)
	return fmt.Sprintf("about %d h %d min left", int(d.Hours()), int(d.Minutes())%60)
}

package main

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// How long an experiment takes at a guess.
const (
	guessQuick = 8 * time.Second
	guessFull  = time.Minute
)

// estimate foretells how long a list of experiments still takes: each as long as the same
// run took that is kept in a directory, or else as a guess says, and all by as much longer
// or shorter as those done so far have been.
type estimate struct {
	left     []time.Duration // expected of each experiment to come
	expected time.Duration   // of those done
	took     time.Duration
}

// newEstimate returns the estimate of experiments that are run with o; earlier runs are in
// dir, "" for none.
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

// addElapsed takes note of how long the next experiment took.
func (t *estimate) addElapsed(took time.Duration) {
	t.expected += t.left[0]
	t.took += took
	t.left = t.left[1:]
}

// remainingTime returns how long the experiments to come take.
func (t *estimate) remainingTime() (sum time.Duration) {
	for _, d := range t.left {
		sum += d
	}
	if t.expected > 0 {
		sum = time.Duration(float64(sum) * float64(t.took) / float64(t.expected))
	}
	return sum
}

// String writes the remaining time as coarsely as it is known.
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

package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// A progress displays the progress of one experiment.
type progress interface {
	bench.Progress
	stopDisplay()
}

// startProgress displays a bar on a terminal, and lines otherwise.
func startProgress(w io.Writer, name string) progress {
	if f, ok := w.(*os.File); ok && cwriter.IsTerminal(int(f.Fd())) {
		return newBar(f, name)
	}
	return &lineProgress{w: w, name: name}
}

// A lineProgress writes a line for each step.
type lineProgress struct {
	w           io.Writer
	name        string
	steps, done int
}

func (l *lineProgress) Plan(steps int) { l.steps = steps }

func (l *lineProgress) Step(desc string) {
	l.done++
	fmt.Fprintf(l.w, "%s %d/%d %s\n", l.name, l.done, l.steps, desc)
}

func (l *lineProgress) Writer() io.Writer { return l.w }
func (l *lineProgress) stopDisplay()      {}

// barRefresh is the refresh interval. It is long, because drawing takes processor time during
// measurements.
const barRefresh = 500 * time.Millisecond

// A barProgress draws a progress bar that is removed at the end.
type barProgress struct {
	p       *mpb.Progress
	b       *mpb.Bar
	desc    atomic.Pointer[string]
	started bool // the first step has begun
}

func newBar(w io.Writer, name string) *barProgress {
	b := &barProgress{p: mpb.New(mpb.WithOutput(w), mpb.WithWidth(60), mpb.WithRefreshRate(barRefresh), mpb.WithAutoRefresh())}
	b.desc.Store(new(string))
	b.b = b.p.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *b.desc.Load() })),
	)
	return b
}

func (b *barProgress) Plan(steps int) { b.b.SetTotal(int64(steps), false) }

func (b *barProgress) Step(desc string) {
	if b.started {
		b.b.Increment()
	}
	b.started = true
	b.desc.Store(&desc)
}

func (b *barProgress) Writer() io.Writer { return b.p }

func (b *barProgress) stopDisplay() {
	b.b.Abort(true)
	b.p.Wait()
}

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

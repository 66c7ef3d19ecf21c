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

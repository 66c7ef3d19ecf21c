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

// progress shows how one experiment goes on.
type progress interface {
	bench.Progress
	end()
}

// startProgress shows a bar on a terminal and lines elsewhere.
func startProgress(w io.Writer, name string) progress {
	if f, ok := w.(*os.File); ok && cwriter.IsTerminal(int(f.Fd())) {
		return newBar(f, name)
	}
	return &lines{w: w, name: name}
}

// lines writes a line for each step.
type lines struct {
	w           io.Writer
	name        string
	steps, done int
}

func (l *lines) Plan(steps int) { l.steps = steps }

func (l *lines) Step(what string) {
	l.done++
	fmt.Fprintf(l.w, "%s %d/%d %s\n", l.name, l.done, l.steps, what)
}

func (l *lines) Writer() io.Writer { return l.w }
func (l *lines) end()              {}

// barRefresh is slow, for drawing takes time from a core that is being
// measured.
const barRefresh = 500 * time.Millisecond

// bar draws a progress bar that goes away in the end.
type bar struct {
	p       *mpb.Progress
	b       *mpb.Bar
	what    atomic.Pointer[string]
	started bool // a first step is under way
}

func newBar(w io.Writer, name string) *bar {
	b := &bar{p: mpb.New(mpb.WithOutput(w), mpb.WithWidth(60), mpb.WithRefreshRate(barRefresh), mpb.WithAutoRefresh())}
	b.what.Store(new(string))
	b.b = b.p.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *b.what.Load() })),
	)
	return b
}

func (b *bar) Plan(steps int) { b.b.SetTotal(int64(steps), false) }

func (b *bar) Step(what string) {
	if b.started {
		b.b.Increment()
	}
	b.started = true
	b.what.Store(&what)
}

func (b *bar) Writer() io.Writer { return b.p }

func (b *bar) end() {
	b.b.Abort(true)
	b.p.Wait()
}

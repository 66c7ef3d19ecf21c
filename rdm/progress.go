package rdm

import (
	"context"

	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/verbs"
)

// Progress handles pending completions without blocking, and reports whether
// there were any. A loop that polls Op.Done or memory must call it.
func (e *Endpoint) Progress() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.progress.Poll()
}

// source is the adapter as the Source of the progress engine.
type source Endpoint

// Prepare implements progress.Source.
func (*source) Prepare(progress.Waitable) {}

// Block implements progress.Source. A failure of the CQ fails the endpoint, which ends all
// waits.
func (s *source) Block(ctx context.Context) error { return s.completions.Block(ctx) }

// Poll implements progress.Source.
func (s *source) Poll() bool {
	e := (*Endpoint)(s)
	if e.err != nil {
		return false
	}
	handled, err := e.completions.Poll(e.handleCompletions)
	e.fail(err)
	if handled || err != nil {
		e.dispatchAndFlush()
	}
	return handled
}

func (e *Endpoint) handleCompletions(wcs []verbs.WC) {
	e.dispatching = true
	e.port.HandleCompletions(wcs)
	e.dispatching = false
}

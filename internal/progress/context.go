package progress

import (
	"context"

	"github.com/softrnic/softrnic/internal/cancelctx"
)

// A leadContext is the context of Source.Block: it ends with the context of the leader,
// or when the leader is interrupted. A Block that does not sleep calls Err only, which
// registers nothing. It serves any number of Blocks in turn, until it has ended.
type leadContext struct {
	*cancelctx.Context                 // canceled to interrupt the leader
	caller             context.Context // of the leader
	stop               func() bool     // ends the watch on caller, or nil
}

func newLeadContext() *leadContext { return &leadContext{Context: cancelctx.New(context.Canceled)} }

// endBlock is called after Source.Block. It reports whether the context has been canceled.
func (c *leadContext) endBlock() bool {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	return c.Canceled()
}

// watch makes the end of caller cancel the context.
func (c *leadContext) watch() {
	if c.stop == nil && c.caller.Done() != nil {
		c.stop = context.AfterFunc(c.caller, c.Cancel)
	}
}

// Err implements context.Context.
func (c *leadContext) Err() error {
	if c.Canceled() {
		return context.Canceled
	}
	return c.caller.Err()
}

// Done implements context.Context.
func (c *leadContext) Done() <-chan struct{} {
	c.watch()
	return c.Context.Done()
}

// AfterFunc makes context.AfterFunc start no goroutine.
func (c *leadContext) AfterFunc(f func()) func() bool {
	c.watch()
	return c.Context.AfterFunc(f)
}

package progress

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/internal/cancelctx"
)

// A leadContext is the context of Source.Block: it ends with the context of the leader,
// or when the leader is interrupted. A Block that does not sleep calls Err only, which
// registers nothing. It serves any number of Blocks in turn, until it has ended.
type leadContext struct {
	kick   *cancelctx.Context // canceled to interrupt the leader
	caller context.Context    // of the leader
	stop   func() bool        // ends the watch on caller, or nil
}

func newLeadContext() *leadContext { return &leadContext{kick: cancelctx.New(context.Canceled)} }

// endBlock is called after Source.Block.
func (c *leadContext) endBlock() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// watch cancels kick when caller ends.
func (c *leadContext) watch() {
	if c.stop == nil && c.caller.Done() != nil {
		c.stop = context.AfterFunc(c.caller, c.kick.Cancel)
	}
}

// Err implements context.Context.
func (c *leadContext) Err() error {
	if err := c.kick.Err(); err != nil {
		return err
	}
	return c.caller.Err()
}

// Done implements context.Context.
func (c *leadContext) Done() <-chan struct{} {
	c.watch()
	return c.kick.Done()
}

// AfterFunc makes context.AfterFunc start no goroutine.
func (c *leadContext) AfterFunc(f func()) func() bool {
	c.watch()
	return c.kick.AfterFunc(f)
}

// Deadline implements context.Context.
func (c *leadContext) Deadline() (time.Time, bool) { return c.caller.Deadline() }

// Value implements context.Context. It hides that caller may be a context of the standard
// library, whose Done channel is not this context's.
func (*leadContext) Value(any) any { return nil }

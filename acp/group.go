package acp

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Group is a set of operations on global addresses that are waited for together. They start at once.
// Operations that write to one region of one rank, atomics included, are executed in the order of the calls,
// except for an atomic that waits for other atomics of this rank on the same word.
//
// Failures of a group are returned by its Wait and never by Complete, which reports the failures of all
// callers. So layers and goroutines that are independent of each other do not see each other's failures. A
// group must not be used concurrently.
type Group struct {
	p           *Process
	outstanding int // operations
	errs        []error
}

// NewGroup returns an empty group.
func (p *Process) NewGroup() *Group { return &Group{p: p} }

// Copy is Process.Copy in the group.
func (g *Group) Copy(to, from GA, n int) {
	g.issueOp(&copyOp{to: protocol.GA(to), from: protocol.GA(from), n: n})
}

// CompareSwap is the function CompareSwap on 8 bytes, in the group. The previous value is stored in *old, unless old is nil,
// when Wait returns.
func (g *Group) CompareSwap(old *uint64, at GA, compare, value uint64) {
	g.issueOp(&atomicOp{old8: old, at: protocol.GA(at), m: protocol.Modify{Op: protocol.CompareSwap, Compare: compare, Operand: value}})
}

// FetchAdd is the function FetchAdd on 8 bytes, in the group.
func (g *Group) FetchAdd(old *uint64, at GA, value uint64) {
	g.issueOp(&atomicOp{old8: old, at: protocol.GA(at), m: protocol.Modify{Op: protocol.Add, Operand: value}})
}

// issueOp starts an operation of the group.
func (g *Group) issueOp(t task) {
	if g.isNull() {
		return
	}
	g.p.mu.Lock()
	defer g.p.unlockAndNotify()
	g.outstanding++
	g.p.issueGroupOp(g, t, None, -1)
}

// Wait blocks until all operations of the group are complete, and returns their joined failures, each an *Error.
// The group may then be used again. If ctx ends first, the operations continue, and Wait may be called again.
func (g *Group) Wait(ctx context.Context) error {
	if g.isNull() {
		return (*Process)(nil).newError("wait", "for a group", ErrNull)
	}
	g.p.mu.Lock()
	defer g.p.unlockAndNotify()
	if err := g.p.waitFor(ctx, (*groupDone)(g)); err != nil {
		return g.p.newError("wait", "", err)
	}
	if g.outstanding > 0 {
		return g.p.newError("wait", "", ErrClosed)
	}
	errs := g.errs
	g.errs = nil
	return errors.Join(errs...)
}

// groupDone is the condition that all operations of a group are complete.
type groupDone Group

// Ready implements progress.Waitable.
func (g *groupDone) Ready() bool { return g.outstanding == 0 || g.p.closed }

// onOpDone records the completion of an operation.
func (g *Group) onOpDone(err *Error) {
	g.outstanding--
	if err != nil {
		g.errs = append(g.errs, err)
	}
}

package acp

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Group is operations on global addresses that somebody waits for together. They begin at once. Those that write to one
// region of one rank, atomics included, are carried out in the order of the calls, unless an atomic waits for others of this
// rank at its word.
//
// What fails is told to who waits for the group: not by Complete, which tells the failures of all handles up to one, whoever
// asked for them. So layers above, and goroutines that do not know of each other, do not hear each other's failures. A group is used by
// one goroutine at a time.
type Group struct {
	p           *Process
	outstanding int // operations
	errs        []error
}

// NewGroup makes a group without operations.
func (p *Process) NewGroup() *Group { return &Group{p: p} }

// Copy is Process.Copy, in the group.
func (g *Group) Copy(to, from GA, n int) { g.issueOp(&copyOp{to: to, from: from, n: n}) }

// CompareSwap8 is Process.CompareSwap8, in the group. What was there is in old, which may be nil, when Wait
// has returned.
func (g *Group) CompareSwap8(old *uint64, at GA, compare, value uint64) {
	g.issueOp(&atomicOp{old8: old, at: at, m: protocol.Modify{Op: protocol.CompareSwap, Compare: compare, Operand: value}})
}

// Add8 is Process.Add8, in the group.
func (g *Group) Add8(old *uint64, at GA, value uint64) {
	g.issueOp(&atomicOp{old8: old, at: at, m: protocol.Modify{Op: protocol.Add, Operand: value}})
}

func (g *Group) issueOp(t task) {
	if g.isNull() {
		return
	}
	g.p.mu.Lock()
	defer g.p.unlockAndNotify()
	g.p.noteActivity()
	g.outstanding++
	g.p.issueGroupOp(g, t, None, -1)
}

// Wait returns when all operations of the group are complete, with all that was wrong: each in it is an *Error. The group may then be
// used again. If ctx ends first, the operations go on, and Wait may be called once more.
func (g *Group) Wait(ctx context.Context) error {
	if g.isNull() {
		return (*Process)(nil).newError("wait", "for a group", ErrNull)
	}
	g.p.mu.Lock()
	defer g.p.unlockAndNotify()
	if err := g.p.waitFor(ctx, g); err != nil {
		return g.p.newError("wait", "", err)
	}
	if g.outstanding > 0 {
		return g.p.newError("wait", "", ErrClosed)
	}
	errs := g.errs
	g.errs = nil
	return errors.Join(errs...)
}

// isReady implements waitable.
func (g *Group) isReady() bool { return g.outstanding == 0 || g.p.closed }

// onOpDone notes the end of an operation.
func (g *Group) onOpDone(err *Error) {
	g.outstanding--
	if err != nil {
		g.errs = append(g.errs, err)
	}
}

package acp

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
)

// Handle stands for an operation on global addresses (acp_handle_t). Those of a rank grow
// in the order of the calls.
type Handle uint64

// Handles that stand for none. As the last argument of an operation they say when it begins:
// like that of an operation, behind which, and all before it, it waits.
const (
	None Handle = 0          // at once (ACP_HANDLE_NULL)
	All  Handle = ^Handle(0) // when all before it are complete (ACP_HANDLE_ALL)
	Cont Handle = All - 1    // behind the one before it, without waiting for it where both are puts to one rank (ACP_HANDLE_CONT)
)

// operation is what a handle stands for.
type operation struct {
	p           *Process
	seq         Handle
	after       Handle // it begins when these are complete
	done        bool
	outstanding int   // accesses under way
	err         error // of the first part that failed
	task        task
	group       *Group // that hears what becomes of it, or nil
}

// task is what an operation does when it may begin. It calls finish in the end.
type task interface {
	startTask(o *operation)
	opName() string   // of the function
	opTarget() string // on what, in words
}

// handles are the operations of this rank that are under way.
type handles struct {
	issued          Handle       // the last that was given out
	completed       Handle       // all up to it are
	outstanding     []*operation // from complete+1 on
	deferred        deferredOps  // those that may not begin yet
	lastPutRank     int          // the rank that the last one is a put to, -1 if it is not, or has not been posted
	failed          []*Error     // not told yet
	droppedFailures int          // failures too many to keep
}

// maxFailures is how many failures are kept until somebody asks.
const maxFailures = 64

func (h *handles) init() { h.lastPutRank = -1 }

// issueOp begins an operation, or holds it until it may begin.
func (p *Process) issueOp(t task, after Handle, putTo int) Handle {
	return p.issueGroupOp(nil, t, after, putTo)
}

// issueGroupOp is issue of an operation of a group.
func (p *Process) issueGroupOp(g *Group, t task, after Handle, putTo int) Handle {
	h := &p.handles
	h.issued++
	o := &operation{p: p, seq: h.issued, after: after, task: t, group: g}
	switch {
	case after == Cont && putTo >= 0 && h.lastPutRank == putTo:
		o.after = None
	case after == All || after == Cont:
		o.after = o.seq - 1
	}
	h.outstanding = append(h.outstanding, o)
	switch {
	case p.closed:
		o.finishOp(ErrClosed)
	case o.after >= o.seq:
		o.finishOp(fmt.Errorf("%w: it shall begin after %d", ErrHandle, o.after))
	case o.after > h.completed:
		heap.Push(&h.deferred, o)
	default:
		h.lastPutRank = putTo
		t.startTask(o)
		if !p.closed {
			p.flushPosted()
		}
		return o.seq
	}
	h.lastPutRank = -1
	return o.seq
}

// finishOp ends an operation.
func (o *operation) finishOp(err error) {
	h := &o.p.handles
	o.done = true
	var failure *Error
	if err != nil {
		failure = &Error{Rank: o.p.rank, Op: o.task.opName(), What: o.task.opTarget(), Handle: o.seq, Err: err}
	}
	switch {
	case o.group != nil:
		o.group.onOpDone(failure)
	case err == nil:
	case len(h.failed) < maxFailures:
		h.failed = append(h.failed, failure)
	default:
		h.droppedFailures++
	}
	for len(h.outstanding) > 0 && h.outstanding[0].done {
		h.outstanding[0] = nil
		h.outstanding = h.outstanding[1:]
		h.completed++
	}
	for len(h.deferred) > 0 && h.deferred[0].after <= h.completed {
		next := heap.Pop(&h.deferred).(*operation)
		next.task.startTask(next)
	}
	o.p.engine.events++
}

// completePart notes the end of one of an operation's accesses.
func (o *operation) completePart(err error) {
	if o.err == nil {
		o.err = err
	}
	if o.outstanding--; o.outstanding == 0 {
		o.finishOp(o.err)
	}
}

// Complete waits until the operation and all before it are complete, those up to All
// all there are (acp_complete). Its error is that of all operations up to it that have failed and
// whose failure was not told before: each in it is an *Error.
func (p *Process) Complete(ctx context.Context, h Handle) error {
	if p.isNull() {
		return p.newError("complete", "", ErrNull)
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	switch {
	case h == All || h == Cont:
		h = p.handles.issued
	case h > p.handles.issued:
		return p.newError("complete", fmt.Sprintf("handle %d", h), ErrHandle)
	}
	if err := p.waitFor(ctx, completeCond{p, h}); err != nil {
		return p.newError("complete", fmt.Sprintf("handle %d", h), err)
	}
	return p.takeFailures(h)
}

// Inquire reports whether the operation and all before it are complete (acp_inquire). It has a
// look at the network. What has failed is told by Complete.
func (p *Process) Inquire(h Handle) bool {
	if p.isNull() {
		return true
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	p.noteActivity()
	if h == All || h == Cont {
		h = p.handles.issued
	}
	if p.handles.completed < h {
		p.pollProgress()
	}
	return p.handles.completed >= h
}

// completeCond is ready when all operations up to a handle are complete.
type completeCond struct {
	p *Process
	h Handle
}

func (u completeCond) isReady() bool { return u.p.handles.completed >= u.h || u.p.closed }

// takeFailures takes the failures of operations up to a handle.
func (p *Process) takeFailures(upTo Handle) error {
	h := &p.handles
	if len(h.failed) == 0 {
		return nil
	}
	var errs []error
	kept := h.failed[:0]
	for _, e := range h.failed {
		if e.Handle <= upTo {
			errs = append(errs, e)
		} else {
			kept = append(kept, e)
		}
	}
	clear(h.failed[len(kept):])
	h.failed = kept
	if h.droppedFailures > 0 && len(errs) > 0 {
		errs = append(errs, fmt.Errorf("acp: rank %d: and %d more", p.rank, h.droppedFailures))
		h.droppedFailures = 0
	}
	return errors.Join(errs...)
}

// deferredOps is operations that wait for others, those first that wait for the oldest; it is a
// heap.
type deferredOps []*operation

func (h deferredOps) Len() int { return len(h) }
func (h deferredOps) Less(i, j int) bool {
	return h[i].after < h[j].after || h[i].after == h[j].after && h[i].seq < h[j].seq
}
func (h deferredOps) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *deferredOps) Push(x any)   { *h = append(*h, x.(*operation)) }
func (h *deferredOps) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

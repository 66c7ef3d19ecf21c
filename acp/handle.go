package acp

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
)

// Handle names an operation on global addresses (acp_handle_t). The handles of a rank increase in the order
// of the calls.
type Handle uint64

// Handles that name no operation. As the last argument of an operation, a handle determines when it starts:
// after the named operation and all before it are complete.
const (
	None Handle = 0          // at once (ACP_HANDLE_NULL)
	All  Handle = ^Handle(0) // after all previous operations are complete (ACP_HANDLE_ALL)
	Cont Handle = All - 1    // after the previous one, without waiting for it if both are puts to the same rank (ACP_HANDLE_CONT)
)

// operation is the operation that a handle names.
type operation struct {
	p           *Process
	seq         Handle
	after       Handle // the operation starts when these are complete
	done        bool
	outstanding int   // accesses in flight
	err         error // of the first access that failed
	task        task
	group       *Group // notified of the completion, or nil
}

// task is the action of an operation. It calls operation.finishOp when it is complete.
type task interface {
	startTask(o *operation)
	opName() string   // name of the ACP function
	opTarget() string // addresses as text, for errors
}

// handles holds the incomplete operations of this rank.
type handles struct {
	issued          Handle       // the newest handle
	completed       Handle       // all operations up to this one are complete
	outstanding     []*operation // from completed+1 on
	deferred        deferredOps  // operations that may not start yet
	lastPutRank     int          // target rank if the last operation is a put that has been posted, or -1
	failed          []*Error     // not yet reported by Complete
	droppedFailures int          // number of failures beyond maxFailures
}

// maxFailures is the maximum number of failures kept for Complete.
const maxFailures = 64

func (h *handles) initHandles() { h.lastPutRank = -1 }

// issueOp starts an operation, or defers it until the operations up to after are complete.
func (p *Process) issueOp(t task, after Handle, putTo int) Handle {
	return p.issueGroupOp(nil, t, after, putTo)
}

// issueGroupOp is issueOp for an operation of a group.
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
		o.finishOp(fmt.Errorf("%w: operation ordered after handle %d", ErrHandle, o.after))
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

// finishOp completes o, records its failure, and starts the operations that waited for it.
func (o *operation) finishOp(err error) {
	h := &o.p.handles
	o.done = true
	var failure *Error
	if err != nil {
		failure = &Error{Rank: o.p.rank, Op: o.task.opName(), Args: o.task.opTarget(), Handle: o.seq, Err: err}
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
	o.p.changes++
}

// completePart records the completion of one of o's accesses.
func (o *operation) completePart(err error) {
	if o.err == nil {
		o.err = err
	}
	if o.outstanding--; o.outstanding == 0 {
		o.finishOp(o.err)
	}
}

// Complete blocks until the operation h and all before it are complete; All means all that were issued
// (acp_complete). It returns the joined failures of these operations that were not returned before, each an
// *Error.
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

// Inquire polls the network once, and reports whether the operation h and all before it are complete
// (acp_inquire). Failures are returned by Complete.
func (p *Process) Inquire(h Handle) bool {
	if p.isNull() {
		return true
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	if h == All || h == Cont {
		h = p.handles.issued
	}
	if p.handles.completed < h {
		p.pollProgress()
	}
	return p.handles.completed >= h
}

// completeCond is ready when all operations up to h are complete.
type completeCond struct {
	p *Process
	h Handle
}

func (c completeCond) Ready() bool { return c.p.handles.completed >= c.h || c.p.closed }

// takeFailures removes and returns the failures of operations up to a handle.
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
		errs = append(errs, fmt.Errorf("acp: rank %d: %d more failures", p.rank, h.droppedFailures))
		h.droppedFailures = 0
	}
	return errors.Join(errs...)
}

// deferredOps is a heap of operations that wait for others, ordered by the operation they wait for.
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

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
	p     *Process
	seq   Handle
	after Handle // it begins when these are complete
	done  bool
	parts int   // accesses under way
	err   error // of the first part that failed
	task  task
	group *Group // that hears what becomes of it, or nil
}

// task is what an operation does when it may begin. It calls finish in the end.
type task interface {
	begin(o *operation)
	name() string // of the function
	what() string // on what, in words
}

// handles are the operations of this rank that are under way.
type handles struct {
	issued   Handle       // the last that was given out
	complete Handle       // all up to it are
	under    []*operation // from complete+1 on
	held     held         // those that may not begin yet
	putTo    int          // the rank that the last one is a put to, -1 if it is not, or has not been posted
	failed   []*Error     // not told yet
	lost     int          // failures too many to keep
}

// failedMax is how many failures are kept until somebody asks.
const failedMax = 64

func (h *handles) init() { h.putTo = -1 }

// issue begins an operation, or holds it until it may begin.
func (p *Process) issue(t task, after Handle, putTo int) Handle {
	return p.issueFor(nil, t, after, putTo)
}

// issueFor is issue of an operation of a group.
func (p *Process) issueFor(g *Group, t task, after Handle, putTo int) Handle {
	h := &p.handles
	h.issued++
	o := &operation{p: p, seq: h.issued, after: after, task: t, group: g}
	switch {
	case after == Cont && putTo >= 0 && h.putTo == putTo:
		o.after = None
	case after == All || after == Cont:
		o.after = o.seq - 1
	}
	h.under = append(h.under, o)
	switch {
	case p.closed:
		o.finish(ErrClosed)
	case o.after >= o.seq:
		o.finish(fmt.Errorf("%w: it shall begin after %d", ErrHandle, o.after))
	case o.after > h.complete:
		heap.Push(&h.held, o)
	default:
		h.putTo = putTo
		t.begin(o)
		if !p.closed {
			p.flush()
		}
		return o.seq
	}
	h.putTo = -1
	return o.seq
}

// finish ends an operation.
func (o *operation) finish(err error) {
	h := &o.p.handles
	o.done = true
	var failure *Error
	if err != nil {
		failure = &Error{Rank: o.p.rank, Op: o.task.name(), What: o.task.what(), Handle: o.seq, Err: err}
	}
	switch {
	case o.group != nil:
		o.group.ended(failure)
	case err == nil:
	case len(h.failed) < failedMax:
		h.failed = append(h.failed, failure)
	default:
		h.lost++
	}
	for len(h.under) > 0 && h.under[0].done {
		h.under[0] = nil
		h.under = h.under[1:]
		h.complete++
	}
	for len(h.held) > 0 && h.held[0].after <= h.complete {
		next := heap.Pop(&h.held).(*operation)
		next.task.begin(next)
	}
	o.p.turns.events++
}

// part notes the end of one of an operation's accesses.
func (o *operation) part(err error) {
	if o.err == nil {
		o.err = err
	}
	if o.parts--; o.parts == 0 {
		o.finish(o.err)
	}
}

// Complete waits until the operation and all before it are complete, those up to All
// all there are (acp_complete). Its error is that of all operations up to it that have failed and
// whose failure was not told before: each in it is an *Error.
func (p *Process) Complete(ctx context.Context, h Handle) error {
	if p.isNull() {
		return p.wrong("complete", "", ErrNull)
	}
	p.mu.Lock()
	defer p.unlock()
	switch {
	case h == All || h == Cont:
		h = p.handles.issued
	case h > p.handles.issued:
		return p.wrong("complete", fmt.Sprintf("handle %d", h), ErrHandle)
	}
	if err := p.wait(ctx, until{p, h}); err != nil {
		return p.wrong("complete", fmt.Sprintf("handle %d", h), err)
	}
	return p.failures(h)
}

// Inquire reports whether the operation and all before it are complete (acp_inquire). It has a
// look at the network. What has failed is told by Complete.
func (p *Process) Inquire(h Handle) bool {
	if p.isNull() {
		return true
	}
	p.mu.Lock()
	defer p.unlock()
	p.visit()
	if h == All || h == Cont {
		h = p.handles.issued
	}
	if p.handles.complete < h {
		p.progress()
	}
	return p.handles.complete >= h
}

// until is ready when all operations up to a handle are complete.
type until struct {
	p *Process
	h Handle
}

func (u until) ready() bool { return u.p.handles.complete >= u.h || u.p.closed }

// failures takes the failures of operations up to a handle.
func (p *Process) failures(upTo Handle) error {
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
	if h.lost > 0 && len(errs) > 0 {
		errs = append(errs, fmt.Errorf("acp: rank %d: and %d more", p.rank, h.lost))
		h.lost = 0
	}
	return errors.Join(errs...)
}

// held is operations that wait for others, those first that wait for the oldest; it is a
// heap.
type held []*operation

func (h held) Len() int { return len(h) }
func (h held) Less(i, j int) bool {
	return h[i].after < h[j].after || h[i].after == h[j].after && h[i].seq < h[j].seq
}
func (h held) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *held) Push(x any)   { *h = append(*h, x.(*operation)) }
func (h *held) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Request is communication that goes on while the program does (MPI_Request).
// Its buffer is not to be touched, of a send not to be written, until Wait or
// Test has said that it is done. Ask one request from one goroutine at a time.
//
// The nil pointer is the null request (MPI_REQUEST_NULL). It is done, with the empty
// status: of AnySource, with AnyTag and no bytes.
type Request struct {
	comm   *Comm
	p      protocol.Request
	op     string
	buf    datatype.Buffer // of a receive that is unpacked
	packed []byte          // what it comes in
	null   bool            // with ProcNull, or failed before it began
	work   work            // of a collective call
	remote *remote         // of an operation on a window
	err    error           // why it failed before it began

	polled, polledAll uint64 // engine.Polls.New, by itself or one of several, and with others

	persistent, active bool
	start              func(*Request) error // of a persistent one, until it is freed
	free               func()
}

var requests = sync.Pool{New: func() any { return &Request{} }}

// Ready reports whether the request is done. It is what engines wait for, and
// says nothing new by itself: Test does.
func (r *Request) Ready() bool {
	switch {
	case r.idle() || r.null:
		return true
	case r.work.over != nil:
		return r.work.done
	case r.remote != nil:
		return r.remote.done
	}
	return r.p.Done
}

// Wait waits until the request is done (MPI_Wait).
func (r *Request) Wait() (Status, error) { return r.WaitContext(context.Background()) }

// WaitContext is Wait that gives up when ctx ends, or never if it is nil. The request
// goes on.
func (r *Request) WaitContext(ctx context.Context) (Status, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	var err error
	switch {
	case r.idle() || r.null:
	case r.work.over != nil:
		err = r.work.wait(ctx)
	default:
		err = r.comm.eng.Wait(ctx, r)
	}
	if err != nil {
		return Status{}, r.comm.fail(r.op, r.with(), err)
	}
	return r.end()
}

// Test reports whether the request is done, and if so with what (MPI_Test).
func (r *Request) Test() (Status, bool, error) { return r.test(r) }

// test is Test by something that is ready when the request is.
func (r *Request) test(w engine.Waitable) (Status, bool, error) {
	if !r.idle() && !r.null && !r.comm.eng.Test(w) {
		return Status{}, false, nil
	}
	s, err := r.end()
	return s, true, err
}

// Cancel ends a receive that has no message yet (MPI_Cancel); its Wait returns
// ErrCanceled. Sends cannot be called back.
func (r *Request) Cancel() bool {
	if r.idle() || r.null {
		return false
	}
	cancelled := false
	r.comm.eng.Do(func(c *protocol.Core) { cancelled = c.Cancel(&r.p) })
	return cancelled
}

// refuse makes r a request that has failed before it began.
func (r *Request) refuse(with string, err error) error {
	r.null, r.err = true, r.comm.fail(r.op, with, err)
	return r.err
}

// end is what comes of a request that is done.
func (r *Request) end() (Status, error) {
	if r.idle() {
		return emptyStatus(), nil
	}
	r.active = false
	if r.work.over != nil {
		return Status{Source: ProcNull, Tag: AnyTag}, r.work.err
	}
	if r.remote != nil {
		return Status{Source: ProcNull, Tag: AnyTag}, r.remote.err
	}
	if r.null {
		if r.err != nil {
			return Status{}, r.err
		}
		return Status{Source: ProcNull, Tag: AnyTag}, nil
	}
	c := r.comm
	s := Status{Source: c.local(int(r.p.Received.Source)), Tag: int(r.p.Received.Tag), Bytes: max(0, r.p.Bytes-c.world.mark())}
	if sent := r.p.SentSignature; r.p.Err == nil && !sameKind(sent, r.p.Signature) {
		r.p.Err = fmt.Errorf("%w: %s were sent by rank %d with tag %d to a buffer of %s", ErrType, kindText(sent), s.Source, s.Tag, kindText(r.p.Signature))
	} else if r.packed != nil {
		if err := c.unpack(r.buf, r.packed[:r.p.Bytes]); err != nil && r.p.Err == nil {
			r.p.Err = err
		}
		r.packed = nil
	}
	if r.p.Err != nil {
		s.Cancelled = errors.Is(r.p.Err, ErrCanceled)
		return s, c.fail(r.op, r.with(), r.p.Err)
	}
	return s, nil
}

// with says whom the request is with, for errors.
func (r *Request) with() string {
	e := r.p.Envelope
	name := func(n int32) string {
		if n == match.Any {
			return "any"
		}
		return fmt.Sprint(n)
	}
	switch {
	case r.op == "receive":
		return fmt.Sprintf("from %s, tag %s", name(int32(r.comm.local(int(e.Source)))), name(e.Tag))
	case r.work.over != nil || r.remote != nil:
		return ""
	}
	return fmt.Sprintf("to %d, tag %s", r.comm.local(r.p.Dest), name(e.Tag))
}

// WaitAll waits for all requests (MPI_Waitall). The error is that of all that
// failed; nil requests are done.
func WaitAll(rs ...*Request) ([]Status, error) {
	list := make([]Status, len(rs))
	var errs error
	for i, r := range rs {
		var err error
		list[i], err = r.Wait()
		errs = errors.Join(errs, err)
	}
	return list, errs
}

// some is done when one of several requests is; which is the first of them.
type some struct {
	rs    []*Request
	which int
}

// Ready implements engine.Waitable.
func (s *some) Ready() bool {
	for i, r := range s.rs {
		if !r.idle() && r.Ready() {
			s.which = i
			return true
		}
	}
	return false
}

// commOf returns the communicator of the first request that is active and has one.
func commOf(rs []*Request) *Comm {
	for _, r := range rs {
		if !r.idle() && r.comm != nil {
			return r.comm
		}
	}
	return nil
}

// anyWithoutEngine returns the first of some requests that have failed before they
// began, since their handle of a communicator was null, or Undefined if all are null or
// inactive.
func anyWithoutEngine(rs []*Request) (int, Status, error) {
	for i, r := range rs {
		if !r.idle() {
			s, err := r.end()
			return i, s, err
		}
	}
	return Undefined, emptyStatus(), nil
}

// WaitAny waits for one of the requests and returns which (MPI_Waitany), or
// Undefined if all are nil or inactive. Set it to nil before the next call.
func WaitAny(rs ...*Request) (int, Status, error) {
	c := commOf(rs)
	if c == nil {
		return anyWithoutEngine(rs)
	}
	one := &some{rs: rs}
	if err := c.eng.Wait(context.Background(), one); err != nil {
		return Undefined, Status{}, err
	}
	s, err := rs[one.which].end()
	return one.which, s, err
}

// WaitSome waits for at least one of the requests, and returns all that are
// done (MPI_Waitsome).
func WaitSome(rs ...*Request) (done []int, list []Status, err error) {
	first, s, err := WaitAny(rs...)
	if first == Undefined {
		return nil, nil, err
	}
	return others(rs, first, s, err)
}

// others are the requests that are done beside the first that was.
func others(rs []*Request, first int, s Status, err error) (done []int, list []Status, _ error) {
	for i, r := range rs {
		if i == first {
			done, list = append(done, i), append(list, s)
		} else if !r.idle() {
			if s, ok, e := r.test(unseen{r}); ok {
				done, list, err = append(done, i), append(list, s), errors.Join(err, e)
			}
		}
	}
	return done, list, err
}

// TestAll reports whether all requests are done (MPI_Testall).
func TestAll(rs ...*Request) ([]Status, bool, error) {
	if c := commOf(rs); c != nil && !c.eng.Test(all(rs)) {
		return nil, false, nil
	}
	list, err := WaitAll(rs...)
	return list, true, err
}

// TestAny looks for a request that is done (MPI_Testany).
func TestAny(rs ...*Request) (int, Status, bool, error) {
	c := commOf(rs)
	if c == nil {
		i, s, err := anyWithoutEngine(rs)
		return i, s, true, err
	}
	one := &some{rs: rs}
	if !c.eng.Test(one) {
		return Undefined, Status{}, false, nil
	}
	s, err := rs[one.which].end()
	return one.which, s, true, err
}

// TestSome returns the requests that are done (MPI_Testsome): none if none is, and
// if there is none that may be.
func TestSome(rs ...*Request) (done []int, list []Status, err error) {
	first, s, _, err := TestAny(rs...)
	if first == Undefined {
		return nil, nil, err
	}
	return others(rs, first, s, err)
}

// all is done when all requests are.
type all []*Request

func (a all) Ready() bool {
	for _, r := range a {
		if r != nil && !r.Ready() {
			return false
		}
	}
	return true
}

package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Request is a communication in progress (MPI_Request). The program must not touch its buffer,
// or of a send not write to it, until Wait or Test has returned that it is done. A Request may
// be used by one goroutine at a time.
//
// The nil pointer is the null request (MPI_REQUEST_NULL). It is done, with the empty status:
// source AnySource, tag AnyTag and 0 bytes.
type Request struct {
	comm         *Comm
	p            protocol.Request
	op           string
	buf          datatype.Buffer        // destination of a receive that is unpacked
	packed       []byte                 // receive buffer of the packed message
	neverStarted bool                   // peer is ProcNull, or the request failed before it started
	background   *collective.Background // collective call, or nil
	rmaResult    *onesided.Result       // of a one-sided operation
	err          error                  // error before the start

	pollRound uint64 // last round in which it was tested, of engine.PollStats

	persistent, active bool
	start              func(*Request) error // starts a persistent request; nil after Free
	free               func()
}

var requests = sync.Pool{New: func() any { return &Request{} }}

// requestWait is a Request as the condition of a wait.
type requestWait Request

// Ready implements engine.Waitable.
func (q *requestWait) Ready() bool { return (*Request)(q).isDone() }

// isDone reports whether the request is done. The caller holds the engine's lock.
func (r *Request) isDone() bool {
	switch {
	case r.isInactive() || r.neverStarted:
		return true
	case r.background != nil:
		return r.background.IsDone()
	case r.rmaResult != nil:
		return r.rmaResult.Done
	}
	return r.p.Done
}

// Wait waits until the request is done (MPI_Wait).
func (r *Request) Wait() (Status, error) { return r.WaitContext(context.Background()) }

// WaitContext is Wait that ends when ctx ends; a nil ctx never ends. The request continues.
func (r *Request) WaitContext(ctx context.Context) (Status, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	var err error
	switch {
	case r.isInactive() || r.neverStarted:
	case r.background != nil:
		err = r.background.Wait(ctx)
	default:
		err = r.comm.base.Engine.Wait(ctx, (*requestWait)(r))
	}
	if err != nil {
		return Status{}, r.comm.fail(r.op, r.describePeer(), err)
	}
	return r.takeResult()
}

// Test reports whether the request is done, and returns its status (MPI_Test).
func (r *Request) Test() (Status, bool, error) { return r.testWith((*polledRequest)(r)) }

// testWith is Test with another condition that is ready when r is.
func (r *Request) testWith(w engine.Waitable) (Status, bool, error) {
	if !r.isInactive() && !r.neverStarted && !r.comm.base.Engine.Test(w) {
		return Status{}, false, nil
	}
	s, err := r.takeResult()
	return s, true, err
}

// Cancel cancels a receive that has not matched a message (MPI_Cancel) and reports whether it
// did; Wait then returns ErrCanceled. Sends cannot be canceled.
func (r *Request) Cancel() bool {
	if r.isInactive() || r.neverStarted {
		return false
	}
	canceled := false
	r.comm.base.Engine.Do(func(c *protocol.Core) { canceled = c.Cancel(&r.p) })
	return canceled
}

// failBeforeStart makes r a failed request and returns its error. peer describes the peer.
func (r *Request) failBeforeStart(peer string, err error) error {
	r.neverStarted, r.err = true, r.comm.fail(r.op, peer, err)
	return r.err
}

// takeResult returns the status and the error of a request that is done, and unpacks a received
// message. A persistent request becomes inactive.
func (r *Request) takeResult() (Status, error) {
	if r.isInactive() {
		return emptyStatus(), nil
	}
	r.active = false
	if r.background != nil {
		return Status{Source: ProcNull, Tag: AnyTag}, r.background.Err()
	}
	if r.neverStarted {
		if r.err != nil {
			return Status{}, r.err
		}
		return Status{Source: ProcNull, Tag: AnyTag}, nil
	}
	c := r.comm
	if x := r.rmaResult; x != nil {
		s := Status{Source: ProcNull, Tag: AnyTag}
		if x.Err != nil {
			return s, c.fail(r.op, describeTarget(x.Target, x.At), x.Err)
		}
		return s, nil
	}
	s := Status{Source: c.base.LocalRank(int(r.p.Received.Source)), Tag: int(r.p.Received.Tag), Bytes: max(0, r.p.Bytes-c.world.checkOverhead())}
	if sent := r.p.SentSignature; r.p.Err == nil && !datatype.MessagesMatch(sent, r.p.Signature) {
		r.p.Err = fmt.Errorf("%w: rank %d sent %s with tag %d to a buffer of %s", ErrType, s.Source, datatype.DescribeMessage(sent), s.Tag, datatype.DescribeMessage(r.p.Signature))
	} else if r.packed != nil {
		if err := c.unpackMessage(r.buf, r.packed[:r.p.Bytes]); err != nil && r.p.Err == nil {
			r.p.Err = err
		}
		r.packed = nil
	}
	if r.p.Err != nil {
		s.Canceled = errors.Is(r.p.Err, ErrCanceled)
		return s, c.fail(r.op, r.describePeer(), r.p.Err)
	}
	return s, nil
}

// describePeer returns the peer and the tag, for errors.
func (r *Request) describePeer() string {
	e := r.p.Envelope
	name := func(n int32) string {
		if n == match.Any {
			return "any"
		}
		return fmt.Sprint(n)
	}
	switch {
	case r.op == "receive":
		return fmt.Sprintf("from %s, tag %s", name(int32(r.comm.base.LocalRank(int(e.Source)))), name(e.Tag))
	case r.background != nil || r.rmaResult != nil:
		return ""
	}
	return fmt.Sprintf("to %d, tag %s", r.comm.base.LocalRank(r.p.Dest), name(e.Tag))
}

// WaitAll waits for all requests (MPI_Waitall) and joins their errors. Nil requests are done.
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

// anyRequest is ready when one of several requests is done; index is that of the first of them.
type anyRequest struct {
	rs    []*Request
	index int
}

// Ready implements engine.Waitable.
func (s *anyRequest) Ready() bool {
	for i, r := range s.rs {
		if !r.isInactive() && r.isDone() {
			s.index = i
			return true
		}
	}
	return false
}

// firstActiveComm returns the communicator of the first active request that has one.
func firstActiveComm(rs []*Request) *Comm {
	for _, r := range rs {
		if !r.isInactive() && r.comm != nil {
			return r.comm
		}
	}
	return nil
}

// takeUnstarted returns the result of the first request that failed before it started because
// its communicator was null, Undefined if all requests are null or inactive.
func takeUnstarted(rs []*Request) (int, Status, error) {
	for i, r := range rs {
		if !r.isInactive() {
			s, err := r.takeResult()
			return i, s, err
		}
	}
	return Undefined, emptyStatus(), nil
}

// WaitAny waits for one of the requests and returns its index (MPI_Waitany), Undefined if all
// are nil or inactive. Set the request to nil before the next call.
func WaitAny(rs ...*Request) (int, Status, error) {
	c := firstActiveComm(rs)
	if c == nil {
		return takeUnstarted(rs)
	}
	one := &anyRequest{rs: rs}
	if err := c.base.Engine.Wait(context.Background(), one); err != nil {
		return Undefined, Status{}, err
	}
	s, err := rs[one.index].takeResult()
	return one.index, s, err
}

// WaitSome waits for at least one of the requests and returns the indices of all that are done
// (MPI_Waitsome).
func WaitSome(rs ...*Request) (done []int, list []Status, err error) {
	first, s, err := WaitAny(rs...)
	if first == Undefined {
		return nil, nil, err
	}
	return collectDone(rs, first, s, err)
}

// collectDone adds the requests that are done beside the first one.
func collectDone(rs []*Request, first int, s Status, err error) (done []int, list []Status, _ error) {
	for i, r := range rs {
		if i == first {
			done, list = append(done, i), append(list, s)
		} else if !r.isInactive() {
			if s, ok, e := r.testWith((*requestWait)(r)); ok {
				done, list, err = append(done, i), append(list, s), errors.Join(err, e)
			}
		}
	}
	return done, list, err
}

// TestAll reports whether all requests are done (MPI_Testall).
func TestAll(rs ...*Request) ([]Status, bool, error) {
	if c := firstActiveComm(rs); c != nil && !c.base.Engine.Test(allRequests(rs)) {
		return nil, false, nil
	}
	list, err := WaitAll(rs...)
	return list, true, err
}

// TestAny reports whether a request is done, and returns its index (MPI_Testany).
func TestAny(rs ...*Request) (int, Status, bool, error) {
	c := firstActiveComm(rs)
	if c == nil {
		i, s, err := takeUnstarted(rs)
		return i, s, true, err
	}
	one := &anyRequest{rs: rs}
	if !c.base.Engine.Test(one) {
		return Undefined, Status{}, false, nil
	}
	s, err := rs[one.index].takeResult()
	return one.index, s, true, err
}

// TestSome returns the indices of the requests that are done (MPI_Testsome). They are nil if
// none is, also if all requests are null or inactive.
func TestSome(rs ...*Request) (done []int, list []Status, err error) {
	first, s, _, err := TestAny(rs...)
	if first == Undefined {
		return nil, nil, err
	}
	return collectDone(rs, first, s, err)
}

// allRequests is ready when all requests are done.
type allRequests []*Request

func (a allRequests) Ready() bool {
	for _, r := range a {
		if r != nil && !r.isDone() {
			return false
		}
	}
	return true
}

// Status describes a message that was received or found by Probe (MPI_Status).
type Status struct {
	Source   int // rank in the communicator
	Tag      int
	Bytes    int // length of the message; of a truncated one, length of the buffer
	Canceled bool
}

// Count returns the number of elements of the kind of b in the message, Undefined if the
// message is not a whole number of them (MPI_Get_count).
func (s Status) Count(b Buffer) int {
	n := b.data.ElementSize()
	if n == 0 || s.Bytes%n != 0 {
		return Undefined
	}
	return s.Bytes / n
}

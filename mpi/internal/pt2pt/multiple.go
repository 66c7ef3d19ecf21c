package pt2pt

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/engine"
)

// Waits for several requests (MPI 4.1, 3.7.5). Null and inactive requests are ignored.

// anyRequest is ready when one of several requests is done; index is that of the first of them.
type anyRequest struct {
	rs    []*Request
	index int
}

// Ready implements engine.Waitable.
func (s *anyRequest) Ready() bool {
	for i, r := range s.rs {
		if !r.isInactive() && r.Ready() {
			s.index = i
			return true
		}
	}
	return false
}

// allRequests is ready when all requests are done.
type allRequests []*Request

// Ready implements engine.Waitable.
func (a allRequests) Ready() bool {
	for _, r := range a {
		if !r.Ready() {
			return false
		}
	}
	return true
}

// engineOf returns the engine of the first active request on a communicator that is not null, nil
// if there is none.
func engineOf(rs []*Request) *engine.Engine {
	for _, r := range rs {
		if !r.isInactive() && !r.comm.isNull() {
			return r.comm.Engine
		}
	}
	return nil
}

// takeUnstarted returns the result of the first request that failed before it started because
// its communicator was null, comm.Undefined if all requests are null or inactive.
func takeUnstarted(rs []*Request) (int, Status, error) {
	for i, r := range rs {
		if !r.isInactive() {
			s, err := r.takeResult()
			return i, s, err
		}
	}
	return comm.Undefined, emptyStatus, nil
}

// WaitAny waits for one of the requests and returns its index, comm.Undefined if all are null or
// inactive.
func WaitAny(rs []*Request) (int, Status, error) {
	e := engineOf(rs)
	if e == nil {
		return takeUnstarted(rs)
	}
	one := &anyRequest{rs: rs}
	if err := e.Wait(context.Background(), one); err != nil {
		return comm.Undefined, Status{}, err
	}
	s, err := rs[one.index].takeResult()
	return one.index, s, err
}

// TestAny reports whether a request is done, and returns its index. If all are null or inactive,
// the index is comm.Undefined, with true.
func TestAny(rs []*Request) (int, Status, bool, error) {
	e := engineOf(rs)
	if e == nil {
		i, s, err := takeUnstarted(rs)
		return i, s, true, err
	}
	one := &anyRequest{rs: rs}
	if !e.Test(one) {
		return comm.Undefined, Status{}, false, nil
	}
	s, err := rs[one.index].takeResult()
	return one.index, s, true, err
}

// WaitSome waits for at least one of the requests, calls add with the index and the status of each
// that is done, in their order, and joins their errors.
func WaitSome(rs []*Request, add func(i int, s Status)) error {
	first, s, err := WaitAny(rs)
	return addDone(rs, first, s, err, add)
}

// TestSome is WaitSome that does not wait.
func TestSome(rs []*Request, add func(i int, s Status)) error {
	first, s, _, err := TestAny(rs)
	return addDone(rs, first, s, err, add)
}

// addDone calls add with the first request, whose result is s and err, and with those that are done
// beside it. It does nothing if first is comm.Undefined.
func addDone(rs []*Request, first int, s Status, err error, add func(int, Status)) error {
	if first == comm.Undefined {
		return err
	}
	for i, r := range rs {
		switch {
		case i == first:
			add(i, s)
		case !r.isInactive() && (r.neverStarted || r.comm.Engine.Test(r)):
			s, e := r.takeResult()
			add(i, s)
			err = errors.Join(err, e)
		}
	}
	return err
}

// TestAll reports whether all requests are done.
func TestAll(rs []*Request) bool {
	e := engineOf(rs)
	return e == nil || e.Test(allRequests(rs))
}

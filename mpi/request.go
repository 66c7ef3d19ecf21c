package mpi

import (
	"context"
	"errors"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/pt2pt"
)

// Request is a communication in progress (MPI_Request). The program must not touch its buffer,
// or of a send not write to it, until Wait or Test has returned that it is done. A Request may
// be used by one goroutine at a time, except by Pready, PreadyRange, PreadyList and Parrived.
//
// The nil pointer is the null request (MPI_REQUEST_NULL). It is done, with the empty status:
// source AnySource, tag AnyTag and 0 bytes.
type Request struct{ request pt2pt.Request }

// core returns the request below the handle, at the same address: nil for nil.
func (r *Request) core() *pt2pt.Request { return (*pt2pt.Request)(unsafe.Pointer(r)) }

// handleOf returns the handle of a request.
func handleOf(r *pt2pt.Request) *Request { return (*Request)(unsafe.Pointer(r)) }

// coresOf returns the requests below a list of handles, in the memory of the list.
func coresOf(rs []*Request) []*pt2pt.Request {
	return unsafe.Slice((**pt2pt.Request)(unsafe.Pointer(unsafe.SliceData(rs))), len(rs))
}

// Wait waits until the request is done (MPI_Wait).
func (r *Request) Wait() (Status, error) { return r.WaitContext(context.Background()) }

// WaitContext is Wait that ends when ctx ends; a nil ctx never ends. The request continues.
func (r *Request) WaitContext(ctx context.Context) (Status, error) {
	s, err := r.core().WaitContext(ctx)
	return Status(s), err
}

// Test reports whether the request is done, and returns its status (MPI_Test).
func (r *Request) Test() (Status, bool, error) {
	s, done, err := r.core().Test()
	return Status(s), done, err
}

// Cancel cancels a receive that has not matched a message (MPI_Cancel) and reports whether it
// did; Wait then returns ErrCanceled. Sends cannot be canceled.
func (r *Request) Cancel() bool { return r.core().Cancel() }

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

// WaitAny waits for one of the requests and returns its index (MPI_Waitany), Undefined if all
// are nil or inactive. Set the request to nil before the next call.
func WaitAny(rs ...*Request) (int, Status, error) {
	i, s, err := pt2pt.WaitAny(coresOf(rs))
	return i, Status(s), err
}

// WaitSome waits for at least one of the requests and returns the indices of all that are done
// (MPI_Waitsome).
func WaitSome(rs ...*Request) (done []int, list []Status, err error) {
	err = pt2pt.WaitSome(coresOf(rs), func(i int, s pt2pt.Status) { done, list = append(done, i), append(list, Status(s)) })
	return done, list, err
}

// TestAll reports whether all requests are done (MPI_Testall).
func TestAll(rs ...*Request) ([]Status, bool, error) {
	if !pt2pt.TestAll(coresOf(rs)) {
		return nil, false, nil
	}
	list, err := WaitAll(rs...)
	return list, true, err
}

// TestAny reports whether a request is done, and returns its index (MPI_Testany).
func TestAny(rs ...*Request) (int, Status, bool, error) {
	i, s, done, err := pt2pt.TestAny(coresOf(rs))
	return i, Status(s), done, err
}

// TestSome returns the indices of the requests that are done (MPI_Testsome). They are nil if
// none is, also if all requests are null or inactive.
func TestSome(rs ...*Request) (done []int, list []Status, err error) {
	err = pt2pt.TestSome(coresOf(rs), func(i int, s pt2pt.Status) { done, list = append(done, i), append(list, Status(s)) })
	return done, list, err
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

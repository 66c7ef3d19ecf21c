// Package sendqueue writes to a connection in a goroutine, so that a peer that does not
// read blocks no sender.
//
//	q := sendqueue.New(conn, sendqueue.Options{Limit: 1 << 20})
//	q.Append(reply)
//	q.CloseAfterFlush() // or q.Close()
package sendqueue

import (
	"errors"
	"io"
	"sync"
)

// ErrFull reports that the peer did not read, and the queue reached its limit.
var ErrFull = errors.New("send queue is full")

// Options are the options of a queue. The zero value is an unbounded queue.
type Options struct {
	// Limit is the maximum number of queued bytes. A longer queue is dropped and closed.
	Limit int

	// Written is called with the number of bytes after each write, also after failed ones.
	Written func(n int)
}

// A Queue is a queue of bytes to write. It is safe for concurrent use.
type Queue struct {
	to      io.WriteCloser
	options Options
	done    chan struct{}

	mu     sync.Mutex
	more   sync.Cond
	b      []byte
	closed bool
	err    error
}

// New returns a queue to a destination, which the queue closes.
func New(to io.WriteCloser, o Options) *Queue {
	q := &Queue{to: to, options: o, done: make(chan struct{})}
	q.more.L = &q.mu
	go q.writeQueued()
	return q
}

// Append queues a copy of b. It does nothing after the queue is closed.
func (q *Queue) Append(b []byte) {
	q.AppendFunc(func(queued []byte) []byte { return append(queued, b...) })
}

// AppendFunc queues the bytes that f appends to its argument.
func (q *Queue) AppendFunc(f func([]byte) []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.b = f(q.b)
	if q.options.Limit > 0 && len(q.b) > q.options.Limit {
		q.closeLocked(ErrFull)
	}
	q.more.Signal()
}

// CloseAfterFlush closes the destination after the queued bytes.
func (q *Queue) CloseAfterFlush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Signal()
}

// Close drops the queued bytes and closes the destination.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closeLocked(nil)
	q.more.Signal()
}

func (q *Queue) closeLocked(err error) {
	q.closed, q.b = true, nil
	if q.err == nil {
		q.err = err
	}
	q.to.Close()
}

// Err returns ErrFull if the queue has reached its limit, or the error of a write that closed it.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Done returns a channel that is closed when the queue writes no more.
func (q *Queue) Done() <-chan struct{} { return q.done }

// writeQueued writes until the queue is closed. A write error closes the queue, but one
// with Written goes on without writing.
func (q *Queue) writeQueued() {
	defer close(q.done)
	defer q.to.Close()
	failed := false
	for {
		q.mu.Lock()
		for len(q.b) == 0 && !q.closed {
			q.more.Wait()
		}
		b := q.b
		q.b = nil
		q.mu.Unlock()
		if len(b) == 0 {
			return
		}
		if !failed {
			_, err := q.to.Write(b)
			failed = err != nil
			if failed && q.options.Written == nil {
				q.mu.Lock()
				q.closeLocked(err)
				q.mu.Unlock()
				return
			}
		}
		if q.options.Written != nil {
			q.options.Written(len(b))
		}
	}
}

package frame

import (
	"encoding/json"
	"io"
	"sync"
)

// Queue writes frames in a goroutine, so that nobody waits for who does not read.
// Senders bound what they send: by credit, or by what they were asked.
type Queue struct {
	more sync.Cond
	done chan struct{}

	mu     sync.Mutex
	b      []byte
	closed bool
}

// NewQueue makes a queue to w, which it closes after the last frame.
func NewQueue(w io.WriteCloser) *Queue {
	q := &Queue{done: make(chan struct{})}
	q.more.L = &q.mu
	go q.writeQueued(w)
	return q
}

// Send queues a frame. After Close, or when nobody reads any more, it is nothing.
func (q *Queue) Send(kind Kind, rank int, b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.b = appendFrame(q.b, kind, rank, b)
		q.more.Signal()
	}
}

// SendJSON queues a frame with a value.
func (q *Queue) SendJSON(kind Kind, rank int, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		q.Send(kind, rank, b)
	}
	return err
}

// Close writes what is queued, in the goroutine, and then closes.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Signal()
}

// Done is closed when nothing is written any more.
func (q *Queue) Done() <-chan struct{} { return q.done }

func (q *Queue) writeQueued(w io.WriteCloser) {
	defer close(q.done)
	defer w.Close()
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
		if _, err := w.Write(b); err != nil { // the reader of the other direction finds out
			q.mu.Lock()
			q.closed, q.b = true, nil
			q.mu.Unlock()
			return
		}
	}
}

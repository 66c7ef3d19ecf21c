package frame

import (
	"encoding/json"
	"io"
	"sync"
)

// A Queue writes frames in a goroutine, so that a peer that does not read blocks no sender.
// Senders bound the queued bytes: by credit, or by replying to requests only.
type Queue struct {
	more sync.Cond
	done chan struct{}

	mu     sync.Mutex
	b      []byte
	closed bool
}

// NewQueue returns a Queue to w, which it closes after the last frame.
func NewQueue(w io.WriteCloser) *Queue {
	q := &Queue{done: make(chan struct{})}
	q.more.L = &q.mu
	go q.writeQueued(w)
	return q
}

// Send queues a copy of a frame. It does nothing after Close or a write error.
func (q *Queue) Send(kind Kind, rank int, b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.b = appendFrame(q.b, kind, rank, b)
		q.more.Signal()
	}
}

// SendJSON queues a frame with v as JSON.
func (q *Queue) SendJSON(kind Kind, rank int, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		q.Send(kind, rank, b)
	}
	return err
}

// Close makes the goroutine close the destination after the queued frames.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Signal()
}

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
		if _, err := w.Write(b); err != nil { // the reader of the other direction reports the failure
			q.mu.Lock()
			q.closed, q.b = true, nil
			q.mu.Unlock()
			return
		}
	}
}

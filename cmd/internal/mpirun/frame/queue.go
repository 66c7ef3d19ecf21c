package frame

import (
	"encoding/json"
	"io"

	"github.com/softrnic/softrnic/internal/sendqueue"
)

// A Queue writes frames in a goroutine, so that a peer that does not read blocks no sender.
// Senders bound the queued bytes: by credit, or by replying to requests only.
type Queue struct{ q *sendqueue.Queue }

// NewQueue returns a Queue to w, which it closes after the last frame.
func NewQueue(w io.WriteCloser) *Queue { return &Queue{sendqueue.New(w, sendqueue.Options{})} }

// Send queues a copy of a frame. It does nothing after Close or a write error, which the reader of
// the other direction reports.
func (q *Queue) Send(kind Kind, rank int, b []byte) {
	q.q.AppendFunc(func(queued []byte) []byte { return appendFrame(queued, kind, rank, b) })
}

// SendJSON queues a frame with v as JSON.
func (q *Queue) SendJSON(kind Kind, rank int, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		q.Send(kind, rank, b)
	}
	return err
}

// Close makes the queue close the destination after the queued frames.
func (q *Queue) Close() { q.q.CloseAfterFlush() }

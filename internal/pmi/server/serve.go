package server

import (
	"errors"
	"io"
	"net"
	"sync"
)

// maxUnread is the maximum length of the send queue of a rank in bytes: more than the
// replies to all its possible requests.
const maxUnread = 1 << 20

// errNotReading says that a rank sends requests without reading the replies.
var errNotReading = errors.New("rank does not read the replies")

// Serve serves a rank on a connection until the rank closes it or violates the
// protocol, which is the error. It closes the connection.
func (j *Job) Serve(rank int, c io.ReadWriteCloser) error {
	out := newSendQueue(c)
	defer out.close()
	s, err := j.Attach(rank, out.enqueue)
	if err != nil {
		return err
	}
	chunk := make([]byte, 4096)
	for {
		n, err := c.Read(chunk)
		if wrong := s.Feed(chunk[:n]); wrong != nil {
			return wrong
		}
		switch {
		case out.firstError() != nil:
			return out.firstError()
		case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
	}
}

// A sendQueue writes to a connection without blocking the sender.
type sendQueue struct {
	to   io.WriteCloser
	more sync.Cond
	done chan struct{}

	mu     sync.Mutex
	queue  []byte
	closed bool
	err    error
}

func newSendQueue(to io.WriteCloser) *sendQueue {
	o := &sendQueue{to: to, done: make(chan struct{})}
	o.more.L = &o.mu
	go o.writeLoop()
	return o
}

func (o *sendQueue) enqueue(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if len(o.queue)+len(b) > maxUnread {
		o.err, o.closed = errNotReading, true
		o.to.Close()
	} else {
		o.queue = append(o.queue, b...)
	}
	o.more.Signal()
}

func (o *sendQueue) firstError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *sendQueue) writeLoop() {
	defer close(o.done)
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closed {
			o.more.Wait()
		}
		b := o.queue
		o.queue = nil
		end := o.closed && len(b) == 0 || o.err != nil
		o.mu.Unlock()
		if end {
			return
		}
		if _, err := o.to.Write(b); err != nil {
			return // the reader gets the error
		}
	}
}

// close closes the connection at once and discards the queue.
func (o *sendQueue) close() {
	o.mu.Lock()
	o.closed, o.queue = true, nil
	o.more.Signal()
	o.mu.Unlock()
	o.to.Close()
	<-o.done
}

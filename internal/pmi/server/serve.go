package server

import (
	"errors"
	"io"
	"net"
	"sync"
)

// maxUnread is how many bytes may wait for a rank that does not read them: more
// than all answers to what it can have asked.
const maxUnread = 1 << 20

// errNotReading says that a rank asks and does not read the answers.
var errNotReading = errors.New("it asks without reading the answers")

// Serve serves a rank on a connection, until the rank closes it or sends what is
// not PMI, which is the error. It closes the connection.
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

// sendQueue writes to a connection, so that nobody waits for who does not read.
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
			return // the reader finds out
		}
	}
}

// close ends the connection at once; what is not written is not wanted any more.
func (o *sendQueue) close() {
	o.mu.Lock()
	o.closed, o.queue = true, nil
	o.more.Signal()
	o.mu.Unlock()
	o.to.Close()
	<-o.done
}

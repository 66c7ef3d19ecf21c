package agent

import (
	"io"
	"sync"
)

// maxQueued is the maximum number of bytes queued for a rank that does not read. The launcher
// stays below it: it sends input by credit, and PMI replies on request.
const maxQueued = 1 << 20

// An asyncWriter writes to a rank in a goroutine, so that a rank that does not read blocks no
// other.
type asyncWriter struct {
	to      io.WriteCloser
	written func(n int) // may be nil
	more    sync.Cond

	mu     sync.Mutex
	b      []byte
	closed bool
}

func newAsyncWriter(to io.WriteCloser, written func(n int)) *asyncWriter {
	o := &asyncWriter{to: to, written: written}
	o.more.L = &o.mu
	go o.writeQueued()
	return o
}

// enqueue copies b to the queue. A queue longer than maxQueued is dropped and closed.
func (o *asyncWriter) enqueue(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if len(o.b)+len(b) > maxQueued {
		o.closed, o.b = true, nil
	} else {
		o.b = append(o.b, b...)
	}
	o.more.Signal()
}

// closeAfterFlush closes the destination after the queued bytes.
func (o *asyncWriter) closeAfterFlush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}

// closeNow drops the queue and closes the destination.
func (o *asyncWriter) closeNow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.b = true, nil
	o.more.Signal()
	o.to.Close()
}

func (o *asyncWriter) writeQueued() {
	defer o.to.Close()
	broken := false
	for {
		o.mu.Lock()
		for len(o.b) == 0 && !o.closed {
			o.more.Wait()
		}
		b := o.b
		o.b = nil
		o.mu.Unlock()
		if len(b) == 0 {
			return
		}
		if !broken {
			_, err := o.to.Write(b)
			broken = err != nil // the rank reads no more: drop the rest
		}
		if o.written != nil {
			o.written(len(b))
		}
	}
}

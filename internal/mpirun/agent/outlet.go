package agent

import (
	"io"
	"sync"
)

// maxQueued is how much waits for a rank that does not read. The launcher sends
// less: input by credit, and PMI as asked.
const maxQueued = 1 << 20

// asyncWriter writes to a rank in a goroutine.
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

// enqueue queues bytes; they are copied.
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

// closeAfterFlush closes after what is queued.
func (o *asyncWriter) closeAfterFlush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}

// closeNow closes at once.
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
			broken = err != nil // the rank reads no more; what comes is nothing
		}
		if o.written != nil {
			o.written(len(b))
		}
	}
}

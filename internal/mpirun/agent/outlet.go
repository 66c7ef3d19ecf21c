package agent

import (
	"io"
	"sync"
)

// maxUnread is how much waits for a rank that does not read. The launcher sends
// less: input by credit, and PMI as asked.
const maxUnread = 1 << 20

// outlet writes to a rank in a goroutine.
type outlet struct {
	to      io.WriteCloser
	written func(n int) // may be nil
	more    sync.Cond

	mu     sync.Mutex
	b      []byte
	closed bool
}

func newOutlet(to io.WriteCloser, written func(n int)) *outlet {
	o := &outlet{to: to, written: written}
	o.more.L = &o.mu
	go o.run()
	return o
}

// put queues bytes; they are copied.
func (o *outlet) put(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if len(o.b)+len(b) > maxUnread {
		o.closed, o.b = true, nil
	} else {
		o.b = append(o.b, b...)
	}
	o.more.Signal()
}

// finish closes after what is queued.
func (o *outlet) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}

// drop closes at once.
func (o *outlet) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.b = true, nil
	o.more.Signal()
	o.to.Close()
}

func (o *outlet) run() {
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

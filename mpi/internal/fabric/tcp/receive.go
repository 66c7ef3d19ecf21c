package tcp

import (
	"io"

	"github.com/softrnic/softrnic/internal/sched"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// A receiver is the receiving side of a Fabric with a poller. It belongs to the leader,
// also in Block without the lock, or to the caller of Poll while no goroutine leads; the
// same holds for link.in.
type receiver struct {
	polls   uint64
	idle    int           // consecutive calls of Poll without events
	ready   int           // sockets of the poller with events that are not handled
	read    readResult    // that is not handled
	hot     *link         // that received last
	repeats int           // consecutive receives of hot
	inputs  [][]byte      // free buffers of link.in
	spinner sched.Spinner // of Block
}

// A readResult is the result of a read to link.in.
type readResult struct {
	l   *link // nil if there is none
	n   int
	err error
}

// Often the next packet comes from the rank that sent the last one. Then all polls but
// one in fullPollInterval only read from it, which is cheaper than to ask the poller
// first.
const (
	minRepeats       = 2
	fullPollInterval = 4
)

// hasEvents reports whether there are events to handle.
func (r *receiver) hasEvents() bool { return r.ready > 0 || r.read.l != nil }

// pollSockets finds sockets with events, or reads from one, and reports whether there is
// something to handle.
func (f *Fabric) pollSockets() bool {
	if f.polls++; f.repeats >= minRepeats && f.polls%fullPollInterval != 0 {
		f.receiveFrom(f.hot)
	} else if n, err := f.poller.waitEvents(true); err == nil { // an error is lack of memory
		f.ready = n
	}
	return f.hasEvents()
}

// receiveFrom reads once from a socket.
func (f *Fabric) receiveFrom(l *link) {
	if l.in.b == nil {
		l.in.b = f.allocInput()
	}
	n, err := l.socket.readOnce(l.in.freeSpace())
	if n > 0 || err != nil {
		f.read = readResult{l, n, err}
	}
}

// handleEvents handles the events. It is called with the lock held.
func (f *Fabric) handleEvents() {
	f.handleReadResult()
	n := f.ready
	f.ready = 0
	for i := range n {
		rank, readable, writable := f.poller.eventAt(i)
		l := f.links[rank]
		if writable && !l.failed {
			l.continueWriting()
		}
		if readable && !l.failed {
			f.receiveFrom(l)
			f.handleReadResult()
		}
	}
}

// handleReadResult handles the result of receiveFrom.
func (f *Fabric) handleReadResult() {
	r := f.read
	if r.l == nil {
		return
	}
	f.read = readResult{}
	if f.hot != r.l {
		if f.hot != nil {
			f.releaseInput(f.hot)
		}
		f.hot, f.repeats = r.l, 0
	}
	f.repeats++
	if !r.l.failed {
		r.l.handleRead(&r.l.in, r.n, r.err)
	}
	if r.l.failed {
		r.l.in.r = r.l.in.w
		f.releaseInput(r.l)
		f.hot, f.repeats = nil, 0
	}
}

// handleRead handles the result of a read to in.freeSpace.
func (l *link) handleRead(in *input, n int, err error) {
	in.w += n
	if n > 0 {
		l.markAlive()
	}
	if handled := l.handleInput(in); handled != nil {
		err = handled
	} else if err == io.EOF && in.r < in.w {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		l.f.failLink(l, err)
	}
}

// inputSize returns the size of a buffer for reads: two packets or more.
func (f *Fabric) inputSize() int {
	return max(128<<10, 2*(envelope.Size+max(f.o.Eager, maxFramePayload)))
}

// allocInput allocates a buffer for reads. Few are in use at a time: those of the hot link
// and of links with a packet that is not complete.
func (f *Fabric) allocInput() []byte {
	if n := len(f.inputs) - 1; n >= 0 {
		b := f.inputs[n]
		f.inputs = f.inputs[:n]
		return b
	}
	return make([]byte, f.inputSize())
}

// releaseInput frees the buffer of a link, if it is empty.
func (f *Fabric) releaseInput(l *link) {
	if l.in.b != nil && l.in.r == l.in.w {
		f.inputs = append(f.inputs, l.in.b)
		l.in = input{}
	}
}

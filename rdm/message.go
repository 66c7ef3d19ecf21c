package rdm

import (
	"context"
	"io"

	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/reliability/nack"
)

// The first byte of a message says what it is; see request.go for the others. Three
// bytes of 0 follow it.
const (
	tagSize    = 4
	tagMessage = 'M'
)

var messageTag = []byte{tagMessage, 0, 0, 0}

// Send sends a message, which is copied: it returns when there is room for it, and
// the message arrives whole, once and in order, or the peer is lost, which later
// calls report as a *PeerError.
func (p *Peer) Send(ctx context.Context, message []byte) error {
	e := p.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		ok, err := p.sendLocked(message)
		if err != nil || ok {
			return err
		}
		if err := e.waitUntil(ctx, func() bool { return !p.full || p.err != nil }); err != nil {
			return err
		}
	}
}

// TrySend is Send that does not wait: without room it returns false.
func (p *Peer) TrySend(message []byte) (bool, error) {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	ok, err := p.sendLocked(message)
	if !ok && err == nil && p.e.poll() {
		return p.sendLocked(message)
	}
	return ok, err
}

// WaitWritable waits until there may be room again for what TrySend has refused, or the peer is gone.
func (p *Peer) WaitWritable(ctx context.Context) error {
	e := p.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waitUntil(ctx, func() bool { return !p.full || p.err != nil })
}

func (p *Peer) sendLocked(message []byte) (bool, error) {
	e := p.e
	switch {
	case e.err != nil:
		return false, e.err
	case p.err != nil:
		return false, p.err
	}
	switch err := e.core.Send(e.port.Now(), p.number, messageTag, message); err {
	case nil:
		e.flush()
		return true, nil
	case nack.ErrWouldBlock:
		p.full = true
		e.flush() // a question who it is may leave
		return false, nil
	case nack.ErrTooLong:
		return false, ErrTooLong
	case nack.ErrFault:
		return false, ErrLocal
	default:
		return false, &PeerError{p.at, err}
	}
}

// Recv waits for the next message of any peer, copies it to buf, and returns its
// length. One that is longer than buf is io.ErrShortBuffer with that length, and
// stays.
func (e *Endpoint) Recv(ctx context.Context, buf []byte) (n int, from *Peer, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if m := e.inbox.front(); m != nil {
			if n = len(m.b); n > len(buf) {
				return n, m.from, io.ErrShortBuffer
			}
			if !place.Load(buf[:n], m.b) {
				return 0, m.from, ErrLocal
			}
			from = m.from
			e.inbox.pop()
			return n, from, nil
		}
		sink := &waitingRecv{buf: buf}
		if e.inbox.waiting == nil {
			e.inbox.waiting = sink
		}
		err := e.waitUntil(ctx, func() bool { return sink.from != nil || len(e.inbox.queue) > e.inbox.head })
		if e.inbox.waiting == sink {
			e.inbox.waiting = nil
		}
		if sink.from != nil {
			return sink.n, sink.from, nil
		}
		if err != nil {
			return 0, nil, err
		}
	}
}

// recvQueue has messages that have come and nobody has received yet.
type recvQueue struct {
	queue       []message
	head        int
	bytes       int
	freeBuffers [][]byte
	waiting     *waitingRecv // of one who waits
}

type message struct {
	from *Peer
	b    []byte
}

// waitingRecv is the buffer of one who waits for a message, which goes there at once.
type waitingRecv struct {
	buf  []byte
	n    int
	from *Peer // nil: nothing has come
}

// maxFreeBuffers is how many buffers are kept to be used again.
const maxFreeBuffers = 64

// queueCost is what a message counts for in Options.Backlog, in bytes.
func queueCost(b []byte) int { return len(b) + 64 }

func (q *recvQueue) push(from *Peer, b []byte) {
	if s := q.waiting; s != nil && q.head == len(q.queue) && len(b) <= len(s.buf) {
		q.waiting = nil
		if place.Load(s.buf[:len(b)], b) {
			s.n, s.from = len(b), from
			return
		}
		// Recv finds it in the queue, and fails.
	}
	var m []byte
	if n := len(q.freeBuffers); n > 0 {
		m, q.freeBuffers = q.freeBuffers[n-1], q.freeBuffers[:n-1]
	}
	m = append(m, b...)
	if q.head > 0 && len(q.queue) == cap(q.queue) {
		n := copy(q.queue, q.queue[q.head:])
		clear(q.queue[n:])
		q.queue, q.head = q.queue[:n], 0
	}
	q.queue = append(q.queue, message{from, m})
	q.bytes += queueCost(m)
}

func (q *recvQueue) front() *message {
	if q.head == len(q.queue) {
		return nil
	}
	return &q.queue[q.head]
}

func (q *recvQueue) pop() {
	m := &q.queue[q.head]
	q.bytes -= queueCost(m.b)
	if len(q.freeBuffers) < maxFreeBuffers {
		q.freeBuffers = append(q.freeBuffers, m.b[:0])
	}
	*m = message{}
	if q.head++; q.head == len(q.queue) {
		q.queue, q.head = q.queue[:0], 0
	}
}

package rdm

import (
	"context"
	"io"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/internal/place"
)

// The first byte of a message is its type, see also opmessage.go. Three bytes of 0
// follow it.
const (
	tagSize    = 4
	tagMessage = 'M'
)

var messageTag = []byte{tagMessage, 0, 0, 0}

// Send sends a message. The message is copied. Send blocks until there is space
// in the window. The message arrives exactly once and in order, or the peer
// fails, which later calls report as a *PeerError.
func (p *Peer) Send(ctx context.Context, message []byte) error {
	e := p.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if err := p.sendLocked(message); err != ErrWouldBlock {
			return err
		}
		if err := e.progress.Wait(ctx, (*writable)(p)); err != nil {
			return err
		}
	}
}

// TrySend is like Send but does not block. It returns ErrWouldBlock if there is
// no space; WaitWritable waits for some.
func (p *Peer) TrySend(message []byte) error {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	err := p.sendLocked(message)
	if err == ErrWouldBlock && p.e.progress.Poll() {
		return p.sendLocked(message)
	}
	return err
}

// WaitWritable blocks until there may be space for the message for which TrySend
// returned ErrWouldBlock, or the peer has failed.
func (p *Peer) WaitWritable(ctx context.Context) error {
	e := p.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.progress.Wait(ctx, (*writable)(p))
}

// writable is the condition that there may be space for a message to the peer,
// or that the peer has failed.
type writable Peer

// Ready implements progress.Waitable.
func (p *writable) Ready() bool { return !p.full || p.err != nil }

// sendLocked sends a message or returns ErrWouldBlock, unwrapped. e.mu must be
// held.
func (p *Peer) sendLocked(message []byte) error {
	e := p.e
	switch {
	case e.err != nil:
		return e.err
	case p.err != nil:
		return p.err
	}
	switch err := e.core.Send(e.port.Now(), p.number, messageTag, message); err {
	case nil:
		e.flush()
		return nil
	case nack.ErrWouldBlock:
		p.full = true
		e.flush() // a handshake may be pending
		return ErrWouldBlock
	case nack.ErrTooLong:
		return ErrTooLong
	case nack.ErrFault:
		return ErrLocal
	default:
		return &PeerError{p.at, err}
	}
}

// Recv waits for the next message of any peer, copies it to buf and returns its
// length. If the message is longer than buf, Recv returns its length and
// io.ErrShortBuffer, and keeps the message.
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
		sink := &waitingRecv{e: e, buf: buf}
		err := e.waitMessage(ctx, sink)
		if err == nil && sink.from == nil && e.inbox.front() == nil {
			err = e.err
		}
		if sink.from != nil {
			return sink.n, sink.from, nil
		}
		if err != nil {
			return 0, nil, err
		}
	}
}

// waitMessage waits for a message, which arrives in sink if no other Recv waits.
func (e *Endpoint) waitMessage(ctx context.Context, sink *waitingRecv) error {
	if e.inbox.waiting == nil {
		e.inbox.waiting = sink
		defer func() { // also if a method of the program's context panics
			if e.inbox.waiting == sink {
				e.inbox.waiting = nil
			}
		}()
	}
	return e.progress.Wait(ctx, sink)
}

// A recvQueue holds messages that are not received yet.
type recvQueue struct {
	queue       []message
	head        int
	bytes       int
	freeBuffers [][]byte
	waiting     *waitingRecv // of a blocked Recv
}

type message struct {
	from *Peer
	b    []byte
}

// A waitingRecv is the buffer of a blocked Recv. A message is copied to it
// directly.
type waitingRecv struct {
	e    *Endpoint
	buf  []byte
	n    int
	from *Peer // nil until a message has arrived
}

// Ready implements progress.Waitable.
func (s *waitingRecv) Ready() bool {
	return s.from != nil || s.e.inbox.front() != nil || s.e.err != nil
}

// maxFreeBuffers is the length limit of the free list.
const maxFreeBuffers = 64

// queueCost returns the size of a message in Options.Backlog in bytes.
func queueCost(b []byte) int { return len(b) + 64 }

func (q *recvQueue) push(from *Peer, b []byte) {
	if s := q.waiting; s != nil && q.head == len(q.queue) && len(b) <= len(s.buf) {
		q.waiting = nil
		if place.Load(s.buf[:len(b)], b) {
			s.n, s.from = len(b), from
			return
		}
		// Recv finds the message in the queue and returns ErrLocal.
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

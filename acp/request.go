package acp

import (
	"context"

	"github.com/softrnic/softrnic/acp/internal/fabric"
)

// Request is a send, a receive or the freeing of a channel under way (acp_request_t).
type Request struct {
	ch  *Channel
	buf []byte
	mr  direct // of a send that leaves from where it is
	// of a receive whose message may come there without going through slots
	place fabric.Memory
	stays bool // it cannot be withdrawn
	kind  requestKind
	done  bool
	left  bool // a send: all of it was put, or copied
	n     int  // of a receive: bytes that have come
	err   error
	next  *Request
}

type requestKind uint8

const (
	sending requestKind = iota
	receiving
	freeing
)

func (k requestKind) String() string { return [...]string{"send", "receive", "free"}[k] }

// ready implements waitable.
func (r *Request) ready() bool { return r.done || r.ch.p.closed }

// Wait waits for the end of the request (acp_wait_ch). A send is complete when its buffer is free again,
// a receive when its message is there, whose size it returns: the smaller one if it and the
// buffer differ. A sender's end is freed when it has told the receiver, a receiver's when it has
// heard of that.
func (r *Request) Wait(ctx context.Context) (n int, err error) {
	if r == nil || r.ch.isNull() {
		return 0, (*Process)(nil).wrong("wait", "for a request", ErrNull)
	}
	p := r.ch.p
	p.mu.Lock()
	defer p.unlock()
	if err := p.wait(ctx, r); err != nil {
		return 0, p.wrong(r.kind.String(), "on "+r.ch.String(), err)
	}
	return r.result()
}

// Test reports whether the request has come to its end, after a look at the network. Then Wait returns at
// once.
func (r *Request) Test() bool {
	if r == nil || r.ch.isNull() {
		return true
	}
	p := r.ch.p
	p.mu.Lock()
	defer p.unlock()
	p.visit()
	if !r.done {
		p.progress()
	}
	return r.done
}

func (r *Request) result() (int, error) {
	if !r.done {
		r.err = ErrClosed
	}
	if r.err != nil {
		return r.n, r.ch.p.wrong(r.kind.String(), "on "+r.ch.String(), r.err)
	}
	return r.n, nil
}

// end ends a request.
func (r *Request) end(err error) {
	r.withhold()
	r.done, r.err, r.buf = true, err, nil
	r.ch.p.turns.events++
}

// withhold takes the memory of a request from the adapters: nobody writes to the place of a receive any more, and what
// a send leaves from is known while puts are under way.
func (r *Request) withhold() {
	if r.place != nil {
		_ = r.place.Dereg()
		r.place = nil
	}
	if r.mr.mr != nil && r.mr.under == 0 {
		_ = r.mr.mr.Dereg()
		r.mr.mr = nil
	}
}

// push puts a request to the end of a channel's, and begins it. One that cannot be is at its end at once.
func (ch *Channel) push(kind requestKind, buf []byte, stays bool) *Request {
	if ch.isNull() {
		return nil
	}
	p := ch.p
	r := &Request{ch: ch, buf: buf, kind: kind, stays: stays}
	p.mu.Lock()
	defer p.unlock()
	p.visit()
	switch {
	case p.closed:
		r.end(ErrClosed)
	case ch.freed:
		r.end(ErrFreed)
	case kind == sending && ch.send == nil || kind == receiving && ch.recv == nil:
		r.end(ErrRole)
	case ch.err != nil:
		ch.freed = kind == freeing
		r.end(ch.err)
	default:
		ch.freed = kind == freeing
		if ch.first == nil {
			ch.first = r
		} else {
			ch.last.next = r
		}
		ch.last = r
		if ch.step() {
			p.channels.activate(ch)
		}
		ch.offer()
		if kind == sending || p.turns.events == p.turns.told { // an answer, or nothing that an answer may follow
			p.channels.pay()
		}
		p.flush()
	}
	return r
}

// withdraw takes back a receive that nothing has come for yet, so that the next one gets what comes. It reports
// whether it could.
func (r *Request) withdraw() bool {
	ch := r.ch
	ch.p.mu.Lock()
	defer ch.p.unlock()
	if r.done || r == ch.first && ch.recv.Halfway() {
		return false
	}
	var before *Request
	for q := ch.first; q != nil && q != r; q = q.next {
		before = q
	}
	if before == nil {
		ch.first = r.next
	} else {
		before.next = r.next
	}
	if ch.last == r {
		ch.last = before
	}
	r.next = nil
	r.end(context.Canceled)
	return true
}

// pop takes the first request.
func (ch *Channel) pop() *Request {
	r := ch.first
	if r != nil {
		ch.first, r.next = r.next, nil
	}
	return r
}

// Free ends the use of this end (acp_nbfree_ch), when what was asked of it before is done. A receiver drops what comes and was not received, until the sender frees its end, too. From now on
// nothing can be sent or received.
func (ch *Channel) Free() *Request { return ch.push(freeing, nil, true) }

// Send begins to send a message (acp_nbsend_ch). buf is not to be changed until the request is complete.
func (ch *Channel) Send(buf []byte) *Request { return ch.push(sending, buf, true) }

// Recv begins to receive the next message (acp_nbrecv_ch). buf is not to be touched until the request is complete. A message
// that is longer is cut off. ErrEnd says that the sender has freed its end, and no message follows.
func (ch *Channel) Recv(buf []byte) *Request { return ch.push(receiving, buf, true) }

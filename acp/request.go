package acp

import (
	"context"

	"github.com/softrnic/softrnic/acp/internal/fabric"
)

// Request is a send, a receive or the freeing of a channel under way (acp_request_t).
type Request struct {
	ch      *Channel
	buf     []byte
	sendMem sendMemory // of a send that leaves from where it is
	// of a receive whose message may come there without going through slots
	advertMem fabric.Memory
	committed bool // it cannot be withdrawn
	kind      requestKind
	done      bool
	sent      bool // a send: all of it was put, or copied
	n         int  // of a receive: bytes that have come
	err       error
	next      *Request
}

type requestKind uint8

const (
	sendKind requestKind = iota
	recvKind
	freeKind
)

func (k requestKind) String() string { return [...]string{"send", "receive", "free"}[k] }

// isReady implements waitable.
func (r *Request) isReady() bool { return r.done || r.ch.p.closed }

// Wait waits for the end of the request (acp_wait_ch). A send is complete when its buffer is free again,
// a receive when its message is there, whose size it returns: the smaller one if it and the
// buffer differ. A sender's end is freed when it has told the receiver, a receiver's when it has
// heard of that.
func (r *Request) Wait(ctx context.Context) (n int, err error) {
	if r == nil || r.ch.isNull() {
		return 0, (*Process)(nil).newError("wait", "for a request", ErrNull)
	}
	p := r.ch.p
	p.mu.Lock()
	defer p.unlockAndNotify()
	if err := p.waitFor(ctx, r); err != nil {
		return 0, p.newError(r.kind.String(), "on "+r.ch.String(), err)
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
	defer p.unlockAndNotify()
	p.noteActivity()
	if !r.done {
		p.pollProgress()
	}
	return r.done
}

func (r *Request) result() (int, error) {
	if !r.done {
		r.err = ErrClosed
	}
	if r.err != nil {
		return r.n, r.ch.p.newError(r.kind.String(), "on "+r.ch.String(), r.err)
	}
	return r.n, nil
}

// complete ends a request.
func (r *Request) complete(err error) {
	r.deregister()
	r.done, r.err, r.buf = true, err, nil
	r.ch.p.engine.events++
}

// deregister takes the memory of a request from the adapters: nobody writes to the place of a receive any more, and what
// a send leaves from is known while puts are under way.
func (r *Request) deregister() {
	if r.advertMem != nil {
		_ = r.advertMem.Dereg()
		r.advertMem = nil
	}
	if r.sendMem.mr != nil && r.sendMem.outstanding == 0 {
		_ = r.sendMem.mr.Dereg()
		r.sendMem.mr = nil
	}
}

// pushRequest puts a request to the end of a channel's, and begins it. One that cannot be is at its end at once.
func (ch *Channel) pushRequest(kind requestKind, buf []byte, stays bool) *Request {
	if ch.isNull() {
		return nil
	}
	p := ch.p
	r := &Request{ch: ch, buf: buf, kind: kind, committed: stays}
	p.mu.Lock()
	defer p.unlockAndNotify()
	p.noteActivity()
	switch {
	case p.closed:
		r.complete(ErrClosed)
	case ch.freed:
		r.complete(ErrFreed)
	case kind == sendKind && ch.send == nil || kind == recvKind && ch.recv == nil:
		r.complete(ErrRole)
	case ch.err != nil:
		ch.freed = kind == freeKind
		r.complete(ch.err)
	default:
		ch.freed = kind == freeKind
		if ch.first == nil {
			ch.first = r
		} else {
			ch.last.next = r
		}
		ch.last = r
		if ch.makeProgress() {
			p.channels.markActive(ch)
		}
		ch.advertiseReceives()
		if kind == sendKind || p.engine.events == p.engine.notified { // an answer, or nothing that an answer may follow
			p.channels.flushCredits()
		}
		p.flushPosted()
	}
	return r
}

// cancelRecv takes back a receive that nothing has come for yet, so that the next one gets what comes. It reports
// whether it could.
func (r *Request) cancelRecv() bool {
	ch := r.ch
	ch.p.mu.Lock()
	defer ch.p.unlockAndNotify()
	if r.done || r == ch.first && ch.recv.InMessage() {
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
	r.complete(context.Canceled)
	return true
}

// popRequest takes the first request.
func (ch *Channel) popRequest() *Request {
	r := ch.first
	if r != nil {
		ch.first, r.next = r.next, nil
	}
	return r
}

// Free ends the use of this end (acp_nbfree_ch), when what was asked of it before is done. A receiver drops what comes and was not received, until the sender frees its end, too. From now on
// nothing can be sent or received.
func (ch *Channel) Free() *Request { return ch.pushRequest(freeKind, nil, true) }

// Send begins to send a message (acp_nbsend_ch). buf is not to be changed until the request is complete.
func (ch *Channel) Send(buf []byte) *Request { return ch.pushRequest(sendKind, buf, true) }

// Recv begins to receive the next message (acp_nbrecv_ch). buf is not to be touched until the request is complete. A message
// that is longer is cut off. ErrEnd says that the sender has freed its end, and no message follows.
func (ch *Channel) Recv(buf []byte) *Request { return ch.pushRequest(recvKind, buf, true) }

package acp

import (
	"context"

	"github.com/softrnic/softrnic/acp/internal/fabric"
)

// Request is a send, a receive or a Free in progress (acp_request_t).
type Request struct {
	ch      *Channel
	buf     []byte
	sendMem sendMemory // of a zero-copy send
	// registration of an advertised receive buffer
	advertMem fabric.Memory
	committed bool // a receive that cannot be canceled
	kind      requestKind
	done      bool
	sent      bool // of a send: all data was put or copied
	n         int  // of a receive: bytes received
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

// requestDone is the condition that a request is complete.
type requestDone Request

// Ready implements progress.Waitable.
func (r *requestDone) Ready() bool { return (*Request)(r).isSettled() || r.ch.p.closed }

// isSettled reports whether the request is complete, and needs no further call of this rank: a message is
// with the adapter, and the EOF of a Free has arrived. Before that, an operation may wait for room in a send
// queue, for a connection or for a directory entry, and only calls of this rank would post it.
func (r *Request) isSettled() bool {
	switch {
	case !r.done || r.err != nil || r.ch.err != nil:
		return r.done
	case r.kind == sendKind:
		return !r.ch.hasUnposted()
	case r.kind == freeKind:
		return r.ch.outstanding == 0
	}
	return true
}

// Wait blocks until the request is complete (acp_wait_ch). A send is complete when its buffer may be reused.
// A receive is complete when its message has arrived; Wait returns its length, or the length of the buffer if
// that is smaller. The Free of a sender is complete when its messages and EOF have arrived at the receiver's
// adapter, that of a receiver when EOF has been received. After sends and Free the rank need not call anything
// else for the messages to arrive.
func (r *Request) Wait(ctx context.Context) (n int, err error) {
	if r == nil || r.ch.isNull() {
		return 0, (*Process)(nil).newError("wait", "for a request", ErrNull)
	}
	p := r.ch.p
	p.mu.Lock()
	defer p.unlockAndNotify()
	if err := p.waitFor(ctx, (*requestDone)(r)); err != nil {
		return 0, p.newError(r.kind.String(), "on "+r.ch.String(), err)
	}
	return r.result()
}

// Test polls the network once if necessary, and reports whether the request is complete. Wait does not block
// then.
func (r *Request) Test() bool {
	if r == nil || r.ch.isNull() {
		return true
	}
	p := r.ch.p
	p.mu.Lock()
	defer p.unlockAndNotify()
	if !r.isSettled() {
		p.pollProgress()
	}
	return r.isSettled()
}

// result returns the result of a complete request, or ErrClosed for an incomplete one.
func (r *Request) result() (int, error) {
	if !r.done {
		r.err = ErrClosed
	}
	if r.err != nil {
		return r.n, r.ch.p.newError(r.kind.String(), "on "+r.ch.String(), r.err)
	}
	return r.n, nil
}

func (r *Request) complete(err error) {
	r.deregister()
	r.done, r.err, r.buf = true, err, nil
	r.ch.p.changes++
}

// deregister invalidates the memory registrations of a request: no peer writes to an advertised buffer any
// more. The buffer of a send stays registered while puts read it.
func (r *Request) deregister() {
	if r.advertMem != nil {
		_ = r.advertMem.Close()
		r.advertMem = nil
	}
	if r.sendMem.mr != nil && r.sendMem.outstanding == 0 {
		_ = r.sendMem.mr.Close()
		r.sendMem.mr = nil
	}
}

// pushRequest appends a request and starts it. A request that cannot be started is complete at once.
func (ch *Channel) pushRequest(kind requestKind, buf []byte, committed bool) *Request {
	if ch.isNull() {
		return nil
	}
	p := ch.p
	r := &Request{ch: ch, buf: buf, kind: kind, committed: committed}
	p.mu.Lock()
	defer p.unlockAndNotify()
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
		if kind == sendKind || p.changes == p.notified { // a reply, or no event that a reply may follow
			p.channels.flushCredits()
		}
		p.flushPosted()
	}
	return r
}

// cancelRecv removes a receive for which no data has arrived, so that the next receive gets the message. It
// reports whether it did.
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

// popRequest removes and returns the first request, or nil.
func (ch *Channel) popRequest() *Request {
	r := ch.first
	if r != nil {
		ch.first, r.next = r.next, nil
	}
	return r
}

// Free ends the use of this end (acp_nbfree_ch) after the requests before it are complete. A receiver then
// drops messages until the sender frees its end. After Free, sends, receives and another Free fail with
// ErrFreed.
func (ch *Channel) Free() *Request { return ch.pushRequest(freeKind, nil, true) }

// Send starts sending a message (acp_nbsend_ch). buf must not be changed until the request is complete.
func (ch *Channel) Send(buf []byte) *Request { return ch.pushRequest(sendKind, buf, true) }

// Recv starts receiving the next message (acp_nbrecv_ch). buf must not be accessed until the request is
// complete. A longer message is truncated. The error ErrEnd means that the sender has freed its end and no
// message follows.
func (ch *Channel) Recv(buf []byte) *Request { return ch.pushRequest(recvKind, buf, true) }

package rdm

import (
	"context"
	"slices"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/verbs"
)

// A Peer is one incarnation of another endpoint. An idle Peer takes some
// hundred bytes.
type Peer struct {
	e      *Endpoint
	number int // peer number of the core
	at     Addr
	state  state
	full   bool          // the window is full: a Writable event follows
	err    error         // reason of the failure
	done   chan struct{} // closed when the peer fails; nil until the first call of Done

	nextHelloAt, firstHelloAt nack.Time // time of the next hello, time of the first one
	hellosSent                int
	firstRefusedHello         int // hellosSent at the first refused hello, 0 if none was refused

	access    verbs.AccessFlags // permitted operations on local memory
	rdmaState *rdmaState        // state of memory operations; nil if there were none
}

type state uint8

const (
	connecting state = iota // handshake in progress
	open
	failed
)

// Addr returns the address of the peer.
func (p *Peer) Addr() Addr { return p.at }

// Err returns a *PeerError if the peer has failed, otherwise nil.
func (p *Peer) Err() error {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	return p.err
}

// Done returns a channel that is closed when the peer has failed. Err then
// returns the cause.
func (p *Peer) Done() <-chan struct{} {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		if p.err != nil {
			close(p.done)
		}
	}
	return p.done
}

// Dial performs the handshake with an endpoint and returns the peer. All calls
// with the same address return the same Peer. If the endpoint does not respond,
// Dial returns a *PeerError with ErrUnreachable, after Options.GiveUp or, if
// the system refuses to send, immediately. If ctx ends first, Dial returns its
// error.
func (e *Endpoint) Dial(ctx context.Context, at Addr) (*Peer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil, e.err
	}
	p := e.byIncarnation[incarnationOf(&at)]
	var access verbs.AccessFlags
	if p == nil {
		var err error
		if access, err = e.allow(at); err != nil {
			return nil, err
		}
		p = e.byIncarnation[incarnationOf(&at)] // added while the lock was released
	}
	if p == nil {
		var err error
		if p, err = e.addPeer(at, access); err != nil {
			return nil, err
		}
		now := e.port.Now()
		p.firstHelloAt = now
		e.connecting = append(e.connecting, p)
		e.sendHello(p, now)
		e.armTimer(now)
	}
	if err := e.progress.Wait(ctx, (*handshake)(p)); err != nil {
		return nil, err
	}
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

// handshake is the condition that the handshake with the peer has ended.
type handshake Peer

// Ready implements progress.Waitable.
func (p *handshake) Ready() bool { return p.state != connecting }

func incarnationOf(a *Addr) incarnation { return incarnation{a.At.Addr(), a.QPN} }
func identityOf(a *Addr) identity       { return identity{a.At, a.ID} }

// allow returns the operations that a new peer may perform, or an error if
// Options.Allow rejects it. e.mu is released during the call of Allow.
func (e *Endpoint) allow(at Addr) (access verbs.AccessFlags, err error) {
	if e.o.Allow == nil {
		return verbs.AccessRemote, nil
	}
	var ok bool
	func() {
		e.mu.Unlock()
		defer e.mu.Lock()
		access, ok = e.o.Allow(at)
	}()
	switch {
	case e.err != nil:
		return 0, e.err
	case !ok:
		e.stats.Refused++
		return 0, &PeerError{at, ErrDenied}
	}
	return access, nil
}

// addPeer creates a peer and closes an earlier incarnation of it.
func (e *Endpoint) addPeer(at Addr, access verbs.AccessFlags) (*Peer, error) {
	if old := e.byID[identityOf(&at)]; old != nil {
		e.closeRestarted(old)
	}
	number := len(e.peers)
	if n := len(e.free); n > 0 {
		number, e.free = e.free[n-1], e.free[:n-1]
	} else if number >= e.o.Peers {
		return nil, &PeerError{at, ErrTooMany}
	}
	if err := e.port.ConnectPeer(number, at.port()); err != nil {
		e.core.RemovePeer(number)
		e.free = append(e.free, number)
		if number == len(e.peers) {
			e.peers = append(e.peers, nil)
		}
		return nil, &PeerError{at, err}
	}
	p := &Peer{e: e, number: number, at: at, access: access}
	if number == len(e.peers) {
		e.peers = append(e.peers, p)
	} else {
		e.peers[number] = p
	}
	e.byIncarnation[incarnationOf(&at)], e.byID[identityOf(&at)] = p, p
	return p, nil
}

// closeRestarted closes an incarnation of a peer that has a new one.
func (e *Endpoint) closeRestarted(p *Peer) {
	if p.state == failed {
		e.removePeer(p)
	}
	e.failPeer(p, ErrRestarted)
}

// failPeer fails a peer and everything that waits for it.
func (e *Endpoint) failPeer(p *Peer, cause error) {
	if p.state == failed {
		return
	}
	// Packets of this incarnation may still be in flight, so it remains known as
	// failed, unless it was never connected or a new incarnation replaces it.
	forget := p.state == connecting || cause == ErrRestarted
	p.state, p.err = failed, &PeerError{p.at, cause}
	e.core.ClosePeer(p.number)
	if forget {
		e.removePeer(p)
	}
	e.failOps(p)
	e.changed = true
	if p.done != nil {
		close(p.done)
	}
	if e.o.OnPeerFailed != nil {
		go e.o.OnPeerFailed(p, p.err)
	}
}

// removePeer removes a failed peer from the tables.
func (e *Endpoint) removePeer(p *Peer) {
	delete(e.byIncarnation, incarnationOf(&p.at))
	delete(e.byID, identityOf(&p.at))
	if e.lastPeer == p {
		e.lastPeer = nil
	}
	e.connecting = slices.DeleteFunc(e.connecting, func(q *Peer) bool { return q == p })
	e.core.RemovePeer(p.number)
	e.peers[p.number] = nil
	e.free = append(e.free, p.number)
}

// Close closes the peer until one of both ends restarts. Outstanding operations
// fail with ErrDisconnected. The remote end is not notified and times out. Close
// is idempotent and returns nil.
func (p *Peer) Close() error {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	p.e.failPeer(p, ErrDisconnected)
	p.e.progress.Notify()
	return nil
}

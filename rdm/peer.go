package rdm

import (
	"context"
	"slices"

	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Peer is another endpoint, in one life of it. An idle one takes some hundred bytes.
type Peer struct {
	e      *Endpoint
	number int // of the core's
	at     Addr
	state  state
	full   bool  // its core had no room: an event follows
	err    error // why it is gone

	nextHelloAt, firstHelloAt nack.Time // when to greet again, when we did first
	hellosSent                int
	firstRefusedHello         int // greetings when one was refused first, 0: none was

	access    verbs.AccessFlags // what it may do with our memory
	rdmaState *rdmaState        // operations on memory; nil if there were none
}

type state uint8

const (
	connecting state = iota // nothing has come of it yet
	open
	failed
)

// Addr is where the peer is.
func (p *Peer) Addr() Addr { return p.at }

// Err says what has become of the peer, a *PeerError; nil if nothing has.
func (p *Peer) Err() error {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	return p.err
}

// Dial makes contact with an endpoint and returns the peer, which is the same for
// all that dial it. Nobody there is a *PeerError with ErrUnreachable, after
// Options.GiveUp or, where the system refuses to send, at once; or the context's error.
func (e *Endpoint) Dial(ctx context.Context, at Addr) (*Peer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil, e.err
	}
	p := e.byIncarnation[incarnationOf(&at)]
	if p == nil {
		var err error
		if p, err = e.addPeer(at); err != nil {
			return nil, err
		}
		now := e.port.Now()
		p.firstHelloAt = now
		e.connecting = append(e.connecting, p)
		e.sendHello(p, now)
		e.armTimer(now)
	}
	if err := e.waitUntil(ctx, func() bool { return p.state != connecting }); err != nil {
		return nil, err
	}
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

func incarnationOf(a *Addr) incarnation { return incarnation{a.At.Addr(), a.QPN} }
func identityOf(a *Addr) identity       { return identity{a.At, a.ID} }

// addPeer makes a peer of an address, and ends another life of it.
func (e *Endpoint) addPeer(at Addr) (*Peer, error) {
	var access verbs.AccessFlags = verbs.AccessRemote
	if e.o.Allow != nil {
		var ok bool
		if access, ok = e.o.Allow(at); !ok {
			e.stats.Refused++
			return nil, &PeerError{at, ErrDenied}
		}
	}
	if old := e.byID[identityOf(&at)]; old != nil {
		e.closeRestarted(old)
	}
	number := len(e.peers)
	if n := len(e.free); n > 0 {
		number, e.free = e.free[n-1], e.free[:n-1]
	} else if number >= e.o.Peers {
		return nil, &PeerError{at, ErrTooMany}
	}
	if err := e.port.ConnectPeer(number, at.Address); err != nil {
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

// closeRestarted ends a life of a peer that has another now.
func (e *Endpoint) closeRestarted(p *Peer) {
	if p.state == failed {
		e.removePeer(p)
	}
	e.failPeer(p, ErrRestarted)
}

// failPeer ends what there is with a peer: all that waits for it fails.
func (e *Endpoint) failPeer(p *Peer, why error) {
	if p.state == failed {
		return
	}
	// What it has sent may still be under way, so that this life of it stays
	// known as one that is over, unless there is another, or never was this one.
	forget := p.state == connecting || why == ErrRestarted
	p.state, p.err = failed, &PeerError{p.at, why}
	e.core.ClosePeer(p.number)
	if forget {
		e.removePeer(p)
	}
	e.failOps(p)
	e.changed = true
	if e.o.OnPeerFailed != nil {
		e.o.OnPeerFailed(p, p.err)
	}
}

// removePeer takes a peer that is gone out of the tables.
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

// Disconnect ends what there is with a peer, as long as both live: what is under way
// fails with ErrHungUp. The peer is not told, and takes us for silent if it goes on.
func (p *Peer) Disconnect() {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	p.e.failPeer(p, ErrDisconnected)
	p.e.wakeAll()
}

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

	greetAt, greetedAt nack.Time // when to greet again, when we did first
	greetings          int
	refusedAt          int // greetings when one was refused first, 0: none was

	access verbs.AccessFlags // what it may do with our memory
	sided  *sided            // operations on memory; nil if there were none
}

type state uint8

const (
	greeting state = iota // nothing has come of it yet
	open
	gone
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
	p := e.byLife[lifeOf(&at)]
	if p == nil {
		var err error
		if p, err = e.add(at); err != nil {
			return nil, err
		}
		now := e.port.Now()
		p.greetedAt = now
		e.greeted = append(e.greeted, p)
		e.greet(p, now)
		e.arm(now)
	}
	if err := e.wait(ctx, func() bool { return p.state != greeting }); err != nil {
		return nil, err
	}
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

func lifeOf(a *Addr) life         { return life{a.At.Addr(), a.QPN} }
func identityOf(a *Addr) identity { return identity{a.At, a.ID} }

// add makes a peer of an address, and ends another life of it.
func (e *Endpoint) add(at Addr) (*Peer, error) {
	var access verbs.AccessFlags = verbs.AccessRemote
	if e.o.Allow != nil {
		var ok bool
		if access, ok = e.o.Allow(at); !ok {
			e.stats.Refused++
			return nil, &PeerError{at, ErrDenied}
		}
	}
	if old := e.byID[identityOf(&at)]; old != nil {
		e.end(old)
	}
	number := len(e.peers)
	if n := len(e.free); n > 0 {
		number, e.free = e.free[n-1], e.free[:n-1]
	} else if number >= e.o.Peers {
		return nil, &PeerError{at, ErrTooMany}
	}
	if err := e.port.Connect(number, at.Address); err != nil {
		e.core.Forget(number)
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
	e.byLife[lifeOf(&at)], e.byID[identityOf(&at)] = p, p
	return p, nil
}

// end ends a life of a peer that has another now.
func (e *Endpoint) end(p *Peer) {
	if p.state == gone {
		e.forget(p)
	}
	e.lose(p, ErrRestarted)
}

// lose ends what there is with a peer: all that waits for it fails.
func (e *Endpoint) lose(p *Peer, why error) {
	if p.state == gone {
		return
	}
	// What it has sent may still be under way, so that this life of it stays
	// known as one that is over, unless there is another, or never was this one.
	forget := p.state == greeting || why == ErrRestarted
	p.state, p.err = gone, &PeerError{p.at, why}
	e.core.Close(p.number)
	if forget {
		e.forget(p)
	}
	e.abandon(p)
	e.changed = true
	if e.o.Gone != nil {
		e.o.Gone(p, p.err)
	}
}

// forget takes a peer that is gone out of the tables.
func (e *Endpoint) forget(p *Peer) {
	delete(e.byLife, lifeOf(&p.at))
	delete(e.byID, identityOf(&p.at))
	if e.last == p {
		e.last = nil
	}
	e.greeted = slices.DeleteFunc(e.greeted, func(q *Peer) bool { return q == p })
	e.core.Forget(p.number)
	e.peers[p.number] = nil
	e.free = append(e.free, p.number)
}

// HangUp ends what there is with a peer, as long as both live: what is under way
// fails with ErrHungUp. The peer is not told, and takes us for silent if it goes on.
func (p *Peer) HangUp() {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	p.e.lose(p, ErrHungUp)
	p.e.rouse()
}

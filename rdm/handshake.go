package rdm

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// The handshake of two endpoints is a hello and a welcome, each a datagram of 52
// bytes with the address of its sender: a receive of a datagram does not report
// the UDP port, Q_Key and epoch that a reply needs. Lost hellos are retransmitted.
//
//	 0                 4     5        8            12                      52
//	+-----------------+-----+--------+------------+------------------------+
//	| 'r' 'd' 'm' '1' |kind | 0 0 0  | their epoch| Addr                   |
//	+-----------------+-----+--------+------------+------------------------+
//
// The epoch is the receiver's in a welcome or refusal, and 0 in a hello.
const (
	handshakeSize  = 12 + addrSize
	handshakeMagic = "rdm1"
)

const (
	helloFrame = iota + 1
	welcomeFrame
	refusalFrame
)

// The first hello is retransmitted after 10 ms. The interval doubles up to 320 ms.
const (
	firstHelloRetry = 10 * reliability.Millisecond
	maxHelloRetry   = 320 * reliability.Millisecond
)

// sendHandshake sends a handshake frame.
func (e *Endpoint) sendHandshake(to *Addr, kind byte, epoch uint32) {
	var b [handshakeSize]byte
	copy(b[:], handshakeMagic)
	b[4] = kind
	b[8], b[9], b[10], b[11] = byte(epoch>>24), byte(epoch>>16), byte(epoch>>8), byte(epoch)
	e.addr.encode(b[12:])
	if err := e.port.SendUnreliable(to.port(), b[:]); err != nil {
		e.fail(err)
	}
}

// sendHello sends a hello to a peer and schedules its retransmission.
func (e *Endpoint) sendHello(p *Peer, now nack.Time) {
	p.nextHelloAt = now + nack.Time(min(firstHelloRetry<<min(p.hellosSent, 10), maxHelloRetry))
	p.hellosSent++
	e.sendHandshake(&p.at, helloFrame, 0)
}

// retryHellos retransmits hellos and fails peers that did not respond for
// Options.GiveUp.
func (e *Endpoint) retryHellos(now nack.Time) {
	for i := 0; i < len(e.connecting); {
		switch p := e.connecting[i]; {
		case now >= p.firstHelloAt+nack.Time(e.o.GiveUp):
			e.failPeer(p, ErrUnreachable) // removes p from the list
			continue
		case now >= p.nextHelloAt:
			e.sendHello(p, now)
		}
		i++
	}
}

// onSendRefused records that the system refuses to send to a peer. A connecting
// peer gets one more hello after firstHelloRetry, and fails if that is refused
// as well.
func (e *Endpoint) onSendRefused(now nack.Time, number int, cause *verbs.RefusedError) {
	p := e.peers[number]
	if p == nil || p.state != connecting || p.firstRefusedHello == p.hellosSent {
		return
	}
	if p.firstRefusedHello != 0 {
		e.failPeer(p, fmt.Errorf("%w: %w", ErrUnreachable, cause))
		return
	}
	p.firstRefusedHello = p.hellosSent
	p.nextHelloAt = min(p.nextHelloAt, now+nack.Time(firstHelloRetry))
}

// markConnected completes the handshake of a peer.
func (e *Endpoint) markConnected(p *Peer) {
	if p.state != connecting {
		return
	}
	p.state = open
	for i, q := range e.connecting {
		if q == p {
			e.connecting = append(e.connecting[:i], e.connecting[i+1:]...)
			break
		}
	}
	e.changed = true
}

// maxPendingAllow is the maximum number of handshakes that wait for Options.Allow.
// Hellos beyond it are dropped, and their senders retransmit them.
const maxPendingAllow = 1024

// queryAllow calls Options.Allow for the sender of a hello, without the lock in a
// goroutine of its own, and replies to the hello afterwards.
func (e *Endpoint) queryAllow(src incarnation, at Addr) {
	if e.pendingAllow[src] || len(e.pendingAllow) >= maxPendingAllow {
		return
	}
	e.pendingAllow[src] = true
	go func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		access, err := e.allow(at)
		delete(e.pendingAllow, src)
		if e.err != nil {
			return
		}
		e.dispatchEvents() // pending events of a peer number must not reach its next user
		switch p := e.byIncarnation[src]; {
		case p != nil && p.at.Epoch == at.Epoch: // dialed meanwhile
			e.welcome(p)
		case p != nil: // a hello of another incarnation was faster
		case err != nil:
			e.sendHandshake(&at, refusalFrame, at.Epoch)
		default:
			e.admit(at, access)
		}
		e.dispatchAndFlush()
	}()
}

// admit adds the sender of a hello as a peer and welcomes it, or rejects it.
func (e *Endpoint) admit(at Addr, access verbs.AccessFlags) {
	p, err := e.addPeer(at, access)
	if err != nil {
		e.sendHandshake(&at, refusalFrame, at.Epoch)
		return
	}
	e.welcome(p)
}

// welcome replies to a hello of a peer, unless this incarnation has failed.
func (e *Endpoint) welcome(p *Peer) {
	if p.state == failed {
		return
	}
	e.markConnected(p)
	e.sendHandshake(&p.at, welcomeFrame, p.at.Epoch)
}

// handleHandshake handles a datagram that is not a packet of the core. Its
// address must match the source of the datagram.
func (e *Endpoint) handleHandshake(src incarnation, b []byte) {
	if len(b) != handshakeSize || string(b[:4]) != handshakeMagic {
		e.stats.UnknownSenders++
		return
	}
	var at Addr
	at.decode(b[12:])
	if incarnationOf(&at) != src || at.At.Port() == 0 || at.Epoch == 0 {
		e.stats.Forged++
		return
	}
	epoch := uint32(b[8])<<24 | uint32(b[9])<<16 | uint32(b[10])<<8 | uint32(b[11])
	e.dispatchEvents() // pending events of a peer number must not reach its next user
	p := e.byIncarnation[src]
	if p != nil && p.at.Epoch != at.Epoch {
		if p.state == connecting && b[4] == helloFrame || int32(at.Epoch-p.at.Epoch) > 0 {
			e.closeRestarted(p)
		} else {
			e.stats.UnknownSenders++
			return
		}
		p = nil
	}
	switch b[4] {
	case helloFrame:
		switch {
		case p != nil:
			e.welcome(p)
		case e.o.Allow == nil:
			e.admit(at, verbs.AccessRemote)
		default:
			e.queryAllow(src, at)
		}
	case welcomeFrame, refusalFrame:
		if p == nil || epoch != e.addr.Epoch {
			e.stats.UnknownSenders++
		} else if b[4] == welcomeFrame {
			e.markConnected(p)
		} else if p.state == connecting {
			e.failPeer(p, ErrRefused)
		}
	default:
		e.stats.UnknownSenders++
	}
}

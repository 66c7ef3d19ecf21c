package rdm

import (
	"fmt"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// Two endpoints make contact by a greeting and its answer, each a datagram of 52
// bytes that says where its sender is: a receive of a datagram does not tell UDP
// port, Q_Key and epoch, and without them nobody can be answered. Greetings get
// lost, and are repeated.
//
//	 0                 4     5        8            12                      52
//	+-----------------+-----+--------+------------+------------------------+
//	| 'r' 'd' 'm' '1' |kind | 0 0 0  | their epoch| Addr                   |
//	+-----------------+-----+--------+------------+------------------------+
//
// The epoch is that of the life of ours that the answer is for; 0 in a greeting.
const (
	contactSize = 12 + addrSize
	contactMark = "rdm1"
)

const (
	greetingFrame = iota + 1
	welcomeFrame
	refusalFrame
)

// Greetings are repeated after 10 ms, and each further one after twice as long.
const (
	greetFirst   = 10 * reliability.Millisecond
	greetSlowest = 320 * reliability.Millisecond
)

// contact sends a frame.
func (e *Endpoint) contact(to *Addr, kind byte, epoch uint32) {
	var b [contactSize]byte
	copy(b[:], contactMark)
	b[4] = kind
	b[8], b[9], b[10], b[11] = byte(epoch>>24), byte(epoch>>16), byte(epoch>>8), byte(epoch)
	e.addr.put(b[12:])
	if err := e.port.Post(to.Address, b[:]); err != nil {
		e.fail(err)
	}
}

// greet greets a peer.
func (e *Endpoint) greet(p *Peer, now nack.Time) {
	p.greetAt = now + nack.Time(min(greetFirst<<min(p.greetings, 10), greetSlowest))
	p.greetings++
	e.contact(&p.at, greetingFrame, 0)
}

// greetAgain repeats greetings, and gives up those that have had their time.
func (e *Endpoint) greetAgain(now nack.Time) {
	for i := 0; i < len(e.greeted); {
		switch p := e.greeted[i]; {
		case now >= p.greetedAt+nack.Time(e.o.GiveUp):
			e.lose(p, ErrUnreachable) // takes it off the list
			continue
		case now >= p.greetAt:
			e.greet(p, now)
		}
		i++
	}
}

// refused notes that the system refuses to send to a peer: one that has not answered yet is
// greeted once more after greetFirst, and given up when that is refused, too.
func (e *Endpoint) refused(now nack.Time, number int, why *verbs.RefusedError) {
	p := e.peers[number]
	if p == nil || p.state != greeting || p.refusedAt == p.greetings {
		return
	}
	if p.refusedAt != 0 {
		e.lose(p, fmt.Errorf("%w: %w", ErrUnreachable, why))
		return
	}
	p.refusedAt = p.greetings
	p.greetAt = min(p.greetAt, now+nack.Time(greetFirst))
}

// met notes that the peer has answered.
func (e *Endpoint) met(p *Peer) {
	if p.state != greeting {
		return
	}
	p.state = open
	for i, q := range e.greeted {
		if q == p {
			e.greeted = append(e.greeted[:i], e.greeted[i+1:]...)
			break
		}
	}
	e.changed = true
}

// heard handles a frame that is no packet of the core. It is believed if it comes
// from where it says.
func (e *Endpoint) heard(src life, b []byte) {
	if len(b) != contactSize || string(b[:4]) != contactMark {
		e.stats.Strangers++
		return
	}
	var at Addr
	at.get(b[12:])
	if lifeOf(&at) != src || at.At.Port() == 0 || at.Epoch == 0 {
		e.stats.Forged++
		return
	}
	epoch := uint32(b[8])<<24 | uint32(b[9])<<16 | uint32(b[10])<<8 | uint32(b[11])
	e.heed() // what is said of a number is not for who gets it now
	p := e.byLife[src]
	if p != nil && p.at.Epoch != at.Epoch {
		if p.state == greeting && b[4] == greetingFrame || int32(at.Epoch-p.at.Epoch) > 0 {
			e.end(p)
		} else {
			e.stats.Strangers++
			return
		}
		p = nil
	}
	switch b[4] {
	case greetingFrame:
		if p == nil {
			var err error
			if p, err = e.add(at); err != nil {
				e.contact(&at, refusalFrame, at.Epoch)
				return
			}
		}
		if p.state == gone {
			return // that life is over for us
		}
		e.met(p)
		e.contact(&p.at, welcomeFrame, at.Epoch)
	case welcomeFrame, refusalFrame:
		if p == nil || epoch != e.addr.Epoch {
			e.stats.Strangers++
		} else if b[4] == welcomeFrame {
			e.met(p)
		} else if p.state == greeting {
			e.lose(p, ErrRefused)
		}
	default:
		e.stats.Strangers++
	}
}

// arrived handles a datagram.
func (e *Endpoint) arrived(now nack.Time, wc *verbs.WC, grh, b []byte) {
	addr, _, _, ok := wire.ParseGRH(grh)
	if !ok || e.err != nil {
		e.stats.Strangers++
		return
	}
	src := life{addr, wc.SrcQPN}
	p := e.last
	if p == nil || lifeOf(&p.at) != src {
		p = e.byLife[src]
	}
	if _, packet := nack.From(b); p == nil || !packet || b[0] == contactMark[0] {
		e.heard(src, b)
		return
	}
	e.last = p
	if p.state == greeting {
		e.met(p)
	}
	if e.inbox.bytes >= e.o.Backlog && b[1] == byte(nack.Data) {
		e.stats.Backlog++
		return
	}
	e.from = p
	e.core.Handle(now, p.number, b, e.take)
}

// message handles a message of e.from.
func (e *Endpoint) message(b []byte) {
	switch {
	case len(b) < tagSize:
		e.breach(e.from)
	case b[0] == tagMessage:
		e.inbox.put(e.from, b[tagSize:])
		e.changed = true
	default:
		e.request(e.from, b)
	}
}

// breach cuts off a peer whose messages make no sense.
func (e *Endpoint) breach(p *Peer) {
	e.stats.Malformed++
	e.lose(p, ErrBreach)
}

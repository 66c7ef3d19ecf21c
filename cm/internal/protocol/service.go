package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// service is what a program listens on.
type service struct {
	id      mad.ServiceID
	types   uint8 // bit of each mad.Transport that is served
	backlog int
	half    entryList          // half-open connections, and SIDR requests without an answer
	shares  map[netip.Addr]int // of half, by peer
}

// Serve says what a service takes.
type Serve struct {
	RC, UC  bool // connections of these transports
	Backlog int  // half-open connections, or requests for datagrams, at a time; at least 1
}

// Listen begins to take requests for a service, and returns false if that is
// done already.
func (m *Machine) Listen(id mad.ServiceID, s Serve) bool {
	if m.serving[id] != nil || m.closed {
		return false
	}
	l := &service{id: id, backlog: max(s.Backlog, 1), shares: make(map[netip.Addr]int)}
	if s.RC {
		l.types |= 1 << mad.TransportRC
	}
	if s.UC {
		l.types |= 1 << mad.TransportUC
	}
	m.serving[id] = l
	return true
}

// Unlisten ends a service. Requests that were not accepted yet are rejected,
// without events, except those that taken reports, if it is given: the program
// is about to answer them. Those that were accepted go on.
func (m *Machine) Unlisten(now Time, id mad.ServiceID, taken func(id uint32) bool) {
	l := m.serving[id]
	if l == nil {
		return
	}
	for e := l.half.first; e != nil; {
		next := e.next
		switch {
		case taken != nil && taken(e.id):
		case e.state == StateREQRcvd, e.state == StateMRAREQSent:
			m.Reject(now, e.id, mad.REJ{Reason: mad.RejInvalidServiceID})
		case e.state == StateSIDRReqRcvd:
			m.Reply(e.id, mad.SIDRRep{Status: mad.SIDRUnsupported})
		}
		e = next
	}
	delete(m.serving, id)
}

// admit counts a new half-open connection, or says why there is no room.
func (m *Machine) admit(l *service, e *entry) Drop {
	from := e.peer.Addr()
	switch {
	case l.shares[from] >= max(l.backlog/2, 1):
		return DropPeerShare
	case l.half.n >= l.backlog && !m.evict(l):
		return DropBacklogFull
	}
	e.service = l
	l.half.push(e)
	l.shares[from]++
	return DropNone
}

// evict ends a half-open connection that was accepted and whose peer let the
// REP and its first repetition pass, or asked for more time by MRA: that may be
// given while there is room for others. Few are looked at, so that a flood
// costs little; they are the oldest.
func (m *Machine) evict(l *service) bool {
	e := l.half.first
	for range 8 {
		if e == nil {
			break
		}
		if e.state == StateMRAREPRcvd || e.state == StateREPSent && e.left < e.retries {
			m.stats.Evicted++
			m.raise(e, Event{Kind: EventUnreachable})
			m.forget(e)
			return true
		}
		e = e.next
	}
	return false
}

// leaveService takes an entry out of the half-open ones.
func (m *Machine) leaveService(e *entry) {
	l := e.service
	if l == nil {
		return
	}
	e.service = nil
	l.half.remove(e)
	from := e.peer.Addr()
	if l.shares[from]--; l.shares[from] == 0 {
		delete(l.shares, from)
	}
}

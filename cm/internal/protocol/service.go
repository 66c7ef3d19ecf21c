package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// service is what a program listens on.
type service struct {
	id             mad.ServiceID
	transports     uint8 // bit of each mad.Transport that is served
	backlog        int
	halfOpen       entryList          // halfOpen-open connections, and SIDR requests without an answer
	halfOpenByPeer map[netip.Addr]int // of half, by peer
}

// ServiceOptions says what a service takes.
type ServiceOptions struct {
	RC, UC  bool // connections of these transports
	Backlog int  // half-open connections, or requests for datagrams, at a time; at least 1
}

// Listen begins to take requests for a service, and returns false if that is
// done already.
func (m *Machine) Listen(id mad.ServiceID, s ServiceOptions) bool {
	if m.services[id] != nil || m.closed {
		return false
	}
	l := &service{id: id, backlog: max(s.Backlog, 1), halfOpenByPeer: make(map[netip.Addr]int)}
	if s.RC {
		l.transports |= 1 << mad.TransportRC
	}
	if s.UC {
		l.transports |= 1 << mad.TransportUC
	}
	m.services[id] = l
	return true
}

// Unlisten ends a service. Requests that were not accepted yet are rejected,
// without events, except those that taken reports, if it is given: the program
// is about to answer them. Those that were accepted go on.
func (m *Machine) Unlisten(now Time, id mad.ServiceID, taken func(id uint32) bool) {
	l := m.services[id]
	if l == nil {
		return
	}
	for e := l.halfOpen.first; e != nil; {
		next := e.next
		switch {
		case taken != nil && taken(e.id):
		case e.state == StateREQRcvd, e.state == StateMRAREQSent:
			m.Reject(now, e.id, mad.REJ{Reason: mad.RejInvalidServiceID})
		case e.state == StateSIDRReqRcvd:
			m.ReplySIDR(e.id, mad.SIDRRep{Status: mad.SIDRUnsupported})
		}
		e = next
	}
	delete(m.services, id)
}

// addHalfOpen counts a new half-open connection, or says why there is no room.
func (m *Machine) addHalfOpen(l *service, e *entry) Drop {
	from := e.peer.Addr()
	switch {
	case l.halfOpenByPeer[from] >= max(l.backlog/2, 1):
		return DropPeerShare
	case l.halfOpen.n >= l.backlog && !m.evictHalfOpen(l):
		return DropBacklogFull
	}
	e.service = l
	l.halfOpen.push(e)
	l.halfOpenByPeer[from]++
	return DropNone
}

// evictHalfOpen ends a half-open connection that was accepted and whose peer let the
// REP and its first repetition pass, or asked for more time by MRA: that may be
// given while there is room for others. Few are looked at, so that a flood
// costs little; they are the oldest.
func (m *Machine) evictHalfOpen(l *service) bool {
	e := l.halfOpen.first
	for range 8 {
		if e == nil {
			break
		}
		if e.state == StateMRAREPRcvd || e.state == StateREPSent && e.retriesLeft < e.retries {
			m.stats.Evicted++
			m.queueEvent(e, Event{Kind: EventUnreachable})
			m.removeEntry(e)
			return true
		}
		e = e.next
	}
	return false
}

// removeHalfOpen takes an entry out of the half-open ones.
func (m *Machine) removeHalfOpen(e *entry) {
	l := e.service
	if l == nil {
		return
	}
	e.service = nil
	l.halfOpen.remove(e)
	from := e.peer.Addr()
	if l.halfOpenByPeer[from]--; l.halfOpenByPeer[from] == 0 {
		delete(l.halfOpenByPeer, from)
	}
}

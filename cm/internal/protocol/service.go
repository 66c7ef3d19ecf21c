package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// A service is a service ID on which the application listens.
type service struct {
	id             mad.ServiceID
	transports     uint8 // bit set of the accepted mad.Transport values
	backlog        int
	halfOpen       entryList          // half-open connections, and SIDR requests without a reply
	halfOpenByPeer map[netip.Addr]int // length of halfOpen per peer
}

// ServiceOptions configure a service.
type ServiceOptions struct {
	RC, UC  bool // accept connections of these transports
	Backlog int  // maximum number of half-open connections or SIDR requests; at least 1
}

// Listen starts a service. It returns false if the service exists already.
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

// Unlisten stops a service. It rejects requests that are not accepted yet, without events, except
// those for which taken, if not nil, returns true: the application is about to reply to them.
// Accepted connections remain.
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

// addHalfOpen adds a half-open connection, or returns the reason for dropping it.
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

// evictHalfOpen removes a half-open connection whose REP has been retransmitted without an RTU,
// or whose peer has requested more time by an MRA, to make room for a new one. It examines only
// the 8 oldest, so that a flood of requests costs little.
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

// removeHalfOpen removes an entry from its service's half-open connections.
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

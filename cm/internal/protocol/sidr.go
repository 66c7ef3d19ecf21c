package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// RequestSIDR sends a SIDR_REQ, which ends with EventSIDRReply, EventUnreachable or Abandon. The
// machine sets RequestID. timeout is the code of the retransmission timeout. It returns false if
// the table is full.
func (m *Machine) RequestSIDR(now Time, peer netip.AddrPort, q mad.SIDRReq, timeout, retries uint8) (id uint32, ok bool) {
	if m.closed {
		return 0, false
	}
	e := m.newEntry(peer, StateSIDRReqSent)
	if e == nil {
		return 0, false
	}
	m.stats.SIDR++
	q.RequestID = e.id
	e.tid = m.newTID()
	e.retries = retries
	e.retryInterval = clampInterval(timeout)
	e.sidrService = q.ServiceID
	m.sendWithRetry(now, e, e.tid, mad.AttrSIDRReq, &q)
	return e.id, true
}

// handleSIDRReq handles a peer's SIDR_REQ.
func (m *Machine) handleSIDRReq(now Time, from netip.AddrPort, h mad.Header, q mad.SIDRReq) Drop {
	key := remoteKey{from, q.RequestID}
	if m.sidrByRemoteID[key] != nil {
		return DropDuplicate // the application is about to reply
	}
	refuse := func(s mad.SIDRStatus) {
		m.sendMAD(from, h.TID, mad.AttrSIDRRep, &mad.SIDRRep{RequestID: q.RequestID, Status: s, ServiceID: q.ServiceID})
	}
	l := m.services[q.ServiceID]
	if l == nil || l.transports != 0 {
		refuse(mad.SIDRUnsupported)
		return DropNone
	}
	ev := Event{Kind: EventSIDRRequest, SIDRReq: q}
	var ok bool
	if ev.CMA, ev.Private, ok = parseCMAHeader(q.ServiceID, from, q.PrivateData); !ok {
		refuse(mad.SIDRReject)
		return DropNone
	}
	e := m.newEntry(from, StateSIDRReqRcvd)
	if e == nil {
		return DropTableFull
	}
	m.stats.SIDR++
	if drop := m.addHalfOpen(l, e); drop != DropNone {
		m.removeEntry(e)
		return drop
	}
	e.remoteID, e.tid, e.sidrService = q.RequestID, h.TID, q.ServiceID
	m.sidrByRemoteID[key] = e
	m.timers.Set(&e.timer, e, now+maxPendingTime)
	m.stats.Requests++
	m.queueEvent(e, ev)
	return DropNone
}

// ReplySIDR replies to a SIDR_REQ. The machine sets the request ID and the service. It returns
// false if the request does not exist any more.
func (m *Machine) ReplySIDR(id uint32, r mad.SIDRRep) bool {
	e := m.entries[id]
	if e == nil || e.state != StateSIDRReqRcvd {
		return false
	}
	r.RequestID, r.ServiceID = e.remoteID, e.sidrService
	m.sendMAD(e.peer, e.tid, mad.AttrSIDRRep, &r)
	m.removeEntry(e)
	return true
}

// handleSIDRRep handles the reply to a local SIDR_REQ.
func (m *Machine) handleSIDRRep(from netip.AddrPort, h mad.Header, r mad.SIDRRep) Drop {
	e := m.entries[r.RequestID]
	switch {
	case e == nil || e.state != StateSIDRReqSent:
		return DropUnknownID
	case e.peer != from:
		return DropWrongPeer
	case h.TID != e.tid:
		return DropWrongTID
	}
	m.queueEvent(e, Event{Kind: EventSIDRReply, SIDRRep: r, Private: r.PrivateData})
	m.removeEntry(e)
	return DropNone
}

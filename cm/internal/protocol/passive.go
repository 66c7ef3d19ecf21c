package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/wire/mad"
)

// handleREQ handles a peer's connection request.
func (m *Machine) handleREQ(now Time, from netip.AddrPort, h mad.Header, q mad.REQ) Drop {
	if q.LocalID == 0 || q.QPN == 0 {
		return DropReservedField
	}
	if old := m.byRemoteID[remoteKey{from, q.LocalID}]; old != nil {
		return m.handleDuplicateREQ(now, h, old, q)
	}
	if old := m.byRemoteQPN[remoteKey{from, q.QPN}]; old != nil {
		m.rejectREQ(from, h, q, mad.RejStaleConn, nil)
		m.endStale(now, old)
		return DropNone
	}
	l := m.services[q.ServiceID]
	if l == nil || l.transports == 0 {
		m.rejectREQ(from, h, q, mad.RejInvalidServiceID, nil)
		return DropNone
	}
	cma, private, reason := m.validateREQ(l, from, q)
	if reason != 0 {
		var info []byte
		if reason == mad.RejInvalidMTU {
			info = []byte{m.cfg.MaxMTU << 4} // proposal
		}
		m.rejectREQ(from, h, q, reason, info)
		return DropNone
	}
	e := m.newEntry(from, StateREQRcvd)
	if e == nil {
		m.rejectREQ(from, h, q, mad.RejNoResources, nil)
		return DropTableFull
	}
	if drop := m.addHalfOpen(l, e); drop != DropNone {
		m.removeEntry(e)
		return drop
	}
	e.remoteID, e.remoteQPN, e.psn = q.LocalID, q.QPN, q.StartingPSN
	e.tid = h.TID
	e.retries = q.MaxCMRetries
	e.retryInterval = clampInterval(q.LocalResponseTimeout)
	e.timewaitDuration = timewaitDuration(q.Primary.AckTimeout)
	m.byRemoteID[remoteKey{from, q.LocalID}] = e
	m.byRemoteQPN[remoteKey{from, q.QPN}] = e
	timeout := clampInterval(q.RemoteResponseTimeout)
	e.expiresAt = now + min(timeout*Time(1+e.retries)+Time(mad.TimeoutNanos(m.cfg.ServiceTimeout)), maxPendingTime)
	m.timers.Set(&e.timer, e, now+timeout*3/4) // then an MRA is due
	m.stats.Requests++
	m.queueEvent(e, Event{Kind: EventRequest, REQ: q, CMA: cma, Private: private})
	return DropNone
}

// validateREQ returns the reason to reject a REQ, or 0, together with the peer's source address
// and the application's private data.
func (m *Machine) validateREQ(l *service, from netip.AddrPort, q mad.REQ) (cma mad.CMAHeader, private []byte, reason mad.Reason) {
	switch {
	case q.Transport > mad.TransportUC || l.transports&(1<<q.Transport) == 0:
		return cma, nil, mad.RejInvalidTransport
	case q.Primary.RemoteGID != m.cfg.GID || netip.AddrFrom16(q.Primary.LocalGID).Unmap() != from.Addr():
		return cma, nil, mad.RejInvalidGID
	case q.MTU < 1 || q.MTU > m.cfg.MaxMTU:
		return cma, nil, mad.RejInvalidMTU
	}
	introduction := parseCMAHeader
	if _, sdp := bsdh.Port(uint64(q.ServiceID)); sdp {
		introduction = parseHello
	}
	cma, private, ok := introduction(q.ServiceID, from, q.PrivateData)
	if !ok {
		return cma, nil, mad.RejUnsupported
	}
	return cma, private, 0
}

// parseCMAHeader splits the private data of a request into RDMA-CM's header, zero if absent, and
// the application's data. It returns false if a required header is missing or contradicts the
// packet's source address.
func parseCMAHeader(id mad.ServiceID, from netip.AddrPort, private []byte) (cma mad.CMAHeader, rest []byte, ok bool) {
	space, _, ours := id.Split()
	if !ours || !space.HasHeader() {
		return cma, private, true
	}
	cma, ok = mad.ParseCMAHeader(private)
	if ok && cma.Src.Addr() == from.Addr() {
		return cma, private[mad.CMAHeaderLen:], true
	}
	return mad.CMAHeader{}, private, space == mad.PortSpaceIB
}

// parseHello returns the Hello in the private data of an SDP request in the form of RDMA-CM's
// header, and the unchanged private data. It returns false if the Hello is missing or contradicts
// the packet's source address.
func parseHello(_ mad.ServiceID, from netip.AddrPort, private []byte) (cma mad.CMAHeader, hello []byte, ok bool) {
	h, err := bsdh.ParseHello(private)
	if err != nil || h.Src != from.Addr() {
		return cma, nil, false
	}
	return mad.CMAHeader{Src: netip.AddrPortFrom(h.Src, h.LocalPort), Dst: h.Dst}, private, true
}

// rejectREQ sends a REJ for a request without an entry.
func (m *Machine) rejectREQ(to netip.AddrPort, h mad.Header, q mad.REQ, r mad.Reason, info []byte) {
	m.stats.Rejected++
	m.sendMAD(to, h.TID, mad.AttrREJ, &mad.REJ{RemoteID: q.LocalID, Message: mad.KindREQ, Reason: r, Info: info})
}

// handleDuplicateREQ handles a REQ with a known communication ID: a retransmission, or a new
// request of a restarted peer that chose the same ID.
func (m *Machine) handleDuplicateREQ(now Time, h mad.Header, e *entry, q mad.REQ) Drop {
	if e.active || e.remoteQPN != q.QPN || e.psn != q.StartingPSN || e.tid != h.TID || e.state == StateTimewait {
		m.rejectREQ(e.peer, h, q, mad.RejStaleConn, nil)
		m.endStale(now, e)
		return DropNone
	}
	switch e.state {
	case StateREQRcvd, StateMRAREQSent:
		m.sendMRA(e)
		return DropNone
	case StateREPSent, StateMRAREPRcvd: // the REP may be lost
		m.retransmit(now, e)
		return DropNone
	}
	return DropDuplicate
}

// sendMRA requests more time from the peer, until the request expires.
func (m *Machine) sendMRA(e *entry) {
	e.state = StateMRAREQSent
	m.timers.Set(&e.timer, e, e.expiresAt)
	m.sendMAD(e.peer, e.tid, mad.AttrMRA, &mad.MRA{
		LocalID: e.id, RemoteID: e.remoteID, Message: mad.KindREQ, ServiceTimeout: m.cfg.ServiceTimeout,
	})
}

// Accept replies to a request with a REP. The machine sets the IDs and CAGUID. It returns false
// if the request does not exist any more.
func (m *Machine) Accept(now Time, id uint32, r mad.REP) bool {
	e := m.entries[id]
	if e == nil || e.state != StateREQRcvd && e.state != StateMRAREQSent {
		return false
	}
	r.LocalID, r.RemoteID, r.CAGUID = e.id, e.remoteID, m.cfg.GUID
	e.localQPN = r.QPN
	e.state = StateREPSent
	m.markConnected(e)
	m.sendWithRetry(now, e, e.tid, mad.AttrREP, &r)
	return true
}

// Reject replies to a request or a REP with a REJ, from Reason, Info and PrivateData of r, and
// removes the connection without an event. It returns false if it does not exist any more.
func (m *Machine) Reject(now Time, id uint32, r mad.REJ) bool {
	e := m.entries[id]
	if e == nil {
		return false
	}
	switch e.state {
	case StateREQRcvd, StateMRAREQSent:
		r.Message = mad.KindREQ
	case StateREPRcvd:
		r.Message = mad.KindREP
	default:
		return false
	}
	r.LocalID, r.RemoteID = e.id, e.remoteID
	m.sendMAD(e.peer, e.tid, mad.AttrREJ, &r)
	m.stats.Rejected++
	m.removeEntry(e)
	return true
}

// handleRTU handles the RTU, which makes an accepted connection ESTABLISHED.
func (m *Machine) handleRTU(from netip.AddrPort, r mad.RTU) Drop {
	e, drop := m.findConn(from, r.RemoteID, r.LocalID)
	if drop != DropNone {
		return drop
	}
	switch e.state {
	case StateREPSent, StateMRAREPRcvd:
		m.setEstablished(e, r.PrivateData)
		return DropNone
	case StateEstablished:
		return DropDuplicate
	}
	return DropUnexpected
}

func (m *Machine) setEstablished(e *entry, private []byte) {
	e.state = StateEstablished
	e.unanswered = nil
	m.timers.Set(&e.timer, e, 0)
	m.removeHalfOpen(e)
	m.stats.Connected++
	m.queueEvent(e, Event{Kind: EventEstablished, Private: private})
}

// Notify reports that data arrived on an accepted connection, which implies the RTU
// (IB_EVENT_COMM_EST).
func (m *Machine) Notify(id uint32) {
	if e := m.entries[id]; e != nil && (e.state == StateREPSent || e.state == StateMRAREPRcvd) {
		m.setEstablished(e, nil)
	}
}

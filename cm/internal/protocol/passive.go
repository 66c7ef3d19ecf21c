package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/bsdh"
	"github.com/softrnic/softrnic/wire/mad"
)

// handleREQ takes a peer's request for a connection.
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
			info = []byte{m.cfg.MaxMTU << 4} // what would do
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
	patience := clampInterval(q.RemoteResponseTimeout)
	e.expiresAt = now + min(patience*Time(1+e.retries)+Time(mad.TimeoutNanos(m.cfg.ServiceTimeout)), maxPendingTime)
	m.timers.set(e, now+patience*3/4) // then we send an MRA
	m.stats.Requests++
	m.queueEvent(e, Event{Kind: EventRequest, REQ: q, CMA: cma, Private: private})
	return DropNone
}

// validateREQ finds what is wrong with a request, 0 if nothing is. It returns what the
// peer says of itself, and the program's private data.
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

// parseCMAHeader is RDMA-CM's header in front of a request's private data, the zero
// one if there is none, and what follows it. It returns false if there has to be
// one and is not, or if it lies.
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

// parseHello is what RDMA-CM's header would say, from the Hello that is the private
// data of a request to SDP. The Hello is the program's, and stays whole. It
// returns false if there is none, or if it lies.
func parseHello(_ mad.ServiceID, from netip.AddrPort, private []byte) (cma mad.CMAHeader, whole []byte, ok bool) {
	h, err := bsdh.ParseHello(private)
	if err != nil || h.Src != from.Addr() {
		return cma, nil, false
	}
	return mad.CMAHeader{Src: netip.AddrPortFrom(h.Src, h.LocalPort), Dst: h.Dst}, private, true
}

// rejectREQ rejects a request that gets no entry.
func (m *Machine) rejectREQ(to netip.AddrPort, h mad.Header, q mad.REQ, r mad.Reason, info []byte) {
	m.stats.Rejected++
	m.sendMAD(to, h.TID, mad.AttrREJ, &mad.REJ{RemoteID: q.LocalID, Which: mad.WhichREQ, Reason: r, Info: info})
}

// handleDuplicateREQ answers a REQ whose communication id is known: a repetition, or
// the request of a peer that forgot the connection and chose the id again.
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

// sendMRA makes the peer wait for our program, until the request expires.
func (m *Machine) sendMRA(e *entry) {
	e.state = StateMRAREQSent
	m.timers.set(e, e.expiresAt)
	m.sendMAD(e.peer, e.tid, mad.AttrMRA, &mad.MRA{
		LocalID: e.id, RemoteID: e.remoteID, Which: mad.WhichREQ, ServiceTimeout: m.cfg.ServiceTimeout,
	})
}

// Accept answers a request with a REP. The machine fills in the ids and
// CAGUID. It returns false if the request is not there to be accepted any more.
func (m *Machine) Accept(now Time, id uint32, r mad.REP) bool {
	e := m.entries[id]
	if e == nil || e.state != StateREQRcvd && e.state != StateMRAREQSent {
		return false
	}
	r.LocalID, r.RemoteID, r.CAGUID = e.id, e.remoteID, m.cfg.GUID
	e.localQPN = r.QPN
	e.state = StateREPSent
	m.sendWithRetry(now, e, e.tid, mad.AttrREP, &r)
	return true
}

// Reject refuses a request, or a REP. Reason, Info and PrivateData of r count.
// There is no event; the connection is gone. It returns false if it was
// already.
func (m *Machine) Reject(now Time, id uint32, r mad.REJ) bool {
	e := m.entries[id]
	if e == nil {
		return false
	}
	switch e.state {
	case StateREQRcvd, StateMRAREQSent:
		r.Which = mad.WhichREQ
	case StateREPRcvd:
		r.Which = mad.WhichREP
	default:
		return false
	}
	r.LocalID, r.RemoteID = e.id, e.remoteID
	m.sendMAD(e.peer, e.tid, mad.AttrREJ, &r)
	m.stats.Rejected++
	m.removeEntry(e)
	return true
}

// handleRTU takes what makes an accepted connection ESTABLISHED.
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
	m.timers.set(e, 0)
	m.removeHalfOpen(e)
	m.stats.Connected++
	m.queueEvent(e, Event{Kind: EventEstablished, Private: private})
}

// Notify tells that data came on an accepted connection, which stands for an
// RTU that is late or lost (IB_EVENT_COMM_EST).
func (m *Machine) Notify(id uint32) {
	if e := m.entries[id]; e != nil && (e.state == StateREPSent || e.state == StateMRAREPRcvd) {
		m.setEstablished(e, nil)
	}
}

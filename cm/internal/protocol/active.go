package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// Connect sends a REQ to the adapter at peer and returns the communication ID of the new
// connection, or false if the table is full. The machine sets LocalID and CAGUID.
// RemoteResponseTimeout is the retransmission timeout of the REQ; MaxCMRetries bounds the
// retransmissions of the REQ and of all later messages.
func (m *Machine) Connect(now Time, peer netip.AddrPort, q mad.REQ) (id uint32, ok bool) {
	if m.closed {
		return 0, false
	}
	e := m.newEntry(peer, StateREQSent)
	if e == nil {
		return 0, false
	}
	q.LocalID, q.CAGUID = e.id, m.cfg.GUID
	e.active = true
	e.localQPN = q.QPN
	e.tid = m.newTID()
	e.retries = q.MaxCMRetries
	e.retryInterval = clampInterval(q.RemoteResponseTimeout)
	e.timewaitDuration = timewaitDuration(q.Primary.AckTimeout)
	m.sendWithRetry(now, e, e.tid, mad.AttrREQ, &q)
	return e.id, true
}

// timewaitDuration returns the length of TIMEWAIT: twice the ACK timeout, the longest time that
// packets of the connection may remain in flight.
func timewaitDuration(ackTimeout uint8) Time {
	return 2 * Time(mad.TimeoutNanos(min(max(ackTimeout, minInterval), maxTimewait)))
}

// Ready sends the RTU for a REP and makes the connection ESTABLISHED. It returns false if the
// connection is not in REP_RCVD any more.
func (m *Machine) Ready(id uint32, private []byte) bool {
	e := m.entries[id]
	if e == nil || e.state != StateREPRcvd {
		return false
	}
	e.state = StateEstablished
	e.rtuPrivateData = private
	m.markConnected(e)
	m.timers.Set(&e.timer, e, 0)
	m.sendRTU(e)
	m.stats.Connected++
	return true
}

func (m *Machine) sendRTU(e *entry) {
	m.sendMAD(e.peer, e.tid, mad.AttrRTU, &mad.RTU{LocalID: e.id, RemoteID: e.remoteID, PrivateData: e.rtuPrivateData})
}

// handleREP handles the reply to a local REQ.
func (m *Machine) handleREP(now Time, from netip.AddrPort, h mad.Header, r mad.REP) Drop {
	e, drop := m.findConn(from, r.RemoteID, r.LocalID)
	if drop == DropUnknownID {
		m.sendMAD(from, h.TID, mad.AttrREJ, &mad.REJ{RemoteID: r.LocalID, Message: mad.KindREP, Reason: mad.RejInvalidCommID})
	}
	switch {
	case drop != DropNone:
		return drop
	case !e.active:
		return DropUnexpected
	case h.TID != e.tid:
		return DropWrongTID
	}
	switch e.state {
	case StateREQSent, StateMRAREQRcvd:
		return m.acceptREP(now, e, r)
	case StateREPRcvd: // the application has the REP and has not replied
		return DropDuplicate
	case StateEstablished:
		m.sendRTU(e)
		return DropNone
	}
	return DropUnexpected
}

func (m *Machine) acceptREP(now Time, e *entry, r mad.REP) Drop {
	if r.LocalID == 0 || r.QPN == 0 {
		return DropReservedField
	}
	id, qpn := remoteKey{e.peer, r.LocalID}, remoteKey{e.peer, r.QPN}
	old := m.byRemoteQPN[qpn]
	if m.byRemoteID[id] != nil || old != nil {
		m.sendMAD(e.peer, e.tid, mad.AttrREJ, &mad.REJ{
			LocalID: e.id, RemoteID: r.LocalID, Message: mad.KindREP, Reason: mad.RejStaleConn,
		})
		m.stats.Rejected++
		if old != nil {
			m.endStale(now, old)
		}
		m.queueEvent(e, Event{Kind: EventRejected, Reason: mad.RejStaleConn})
		m.removeEntry(e)
		return DropNone
	}
	e.state = StateREPRcvd
	e.unanswered = nil
	e.remoteID, e.remoteQPN = r.LocalID, r.QPN
	m.byRemoteID[id], m.byRemoteQPN[qpn] = e, e
	m.timers.Set(&e.timer, e, now+maxPendingTime)
	m.queueEvent(e, Event{Kind: EventReply, REP: r, Private: r.PrivateData})
	return DropNone
}

// handleMRA handles a message receipt acknowledgement, by which the peer requests more time.
func (m *Machine) handleMRA(now Time, from netip.AddrPort, h mad.Header, r mad.MRA) Drop {
	e, drop := m.findConn(from, r.RemoteID, r.LocalID)
	if drop != DropNone {
		return drop
	}
	var next State
	switch {
	case h.TID != e.tid:
		return DropWrongTID
	case r.Message == mad.KindREQ && (e.state == StateREQSent || e.state == StateMRAREQRcvd):
		next = StateMRAREQRcvd
	case r.Message == mad.KindREP && (e.state == StateREPSent || e.state == StateMRAREPRcvd):
		next = StateMRAREPRcvd
	default:
		return DropUnexpected
	}
	if e.mraCount > e.retries {
		return DropDuplicate // extended as often as allowed
	}
	e.mraCount++
	e.state = next
	m.timers.Set(&e.timer, e, now+Time(mad.TimeoutNanos(min(r.ServiceTimeout, maxServiceTimeout)))+e.retryInterval)
	return DropNone
}

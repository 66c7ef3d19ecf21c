package protocol

import (
	"encoding/binary"
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// Disconnect sends a DREQ, which ends with EventReleased. It returns false if
// there is no established connection.
func (m *Machine) Disconnect(now Time, id uint32, private []byte) bool {
	e := m.entries[id]
	if e == nil || e.state != StateEstablished {
		return false
	}
	m.sendDREQ(now, e, private)
	return true
}

func (m *Machine) sendDREQ(now Time, e *entry, private []byte) {
	m.removeHalfOpen(e)
	e.state = StateDREQSent
	e.dreqTID = m.newTID()
	m.sendWithRetry(now, e, e.dreqTID, mad.AttrDREQ, &mad.DREQ{
		LocalID: e.id, RemoteID: e.remoteID, RemoteQPN: e.remoteQPN, PrivateData: private,
	})
}

// firstDREQDelay is the time until a DREQ is repeated for the first time; each further
// one takes twice as long, up to what the peer asked for.
const firstDREQDelay = Time(250_000_000)

// retryDelay is the time until a message is repeated. What the peer asked for is time
// for its program to decide; a DREQ is answered by its manager, at once, and
// programs that end do not stay long to repeat it.
func (e *entry) retryDelay() Time {
	if e.state == StateDREQSent && e.retriesLeft > 0 {
		return min(e.retryInterval, firstDREQDelay<<(e.retries-e.retriesLeft))
	}
	return e.retryInterval
}

// Abandon ends a connection in whatever state, without an event, and tells the
// peer once.
func (m *Machine) Abandon(now Time, id uint32) {
	e := m.entries[id]
	if e == nil {
		return
	}
	switch e.state {
	case StateREQSent, StateMRAREQRcvd:
		var guid [8]byte
		binary.BigEndian.PutUint64(guid[:], m.cfg.GUID)
		m.sendMAD(e.peer, e.tid, mad.AttrREJ, &mad.REJ{LocalID: e.id, Which: mad.WhichREQ, Reason: mad.RejTimeout, Info: guid[:]})
		m.removeEntry(e)
	case StateREQRcvd, StateMRAREQSent, StateREPRcvd:
		m.Reject(now, id, mad.REJ{Reason: mad.RejConsumer})
	case StateREPSent, StateMRAREPRcvd:
		m.sendMAD(e.peer, e.tid, mad.AttrREJ, &mad.REJ{LocalID: e.id, RemoteID: e.remoteID, Which: mad.WhichOther, Reason: mad.RejConsumer})
		m.enterTimewait(now, e)
	case StateEstablished:
		m.sendDREQ(now, e, nil)
		m.enterTimewait(now, e)
	case StateSIDRReqSent:
		m.removeEntry(e)
	case StateSIDRReqRcvd:
		m.ReplySIDR(id, mad.SIDRRep{Status: mad.SIDRReject})
	}
}

// Close abandons everything. Nothing is taken from then on.
func (m *Machine) Close(now Time) {
	m.closed = true
	for id := range m.services {
		m.Unlisten(now, id, nil)
	}
	for id := range m.entries {
		m.Abandon(now, id)
	}
	for _, e := range m.entries {
		m.removeEntry(e)
	}
}

// enterTimewait puts a connection into TIMEWAIT.
func (m *Machine) enterTimewait(now Time, e *entry) {
	m.removeHalfOpen(e)
	m.deleteIndex(m.byRemoteQPN, e, e.remoteQPN) // the peer may use the queue pair for another
	e.state = StateTimewait
	e.unanswered, e.rtuPrivateData = nil, nil
	if m.timewait.n >= m.cfg.MaxTimewait {
		m.evictTimewait()
	}
	m.timewait.push(e)
	m.timers.set(e, now+e.timewaitDuration)
}

// endStale ends a connection that its peer has forgotten.
func (m *Machine) endStale(now Time, e *entry) {
	switch e.state {
	case StateEstablished:
		m.sendDREQ(now, e, nil)
		m.enterTimewait(now, e)
		m.queueEvent(e, Event{Kind: EventDisconnected, Reason: mad.RejStaleConn})
	case StateREQRcvd, StateMRAREQSent:
		m.queueEvent(e, Event{Kind: EventWithdrawn})
		m.removeEntry(e)
	case StateREPSent, StateMRAREPRcvd, StateREPRcvd:
		m.queueEvent(e, Event{Kind: EventRejected, Reason: mad.RejStaleConn})
		m.enterTimewait(now, e)
	}
}

// handleDREQ takes a peer's wish to end a connection. It is always answered,
// for the answer to an earlier DREQ may be lost and the connection forgotten.
func (m *Machine) handleDREQ(now Time, from netip.AddrPort, h mad.Header, r mad.DREQ) Drop {
	e, drop := m.findConn(from, r.RemoteID, r.LocalID)
	switch {
	case drop == DropUnknownID:
		m.sendMAD(from, h.TID, mad.AttrDREP, &mad.DREP{LocalID: r.RemoteID, RemoteID: r.LocalID})
		return drop
	case drop != DropNone:
		return drop
	case e.localQPN != r.RemoteQPN:
		return DropWrongQPN
	}
	switch e.state {
	case StateREPSent, StateMRAREPRcvd: // the RTU is lost, but the peer had our REP
		m.setEstablished(e, nil)
		fallthrough
	case StateEstablished, StateREPRcvd:
		m.sendDREP(e, h)
		m.enterTimewait(now, e)
		m.queueEvent(e, Event{Kind: EventDisconnected, Private: r.PrivateData})
	case StateDREQSent: // the two crossed
		m.sendDREP(e, h)
		m.enterTimewait(now, e)
		m.queueEvent(e, Event{Kind: EventReleased, Private: r.PrivateData})
	case StateTimewait:
		m.sendDREP(e, h)
		return DropDuplicate
	default:
		return DropUnexpected
	}
	return DropNone
}

func (m *Machine) sendDREP(e *entry, h mad.Header) {
	m.sendMAD(e.peer, h.TID, mad.AttrDREP, &mad.DREP{LocalID: e.id, RemoteID: e.remoteID})
}

// handleDREP takes the answer to a DREQ of ours.
func (m *Machine) handleDREP(now Time, from netip.AddrPort, h mad.Header, r mad.DREP) Drop {
	e, drop := m.findConn(from, r.RemoteID, r.LocalID)
	switch {
	case drop != DropNone:
		return drop
	case e.state == StateTimewait:
		return DropDuplicate
	case e.state != StateDREQSent:
		return DropUnexpected
	case h.TID != e.dreqTID:
		return DropWrongTID
	}
	m.enterTimewait(now, e)
	m.queueEvent(e, Event{Kind: EventReleased, Private: r.PrivateData})
	return DropNone
}

// handleREJ takes a peer's refusal.
func (m *Machine) handleREJ(now Time, from netip.AddrPort, h mad.Header, r mad.REJ) Drop {
	var e *entry
	drop := DropUnknownID
	if r.RemoteID == 0 { // of one that gave up before it knew our id
		if e = m.byRemoteID[remoteKey{from, r.LocalID}]; e != nil && r.LocalID != 0 {
			drop = DropNone
		}
	} else {
		theirs := r.LocalID
		if known := m.entries[r.RemoteID]; known != nil && theirs == 0 { // of one that knows nothing of it
			theirs = known.remoteID
		}
		e, drop = m.findConn(from, r.RemoteID, theirs)
	}
	switch {
	case drop != DropNone:
		return drop
	case h.TID != e.tid:
		return DropWrongTID
	}
	ev := Event{Kind: EventRejected, Reason: r.Reason, Info: r.Info, Private: r.PrivateData}
	switch e.state {
	case StateREQSent, StateMRAREQRcvd:
		m.queueEvent(e, ev)
		m.removeEntry(e)
	case StateREQRcvd, StateMRAREQSent:
		ev.Kind = EventWithdrawn
		m.queueEvent(e, ev)
		m.removeEntry(e)
	case StateREPSent, StateMRAREPRcvd, StateREPRcvd:
		m.enterTimewait(now, e)
		m.queueEvent(e, ev)
	case StateEstablished:
		ev.Kind = EventDisconnected
		m.enterTimewait(now, e)
		m.queueEvent(e, ev)
	case StateDREQSent:
		ev.Kind = EventReleased
		m.enterTimewait(now, e)
		m.queueEvent(e, ev)
	default:
		return DropUnexpected
	}
	return DropNone
}

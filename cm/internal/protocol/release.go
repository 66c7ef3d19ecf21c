package protocol

import (
	"encoding/binary"
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// Disconnect sends a DREQ. EventReleased reports its completion. It returns false if the
// connection is not established.
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

// firstDREQDelay is the first retransmission timeout of a DREQ, 250 ms. It doubles with each
// retransmission up to the peer's retransmission timeout.
const firstDREQDelay = Time(250_000_000)

// retryDelay returns the time until the next retransmission. The peer's timeout allows for its
// application's decision; a DREQ is answered by the peer's manager at once, and a program that
// terminates does not stay to retransmit it, so a DREQ starts with a shorter timeout.
func (e *entry) retryDelay() Time {
	if e.state == StateDREQSent && e.retriesLeft > 0 {
		return min(e.retryInterval, firstDREQDelay<<(e.retries-e.retriesLeft))
	}
	return e.retryInterval
}

// Abandon ends a connection or request in any state without an event and notifies the peer once.
func (m *Machine) Abandon(now Time, id uint32) {
	e := m.entries[id]
	if e == nil {
		return
	}
	switch e.state {
	case StateREQSent, StateMRAREQRcvd:
		var guid [8]byte
		binary.BigEndian.PutUint64(guid[:], m.cfg.GUID)
		m.sendMAD(e.peer, e.tid, mad.AttrREJ, &mad.REJ{LocalID: e.id, Message: mad.KindREQ, Reason: mad.RejTimeout, Info: guid[:]})
		m.removeEntry(e)
	case StateREQRcvd, StateMRAREQSent, StateREPRcvd:
		m.Reject(now, id, mad.REJ{Reason: mad.RejConsumer})
	case StateREPSent, StateMRAREPRcvd:
		m.sendMAD(e.peer, e.tid, mad.AttrREJ, &mad.REJ{LocalID: e.id, RemoteID: e.remoteID, Message: mad.KindOther, Reason: mad.RejConsumer})
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

// Close abandons all entries. The machine drops all later datagrams.
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

// enterTimewait moves a connection to TIMEWAIT.
func (m *Machine) enterTimewait(now Time, e *entry) {
	m.removeHalfOpen(e)
	m.markReleased(e)
	m.deleteIndex(m.byRemoteQPN, e, e.remoteQPN) // the peer may connect that queue pair again
	e.state = StateTimewait
	e.unanswered, e.rtuPrivateData = nil, nil
	if m.timewait.n >= m.cfg.MaxTimewait {
		m.evictTimewait()
	}
	m.timewait.push(e)
	m.timers.Set(&e.timer, e, now+e.timewaitDuration)
}

// markConnected calls OnConnect for a connection that the peer may hold established.
func (m *Machine) markConnected(e *entry) {
	if m.cfg.OnConnect != nil {
		e.connected = true
		m.cfg.OnConnect(e.peer, e.id, e.remoteID, e.remoteQPN)
	}
}

// markReleased calls OnRelease if it is due.
func (m *Machine) markReleased(e *entry) {
	if e.connected {
		e.connected = false
		m.cfg.OnRelease(e.id)
	}
}

// endStale ends a connection whose peer has lost its state.
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

// handleDREQ handles a peer's disconnect request. It always sends a DREP, even for an unknown
// connection: the DREP to an earlier DREQ may be lost and the connection removed.
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
	case StateREPSent, StateMRAREPRcvd: // the RTU is lost, but the DREQ implies it
		m.setEstablished(e, nil)
		fallthrough
	case StateEstablished, StateREPRcvd:
		m.sendDREP(e, h)
		m.enterTimewait(now, e)
		m.queueEvent(e, Event{Kind: EventDisconnected, Private: r.PrivateData})
	case StateDREQSent: // both sides disconnect at once
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

// handleDREP handles the reply to a local DREQ.
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

// handleREJ handles a peer's rejection.
func (m *Machine) handleREJ(now Time, from netip.AddrPort, h mad.Header, r mad.REJ) Drop {
	var e *entry
	drop := DropUnknownID
	if r.RemoteID == 0 { // the peer gave up before it knew the local ID
		if e = m.byRemoteID[remoteKey{from, r.LocalID}]; e != nil && r.LocalID != 0 {
			drop = DropNone
		}
	} else {
		theirs := r.LocalID
		if known := m.entries[r.RemoteID]; known != nil && theirs == 0 { // the peer has no state
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

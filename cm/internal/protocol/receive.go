package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// rocePort is the UDP port of adapters that announce no other.
const rocePort = 4791

// Handle handles a datagram from queue pair 1 of the adapter at from. Events may hold views of b.
func (m *Machine) Handle(now Time, from netip.Addr, b []byte) Drop {
	drop := m.handleMAD(now, from.Unmap(), b)
	if drop != DropNone {
		m.stats.Dropped[drop]++
	}
	return drop
}

func (m *Machine) handleMAD(now Time, addr netip.Addr, b []byte) Drop {
	h, body, bad := mad.Parse(b)
	if bad != mad.DropNone {
		m.stats.Malformed[bad]++
		return DropMalformed
	}
	m.stats.Received[h.Attr-mad.AttrREQ]++
	if m.closed {
		return DropUnexpected
	}
	port := h.UDPPort
	if port == 0 {
		port = rocePort
	}
	from := netip.AddrPortFrom(addr, port)
	switch r := body.(type) {
	case *mad.REQ:
		return m.handleREQ(now, from, h, *r)
	case *mad.MRA:
		return m.handleMRA(now, from, h, *r)
	case *mad.REJ:
		return m.handleREJ(now, from, h, *r)
	case *mad.REP:
		return m.handleREP(now, from, h, *r)
	case *mad.RTU:
		return m.handleRTU(from, *r)
	case *mad.DREQ:
		return m.handleDREQ(now, from, h, *r)
	case *mad.DREP:
		return m.handleDREP(now, from, h, *r)
	case *mad.SIDRReq:
		return m.handleSIDRReq(now, from, h, *r)
	case *mad.SIDRRep:
		return m.handleSIDRRep(from, h, *r)
	case *mad.LAP:
		return m.handleLAP(from, h, *r)
	}
	return DropUnsupported // APR
}

// findConn returns the connection with the local ID ours, if its peer is at from and has the ID
// theirs.
func (m *Machine) findConn(from netip.AddrPort, ours, theirs uint32) (*entry, Drop) {
	e := m.entries[ours]
	switch {
	case e == nil || e.state == StateSIDRReqSent || e.state == StateSIDRReqRcvd:
		return nil, DropUnknownID
	case e.peer != from || e.remoteID != 0 && e.remoteID != theirs:
		return nil, DropWrongPeer
	}
	return e, DropNone
}

// handleLAP rejects an alternate path.
func (m *Machine) handleLAP(from netip.AddrPort, h mad.Header, r mad.LAP) Drop {
	e, drop := m.findConn(from, r.RemoteID, r.LocalID)
	if drop != DropNone {
		return drop
	}
	m.sendMAD(from, h.TID, mad.AttrAPR, &mad.APR{LocalID: e.id, RemoteID: e.remoteID, Status: mad.APRUnsupported})
	return DropNone
}

// handleTimeout handles the expired timer of an entry.
func (m *Machine) handleTimeout(now Time, e *entry) {
	switch e.state {
	case StateREQRcvd:
		m.sendMRA(e)
	case StateMRAREQSent, StateREPRcvd: // the application did not reply
		m.stats.TimedOut++
		m.queueEvent(e, Event{Kind: expiryEvent(e)})
		m.Reject(now, e.id, mad.REJ{Reason: mad.RejTimeout})
	case StateTimewait, StateSIDRReqRcvd:
		if e.state == StateSIDRReqRcvd {
			m.stats.TimedOut++
			m.queueEvent(e, Event{Kind: EventWithdrawn})
		}
		m.removeEntry(e)
	default:
		m.retransmitOrGiveUp(now, e)
	}
}

func expiryEvent(e *entry) EventKind {
	if e.active {
		return EventUnreachable
	}
	return EventWithdrawn
}

// retransmitOrGiveUp retransmits the unanswered message of e, or gives up after the last
// retransmission.
func (m *Machine) retransmitOrGiveUp(now Time, e *entry) {
	if e.retriesLeft > 0 {
		e.retriesLeft--
		m.retransmit(now, e)
		m.timers.Set(&e.timer, e, now+m.addJitter(e.retryDelay()))
		return
	}
	m.giveUp(now, e)
}

// giveUp ends an entry whose peer does not reply.
func (m *Machine) giveUp(now Time, e *entry) {
	m.stats.TimedOut++
	switch e.state {
	case StateREPSent, StateMRAREPRcvd:
		m.queueEvent(e, Event{Kind: EventUnreachable, Err: e.refusal})
		m.enterTimewait(now, e)
	case StateDREQSent:
		m.queueEvent(e, Event{Kind: EventReleased, TimedOut: true})
		m.enterTimewait(now, e)
	default: // REQ and SIDR_REQ
		m.queueEvent(e, Event{Kind: EventUnreachable, Err: e.refusal})
		m.removeEntry(e)
	}
}

// refusedRetryDelay is the delay before a refused message is sent again, 10 ms: the route may be
// changing, or the ICMP error may concern an earlier process at that address.
const refusedRetryDelay = Time(10_000_000)

// HandleRefusal records that a message to the adapter at peer was refused by the system or by
// ICMP, with the cause err. Entries that await a reply from that peer retransmit once more after
// 10 ms, and end as unreachable if that is refused, too.
func (m *Machine) HandleRefusal(now Time, peer netip.AddrPort, err error) {
	for _, e := range m.timers.Objects() {
		if !sameAdapter(e.peer, peer) || e.unanswered == nil || e.attemptRefused || !awaitsReply(e.state) {
			continue
		}
		repeated := e.refusal != nil
		e.refusal, e.attemptRefused = err, true
		if repeated {
			m.giveUp(now, e)
		} else {
			m.timers.Set(&e.timer, e, min(e.timer.At(), now+refusedRetryDelay))
		}
	}
}

// sameAdapter compares addresses without their zones, which may be missing on one side.
func sameAdapter(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && a.Addr().WithZone("") == b.Addr().WithZone("")
}

// awaitsReply reports whether an entry in state s has had no response to its last message.
func awaitsReply(s State) bool {
	return s == StateREQSent || s == StateREPSent || s == StateDREQSent || s == StateSIDRReqSent
}

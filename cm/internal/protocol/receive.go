package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// rocePort is where adapters listen unless they say otherwise.
const rocePort = 4791

// Handle takes a datagram that came from queue pair 1 of the adapter with that
// address. Events may hold views of b.
func (m *Machine) Handle(now Time, from netip.Addr, b []byte) Drop {
	drop := m.handle(now, from.Unmap(), b)
	if drop != DropNone {
		m.stats.Dropped[drop]++
	}
	return drop
}

func (m *Machine) handle(now Time, addr netip.Addr, b []byte) Drop {
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
	switch h.Attr {
	case mad.AttrREQ:
		return m.handleREQ(now, from, h, mad.ParseREQ(body))
	case mad.AttrMRA:
		return m.handleMRA(now, from, h, mad.ParseMRA(body))
	case mad.AttrREJ:
		return m.handleREJ(now, from, h, mad.ParseREJ(body))
	case mad.AttrREP:
		return m.handleREP(now, from, h, mad.ParseREP(body))
	case mad.AttrRTU:
		return m.handleRTU(from, mad.ParseRTU(body))
	case mad.AttrDREQ:
		return m.handleDREQ(now, from, h, mad.ParseDREQ(body))
	case mad.AttrDREP:
		return m.handleDREP(now, from, h, mad.ParseDREP(body))
	case mad.AttrSIDRReq:
		return m.handleSIDRReq(now, from, h, mad.ParseSIDRReq(body))
	case mad.AttrSIDRRep:
		return m.handleSIDRRep(from, h, mad.ParseSIDRRep(body))
	case mad.AttrLAP:
		return m.handleLAP(from, h, mad.ParseLAP(body))
	}
	return DropUnsupported // APR
}

// find looks up the connection with our id, of a peer at from that calls it
// theirs.
func (m *Machine) find(from netip.AddrPort, ours, theirs uint32) (*entry, Drop) {
	e := m.entries[ours]
	switch {
	case e == nil || e.state == StateSIDRReqSent || e.state == StateSIDRReqRcvd:
		return nil, DropUnknownID
	case e.peer != from || e.remoteID != 0 && e.remoteID != theirs:
		return nil, DropWrongPeer
	}
	return e, DropNone
}

// handleLAP refuses an alternate path.
func (m *Machine) handleLAP(from netip.AddrPort, h mad.Header, r mad.LAP) Drop {
	e, drop := m.find(from, r.RemoteID, r.LocalID)
	if drop != DropNone {
		return drop
	}
	m.send(from, h.TID, mad.AttrAPR, &mad.APR{LocalID: e.id, RemoteID: e.remoteID, Status: mad.APRUnsupported})
	return DropNone
}

// expired does what is due for an entry.
func (m *Machine) expired(now Time, e *entry) {
	switch e.state {
	case StateREQRcvd:
		m.sendMRA(e)
	case StateMRAREQSent, StateREPRcvd: // our program did not answer
		m.stats.TimedOut++
		m.raise(e, Event{Kind: withdrawnOr(e)})
		m.Reject(now, e.id, mad.REJ{Reason: mad.RejTimeout})
	case StateTimewait, StateSIDRReqRcvd:
		if e.state == StateSIDRReqRcvd {
			m.stats.TimedOut++
			m.raise(e, Event{Kind: EventWithdrawn})
		}
		m.forget(e)
	default:
		m.unanswered(now, e)
	}
}

func withdrawnOr(e *entry) EventKind {
	if e.active {
		return EventUnreachable
	}
	return EventWithdrawn
}

// unanswered repeats a message, or gives up.
func (m *Machine) unanswered(now Time, e *entry) {
	if e.left > 0 {
		e.left--
		m.again(now, e)
		m.timers.set(e, now+m.jitter(e.pause()))
		return
	}
	m.giveUp(now, e)
}

// giveUp ends what the peer has not answered.
func (m *Machine) giveUp(now Time, e *entry) {
	m.stats.TimedOut++
	switch e.state {
	case StateREPSent, StateMRAREPRcvd:
		m.raise(e, Event{Kind: EventUnreachable, Err: e.refusal})
		m.rest(now, e)
	case StateDREQSent:
		m.raise(e, Event{Kind: EventReleased, TimedOut: true})
		m.rest(now, e)
	default: // REQ and SIDR_REQ
		m.raise(e, Event{Kind: EventUnreachable, Err: e.refusal})
		m.forget(e)
	}
}

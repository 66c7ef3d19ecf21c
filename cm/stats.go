package cm

import (
	"iter"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/wire/mad"
)

// Stats are the counters of a Manager.
type Stats struct {
	Sent      Messages // messages sent, including retransmissions
	Received  Messages // valid messages received
	Malformed Malformed
	Dropped   Dropped

	Foreign uint64 // datagrams whose source is not a queue pair 1
	Unsent  uint64 // messages that could not be sent

	Retransmitted uint64 // messages
	TimedOut      uint64 // connections and requests that ended for lack of a reply
	Evicted       uint64 // half-open connections removed in favor of new ones

	Requests  uint64 // connection requests that reached a listener
	Connected uint64 // connections established
	Rejected  uint64 // connections rejected locally

	Connections int // current number, in any state
	HalfOpen    int // of these, half-open
	TimeWait    int // of these, in TIMEWAIT
	SIDR        int // outstanding SIDR requests of both sides
}

// Messages are numbers of messages by type.
type Messages struct {
	REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDRReq, SIDRRep, LAP, APR uint64
}

// Malformed are numbers of datagrams that are not valid messages, by reason.
type Malformed struct {
	BadSize          uint64 // not 256 bytes
	BadVersion       uint64 // unsupported base version
	OtherClass       uint64 // another management class
	BadClassVersion  uint64 // unsupported class version
	BadMethod        uint64 // the method is not Send
	UnknownAttribute uint64 // unknown attribute
}

// Dropped are numbers of valid messages that were dropped, by reason.
type Dropped struct {
	Malformed        uint64 // not a communication management MAD
	UnknownID        uint64 // unknown communication ID
	WrongPeer        uint64 // the connection belongs to another peer
	WrongTransaction uint64 // reply to another transaction
	WrongQPN         uint64 // DREQ with a queue pair number other than the connection's
	Unexpected       uint64 // not valid in the connection's state
	Duplicate        uint64 // duplicate that needs no reply
	BacklogFull      uint64 // the listener's backlog is full
	PeerShare        uint64 // the peer's share of the backlog is full
	TableFull        uint64 // the connection table is full
	Unsupported      uint64 // APR without a LAP
	ReservedField    uint64 // communication ID 0 or an invalid path
}

// Stats returns a snapshot of the counters.
func (m *Manager) Stats() Stats {
	m = m.orClosed()
	m.mu.Lock()
	p, foreign, unsent := m.machine.Stats(), m.foreign, m.unsent
	m.mu.Unlock()
	return Stats{
		Sent: messagesOf(&p.Sent), Received: messagesOf(&p.Received), Malformed: malformedOf(&p.Malformed), Dropped: droppedOf(&p.Dropped),
		Foreign: foreign, Unsent: unsent, Retransmitted: p.Repeated, TimedOut: p.TimedOut, Evicted: p.Evicted,
		Requests: p.Requests, Connected: p.Connected, Rejected: p.Rejected,
		Connections: p.Connections, HalfOpen: p.HalfOpen, TimeWait: p.Timewait, SIDR: p.SIDR,
	}
}

func messagesOf(n *[protocol.NumMessages]uint64) Messages {
	of := func(a mad.Attr) uint64 { return n[a-mad.AttrREQ] }
	return Messages{
		REQ: of(mad.AttrREQ), MRA: of(mad.AttrMRA), REJ: of(mad.AttrREJ), REP: of(mad.AttrREP), RTU: of(mad.AttrRTU), DREQ: of(mad.AttrDREQ),
		DREP: of(mad.AttrDREP), SIDRReq: of(mad.AttrSIDRReq), SIDRRep: of(mad.AttrSIDRRep), LAP: of(mad.AttrLAP), APR: of(mad.AttrAPR),
	}
}

func malformedOf(n *[mad.NumDrops]uint64) Malformed {
	return Malformed{
		BadSize:          n[mad.DropBadSize],
		BadVersion:       n[mad.DropBadVersion],
		OtherClass:       n[mad.DropOtherClass],
		BadClassVersion:  n[mad.DropBadClassVersion],
		BadMethod:        n[mad.DropBadMethod],
		UnknownAttribute: n[mad.DropUnknownAttr],
	}
}

func droppedOf(n *[protocol.NumDrops]uint64) Dropped {
	return Dropped{
		Malformed: n[protocol.DropMalformed], UnknownID: n[protocol.DropUnknownID], WrongPeer: n[protocol.DropWrongPeer],
		WrongTransaction: n[protocol.DropWrongTID], WrongQPN: n[protocol.DropWrongQPN], Unexpected: n[protocol.DropUnexpected],
		Duplicate: n[protocol.DropDuplicate], BacklogFull: n[protocol.DropBacklogFull], PeerShare: n[protocol.DropPeerShare],
		TableFull: n[protocol.DropTableFull], Unsupported: n[protocol.DropUnsupported], ReservedField: n[protocol.DropReservedField],
	}
}

// A counterRegistry is a device that publishes counters of the layers above it, as package rnic's
// does.
type counterRegistry interface {
	AddLayer(name string, counters iter.Seq2[string, uint64], levels ...string) (remove func())
}

// registerCounters adds the manager's counters to the device's, if the device supports that, and
// returns a function that removes them.
func (m *Manager) registerCounters() (hide func()) {
	dev, ok := m.dev.(counterRegistry)
	if !ok {
		return func() {}
	}
	return dev.AddLayer("cm", func(yield func(string, uint64) bool) { m.Stats().All()(yield) }, levels...)
}

// levels are the names of the current values among the counters.
var levels = []string{"connections", "half_open", "timewait", "sidr"}

// All returns an iterator over the names and values of all counters: "sent_req",
// "dropped_unknown_id", "connections" and so on.
func (s Stats) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, c := range s.counters() {
			if !yield(c.name, c.value) {
				return
			}
		}
	}
}

// A counter is a name and its value.
type counter struct {
	name  string
	value uint64
}

func (s *Stats) counters() []counter {
	list := append(s.Sent.counters("sent_"), s.Received.counters("received_")...)
	list = append(list, s.Malformed.counters()...)
	list = append(list, s.Dropped.counters()...)
	return append(list, []counter{
		{"foreign", s.Foreign}, {"unsent", s.Unsent}, {"repeated", s.Retransmitted}, {"timed_out", s.TimedOut},
		{"evicted", s.Evicted}, {"requests", s.Requests}, {"connected", s.Connected}, {"rejected", s.Rejected},
		{"connections", uint64(s.Connections)}, {"half_open", uint64(s.HalfOpen)}, {"timewait", uint64(s.TimeWait)},
		{"sidr", uint64(s.SIDR)},
	}...)
}

func (m *Messages) counters(prefix string) []counter {
	return []counter{
		{prefix + "req", m.REQ}, {prefix + "mra", m.MRA}, {prefix + "rej", m.REJ}, {prefix + "rep", m.REP}, {prefix + "rtu", m.RTU},
		{prefix + "dreq", m.DREQ}, {prefix + "drep", m.DREP}, {prefix + "sidr_req", m.SIDRReq}, {prefix + "sidr_rep", m.SIDRRep},
		{prefix + "lap", m.LAP}, {prefix + "apr", m.APR},
	}
}

func (m *Malformed) counters() []counter {
	return []counter{
		{"malformed_bad_size", m.BadSize},
		{"malformed_bad_version", m.BadVersion},
		{"malformed_other_class", m.OtherClass},
		{"malformed_bad_class_version", m.BadClassVersion},
		{"malformed_bad_method", m.BadMethod},
		{"malformed_unknown_attribute", m.UnknownAttribute},
	}
}

func (d *Dropped) counters() []counter {
	return []counter{
		{"dropped_malformed", d.Malformed}, {"dropped_unknown_id", d.UnknownID}, {"dropped_wrong_peer", d.WrongPeer},
		{"dropped_wrong_transaction", d.WrongTransaction}, {"dropped_wrong_qpn", d.WrongQPN}, {"dropped_unexpected", d.Unexpected},
		{"dropped_duplicate", d.Duplicate}, {"dropped_backlog_full", d.BacklogFull}, {"dropped_peer_share", d.PeerShare},
		{"dropped_table_full", d.TableFull}, {"dropped_unsupported", d.Unsupported}, {"dropped_reserved_field", d.ReservedField},
	}
}

package cm

import (
	"iter"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/counters"
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

	Retransmitted uint64 `counter:"repeated"` // messages
	TimedOut      uint64 // connections and requests that ended for lack of a reply
	Evicted       uint64 // half-open connections removed in favor of new ones

	Requests  uint64 // connection requests that reached a listener
	Connected uint64 // connections established
	Rejected  uint64 // connections rejected locally

	Connections int // current number, in any state
	HalfOpen    int // of these, half-open
	TimeWait    int `counter:"timewait"` // of these, in TIMEWAIT
	SIDR        int // outstanding SIDR requests of both sides
}

// Messages are numbers of messages by type, in the order of mad.Attr.
type Messages struct {
	REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDRReq, SIDRRep, LAP, APR uint64
}

// Malformed are numbers of datagrams that are not valid messages, by reason, in the order of mad.Drop.
type Malformed struct {
	BadSize          uint64 // not 256 bytes
	BadVersion       uint64 // unsupported base version
	OtherClass       uint64 // another management class
	BadClassVersion  uint64 // unsupported class version
	BadMethod        uint64 // the method is not Send
	UnknownAttribute uint64 // unknown attribute
}

// Dropped are numbers of valid messages that were dropped, by reason, in the order of protocol.Drop.
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
	if m.streams != nil {
		p.Requests, p.Connected, p.Rejected = m.stream.requests, m.stream.connected, m.stream.rejected
		p.Connections = len(m.handlers)
	}
	m.mu.Unlock()
	s := Stats{Foreign: foreign, Unsent: unsent, Connections: p.Connections, HalfOpen: p.HalfOpen, TimeWait: p.TimeWait, SIDR: p.SIDR}
	counters.Add(&s, p)
	counters.Set(&s.Sent, p.Sent[:])
	counters.Set(&s.Received, p.Received[:])
	counters.Set(&s.Malformed, p.Malformed[mad.DropBadSize:])
	counters.Set(&s.Dropped, p.Dropped[protocol.DropMalformed:])
	return s
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
func (s Stats) All() iter.Seq2[string, uint64] { return counters.All(s) }

package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/wire/mad"
)

// A State is the state of a connection (enum ib_cm_state) or of a SIDR request.
type State uint8

// States.
const (
	StateREQSent State = iota
	StateMRAREQRcvd
	StateREPRcvd
	StateREQRcvd
	StateMRAREQSent
	StateREPSent
	StateMRAREPRcvd
	StateEstablished
	StateDREQSent
	StateTimewait
	StateSIDRReqSent
	StateSIDRReqRcvd
	StateGone
)

var stateNames = [...]string{
	"REQ_SENT", "MRA_REQ_RCVD", "REP_RCVD", "REQ_RCVD", "MRA_REQ_SENT", "REP_SENT", "MRA_REP_RCVD", "ESTABLISHED",
	"DREQ_SENT", "TIMEWAIT", "SIDR_REQ_SENT", "SIDR_REQ_RCVD", "GONE",
}

// String returns the name of the state, for example "REQ_SENT".
func (s State) String() string { return stateNames[min(s, StateGone)] }

// A Datagram is a MAD to send to a peer's adapter.
type Datagram struct {
	To  netip.AddrPort
	MAD [mad.Size]byte
}

// A Machine is the communication manager of one adapter. It is not safe for concurrent use.
type Machine struct {
	cfg            Config
	tidHigh        uint32 // upper half of local transaction IDs
	tidLow         uint32 // lower half of the last local transaction ID
	entries        map[uint32]*entry
	byRemoteID     map[remoteKey]*entry // by the peer's communication ID
	byRemoteQPN    map[remoteKey]*entry // by the peer's queue pair number, until TIMEWAIT
	sidrByRemoteID map[remoteKey]*entry // SIDR requests of peers, by their request ID
	services       map[mad.ServiceID]*service
	timers         deadline.Heap[Time, *entry]
	timewait       entryList // entries in TIMEWAIT, oldest first

	out      []Datagram
	outPos   int
	events   []Event
	eventPos int
	stats    Stats
	closed   bool
}

// A remoteKey is a peer's identifier: a communication ID, queue pair number or request ID.
type remoteKey struct {
	peer netip.AddrPort
	num  uint32
}

// New returns a Machine without connections.
func New(c Config) *Machine {
	c.setDefaults()
	return &Machine{
		cfg: c, tidHigh: c.Rand(), tidLow: c.Rand(),
		entries: make(map[uint32]*entry), byRemoteID: make(map[remoteKey]*entry), byRemoteQPN: make(map[remoteKey]*entry),
		sidrByRemoteID: make(map[remoteKey]*entry), services: make(map[mad.ServiceID]*service),
	}
}

// Deadline returns the time at which Advance must be called, or 0 for never.
func (m *Machine) Deadline() Time { return m.timers.Next() }

// Advance handles all timers that have expired at now.
func (m *Machine) Advance(now Time) {
	for e := m.timers.PopDue(now); e != nil; e = m.timers.PopDue(now) {
		m.handleTimeout(now, e)
	}
}

// NextDatagram dequeues the next datagram to send.
func (m *Machine) NextDatagram() (d *Datagram, ok bool) {
	if m.outPos == len(m.out) {
		m.out, m.outPos = m.out[:0], 0
		return nil, false
	}
	m.outPos++
	return &m.out[m.outPos-1], true
}

// NextEvent dequeues the next event.
func (m *Machine) NextEvent() (e *Event, ok bool) {
	if m.eventPos == len(m.events) {
		clear(m.events)
		m.events, m.eventPos = m.events[:0], 0
		return nil, false
	}
	m.eventPos++
	return &m.events[m.eventPos-1], true
}

// Stats returns a snapshot of the counters.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Connections = len(m.entries) - s.SIDR
	s.TimeWait = m.timewait.n
	for _, l := range m.services {
		s.HalfOpen += l.halfOpen.n
	}
	return s
}

// State returns the state of a connection, or StateGone if it does not exist.
func (m *Machine) State(id uint32) State {
	if e := m.entries[id]; e != nil {
		return e.state
	}
	return StateGone
}

// newTID returns a new transaction ID.
func (m *Machine) newTID() uint64 {
	m.tidLow++
	return uint64(m.tidHigh)<<32 | uint64(m.tidLow)
}

// newEntry adds an entry with a new communication ID, or returns nil if the table is full and no
// entry in TIMEWAIT can be evicted.
func (m *Machine) newEntry(peer netip.AddrPort, s State) *entry {
	if len(m.entries) >= m.cfg.MaxConns && !m.evictTimewait() {
		return nil
	}
	e := &entry{peer: peer, state: s}
	for e.id == 0 || m.entries[e.id] != nil {
		e.id = m.cfg.IDPrefix | m.cfg.Rand()>>m.cfg.IDPrefixBits
	}
	m.entries[e.id] = e
	return e
}

// evictTimewait removes the oldest entry in TIMEWAIT and reports whether there was one.
func (m *Machine) evictTimewait() bool {
	e := m.timewait.first
	if e != nil {
		m.removeEntry(e)
	}
	return e != nil
}

// removeEntry removes an entry from all tables and lists.
func (m *Machine) removeEntry(e *entry) {
	m.timers.Set(&e.timer, e, 0)
	m.removeHalfOpen(e)
	m.markReleased(e)
	if e.state == StateTimewait {
		m.timewait.remove(e)
	}
	if e.state == StateSIDRReqSent || e.state == StateSIDRReqRcvd {
		m.stats.SIDR--
	}
	delete(m.entries, e.id)
	m.deleteIndex(m.byRemoteID, e, e.remoteID)
	m.deleteIndex(m.byRemoteQPN, e, e.remoteQPN)
	m.deleteIndex(m.sidrByRemoteID, e, e.remoteID)
	e.state = StateGone
}

func (m *Machine) deleteIndex(from map[remoteKey]*entry, e *entry, num uint32) {
	if k := (remoteKey{e.peer, num}); from[k] == e {
		delete(from, k)
	}
}

// sendMAD enqueues a message to a peer.
func (m *Machine) sendMAD(to netip.AddrPort, tid uint64, attr mad.Attr, body mad.Message) *Datagram {
	m.out = append(m.out, Datagram{To: to})
	d := &m.out[len(m.out)-1]
	mad.Put(&d.MAD, mad.Header{TID: tid, Attr: attr, UDPPort: m.cfg.UDPPort}, body)
	m.stats.Sent[attr-mad.AttrREQ]++
	return d
}

// sendWithRetry enqueues a message that requires a reply and starts its retransmission timer.
func (m *Machine) sendWithRetry(now Time, e *entry, tid uint64, attr mad.Attr, body mad.Message) {
	d := m.sendMAD(e.peer, tid, attr, body)
	e.unanswered = new([mad.Size]byte)
	*e.unanswered = d.MAD
	e.retriesLeft = e.retries
	e.refusal, e.attemptRefused = nil, false
	m.timers.Set(&e.timer, e, now+m.addJitter(e.retryDelay()))
}

// retransmit enqueues the unanswered message of e again.
func (m *Machine) retransmit(now Time, e *entry) {
	e.attemptRefused = false
	m.out = append(m.out, Datagram{To: e.peer, MAD: *e.unanswered})
	h, _, _ := mad.Parse(e.unanswered[:])
	m.stats.Sent[h.Attr-mad.AttrREQ]++
	m.stats.Retransmitted++
}

// addJitter adds up to a quarter of t, so that messages lost together are not retransmitted
// together.
func (m *Machine) addJitter(t Time) Time {
	return t + Time(uint64(m.cfg.Rand())*uint64(t/4)>>32)
}

// queueEvent enqueues an event of e.
func (m *Machine) queueEvent(e *entry, ev Event) {
	ev.ID, ev.Peer = e.id, e.peer
	m.events = append(m.events, ev)
}

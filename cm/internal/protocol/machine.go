package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// State is that of a connection (enum ib_cm_state), or of a request for
// datagrams.
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

// String is the state's name, for example "REQ_SENT".
func (s State) String() string { return stateNames[min(s, StateGone)] }

// Datagram is a message on its way to a peer's adapter.
type Datagram struct {
	To  netip.AddrPort
	MAD [mad.Size]byte
}

// Machine is the communication manager of one adapter.
type Machine struct {
	cfg            Config
	tidHigh        uint32 // upper half of our transaction ids
	tidLow         uint32 // lower half of the last one
	entries        map[uint32]*entry
	byRemoteID     map[remoteKey]*entry // by the peer's communication id
	byRemoteQPN    map[remoteKey]*entry // by the peer's queue pair, until TIMEWAIT
	sidrByRemoteID map[remoteKey]*entry // SIDR requests of peers, by their id
	services       map[mad.ServiceID]*service
	timers         timers
	timewait       entryList // in TIMEWAIT, oldest first

	out      []Datagram
	outPos   int
	events   []Event
	eventPos int
	stats    Stats
	closed   bool
}

// remoteKey is a number of a peer's.
type remoteKey struct {
	peer netip.AddrPort
	num  uint32
}

// New makes a Machine.
func New(c Config) *Machine {
	c.setDefaults()
	return &Machine{
		cfg: c, tidHigh: c.Rand(), tidLow: c.Rand(),
		entries: make(map[uint32]*entry), byRemoteID: make(map[remoteKey]*entry), byRemoteQPN: make(map[remoteKey]*entry),
		sidrByRemoteID: make(map[remoteKey]*entry), services: make(map[mad.ServiceID]*service),
	}
}

// Deadline is when Advance must be called, 0 for never.
func (m *Machine) Deadline() Time { return m.timers.next() }

// Advance does what is due.
func (m *Machine) Advance(now Time) {
	for {
		at := m.timers.next()
		if at == 0 || at > now {
			return
		}
		m.handleTimeout(now, m.timers[0])
	}
}

// NextDatagram takes a datagram that is to be sent.
func (m *Machine) NextDatagram() (d *Datagram, ok bool) {
	if m.outPos == len(m.out) {
		m.out, m.outPos = m.out[:0], 0
		return nil, false
	}
	m.outPos++
	return &m.out[m.outPos-1], true
}

// NextEvent takes an event.
func (m *Machine) NextEvent() (e *Event, ok bool) {
	if m.eventPos == len(m.events) {
		clear(m.events)
		m.events, m.eventPos = m.events[:0], 0
		return nil, false
	}
	m.eventPos++
	return &m.events[m.eventPos-1], true
}

// Stats returns what was counted.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Connections = len(m.entries) - s.SIDR
	s.Timewait = m.timewait.n
	for _, l := range m.services {
		s.HalfOpen += l.halfOpen.n
	}
	return s
}

// State returns the state of a connection, StateGone if there is none.
func (m *Machine) State(id uint32) State {
	if e := m.entries[id]; e != nil {
		return e.state
	}
	return StateGone
}

// newTID is a new transaction id.
func (m *Machine) newTID() uint64 {
	m.tidLow++
	return uint64(m.tidHigh)<<32 | uint64(m.tidLow)
}

// newEntry adds an entry under an id of its own, or returns nil if there is no
// room.
func (m *Machine) newEntry(peer netip.AddrPort, s State) *entry {
	if len(m.entries) >= m.cfg.MaxConns && !m.evictTimewait() {
		return nil
	}
	e := &entry{peer: peer, state: s}
	for e.id == 0 || m.entries[e.id] != nil {
		e.id = m.cfg.Rand()
	}
	m.entries[e.id] = e
	return e
}

// evictTimewait ends the oldest TIMEWAIT, if there is one.
func (m *Machine) evictTimewait() bool {
	e := m.timewait.first
	if e != nil {
		m.removeEntry(e)
	}
	return e != nil
}

// removeEntry drops an entry.
func (m *Machine) removeEntry(e *entry) {
	m.timers.set(e, 0)
	m.removeHalfOpen(e)
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

// sendMAD lays out a message to a peer.
func (m *Machine) sendMAD(to netip.AddrPort, tid uint64, attr mad.Attr, body mad.Message) *Datagram {
	m.out = append(m.out, Datagram{To: to})
	d := &m.out[len(m.out)-1]
	mad.Put(&d.MAD, mad.Header{TID: tid, Attr: attr, UDPPort: m.cfg.UDPPort}, body)
	m.stats.Sent[attr-mad.AttrREQ]++
	return d
}

// sendWithRetry sends a message that wants an answer, and keeps it for repetition.
func (m *Machine) sendWithRetry(now Time, e *entry, tid uint64, attr mad.Attr, body mad.Message) {
	d := m.sendMAD(e.peer, tid, attr, body)
	e.unanswered = new([mad.Size]byte)
	*e.unanswered = d.MAD
	e.retriesLeft = e.retries
	e.refusal, e.attemptRefused = nil, false
	m.timers.set(e, now+m.addJitter(e.retryDelay()))
}

// retransmit repeats the message that was not answered.
func (m *Machine) retransmit(now Time, e *entry) {
	e.attemptRefused = false
	m.out = append(m.out, Datagram{To: e.peer, MAD: *e.unanswered})
	h, _, _ := mad.Parse(e.unanswered[:])
	m.stats.Sent[h.Attr-mad.AttrREQ]++
	m.stats.Repeated++
}

// addJitter adds up to a quarter, so that many that were lost together are not
// repeated together.
func (m *Machine) addJitter(t Time) Time {
	return t + Time(uint64(m.cfg.Rand())*uint64(t/4)>>32)
}

// queueEvent reports an event.
func (m *Machine) queueEvent(e *entry, ev Event) {
	ev.ID, ev.Peer = e.id, e.peer
	m.events = append(m.events, ev)
}

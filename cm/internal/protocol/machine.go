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
	cfg     Config
	epoch   uint32 // upper half of our transaction ids
	serial  uint32 // lower half of the last one
	entries map[uint32]*entry
	remotes map[remoteKey]*entry // by the peer's communication id
	remQPNs map[remoteKey]*entry // by the peer's queue pair, until TIMEWAIT
	asked   map[remoteKey]*entry // SIDR requests of peers, by their id
	serving map[mad.ServiceID]*service
	timers  timers
	waiting entryList // in TIMEWAIT, oldest first

	out    []Datagram
	outAt  int
	events []Event
	evAt   int
	stats  Stats
	closed bool
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
		cfg: c, epoch: c.Rand(), serial: c.Rand(),
		entries: make(map[uint32]*entry), remotes: make(map[remoteKey]*entry), remQPNs: make(map[remoteKey]*entry),
		asked: make(map[remoteKey]*entry), serving: make(map[mad.ServiceID]*service),
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
		m.expired(now, m.timers[0])
	}
}

// NextDatagram takes a datagram that is to be sent.
func (m *Machine) NextDatagram() (d *Datagram, ok bool) {
	if m.outAt == len(m.out) {
		m.out, m.outAt = m.out[:0], 0
		return nil, false
	}
	m.outAt++
	return &m.out[m.outAt-1], true
}

// NextEvent takes an event.
func (m *Machine) NextEvent() (e *Event, ok bool) {
	if m.evAt == len(m.events) {
		clear(m.events)
		m.events, m.evAt = m.events[:0], 0
		return nil, false
	}
	m.evAt++
	return &m.events[m.evAt-1], true
}

// Stats returns what was counted.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Connections = len(m.entries) - s.SIDR
	s.Timewait = m.waiting.n
	for _, l := range m.serving {
		s.HalfOpen += l.half.n
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

// transaction is a new transaction id.
func (m *Machine) transaction() uint64 {
	m.serial++
	return uint64(m.epoch)<<32 | uint64(m.serial)
}

// newEntry adds an entry under an id of its own, or returns nil if there is no
// room.
func (m *Machine) newEntry(peer netip.AddrPort, s State) *entry {
	if len(m.entries) >= m.cfg.MaxConns && !m.recycle() {
		return nil
	}
	e := &entry{peer: peer, state: s}
	for e.id == 0 || m.entries[e.id] != nil {
		e.id = m.cfg.Rand()
	}
	m.entries[e.id] = e
	return e
}

// recycle ends the oldest TIMEWAIT, if there is one.
func (m *Machine) recycle() bool {
	e := m.waiting.first
	if e != nil {
		m.forget(e)
	}
	return e != nil
}

// forget drops an entry.
func (m *Machine) forget(e *entry) {
	m.timers.set(e, 0)
	m.leaveService(e)
	if e.state == StateTimewait {
		m.waiting.remove(e)
	}
	if e.state == StateSIDRReqSent || e.state == StateSIDRReqRcvd {
		m.stats.SIDR--
	}
	delete(m.entries, e.id)
	m.unlink(m.remotes, e, e.remoteID)
	m.unlink(m.remQPNs, e, e.remoteQPN)
	m.unlink(m.asked, e, e.remoteID)
	e.state = StateGone
}

func (m *Machine) unlink(from map[remoteKey]*entry, e *entry, num uint32) {
	if k := (remoteKey{e.peer, num}); from[k] == e {
		delete(from, k)
	}
}

// send lays out a message to a peer.
func (m *Machine) send(to netip.AddrPort, tid uint64, attr mad.Attr, body mad.Message) *Datagram {
	m.out = append(m.out, Datagram{To: to})
	d := &m.out[len(m.out)-1]
	mad.Put(&d.MAD, mad.Header{TID: tid, Attr: attr, UDPPort: m.cfg.UDPPort}, body)
	m.stats.Sent[attr-mad.AttrREQ]++
	return d
}

// ask sends a message that wants an answer, and keeps it for repetition.
func (m *Machine) ask(now Time, e *entry, tid uint64, attr mad.Attr, body mad.Message) {
	d := m.send(e.peer, tid, attr, body)
	e.question = new([mad.Size]byte)
	*e.question = d.MAD
	e.left = e.retries
	e.refusal, e.attemptRefused = nil, false
	m.timers.set(e, now+m.jitter(e.pause()))
}

// again repeats the message that was not answered.
func (m *Machine) again(now Time, e *entry) {
	e.attemptRefused = false
	m.out = append(m.out, Datagram{To: e.peer, MAD: *e.question})
	h, _, _ := mad.Parse(e.question[:])
	m.stats.Sent[h.Attr-mad.AttrREQ]++
	m.stats.Repeated++
}

// jitter adds up to a quarter, so that many that were lost together are not
// repeated together.
func (m *Machine) jitter(t Time) Time {
	return t + Time(uint64(m.cfg.Rand())*uint64(t/4)>>32)
}

// raise reports an event.
func (m *Machine) raise(e *entry, ev Event) {
	ev.ID, ev.Peer = e.id, e.peer
	m.events = append(m.events, ev)
}

package protocol

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

const (
	ms  = Time(1_000_000)
	sec = 1000 * ms
)

// world is a simulation: machines on a network that loses, delays and duplicates datagrams, with
// random programs. A seed is one run.
type world struct {
	t     testing.TB
	rng   *rand.Rand
	now   Time
	hosts []*host
	due   []action // future actions of programs and the network, by time
	steps int

	loss, dup float64 // of datagrams
	delay     Time    // maximum delay; datagrams overtake each other
	moody     bool    // programs reject, abandon, and do not respond
	sent      int
}

// action is a future action.
type action struct {
	at Time
	do func()
}

// host is a machine and the program above it.
type host struct {
	w     *world
	name  string
	addr  netip.AddrPort
	m     *Machine
	conns map[uint32]*userConn
	qpn   uint32
	all   []*userConn // all that have existed

	asks, answers int // for datagrams
}

// userConn is a connection from the program's view.
type userConn struct {
	h         *host
	id        uint32
	active    bool
	qpn, psn  uint32
	remoteQPN uint32
	remotePSN uint32
	history   []string // events and calls
	ended     int      // events that end it, or calls that end it without an event
	connected bool
}

const served = mad.ServiceID(0x01061234)

func newWorld(t testing.TB, seed uint64, hosts int) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: 1}
	for i := range hosts {
		h := &host{
			w: w, name: string(rune('a' + i)), conns: make(map[uint32]*userConn), qpn: 100 * uint32(i+1),
			addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), 4791),
		}
		h.restart(Config{})
		w.hosts = append(w.hosts, h)
	}
	return w
}

// restart gives the host a new machine without state.
func (h *host) restart(c Config) {
	c.Rand = h.w.rng.Uint32
	c.GUID = 0x1000 + uint64(h.name[0])
	c.GID = h.addr.Addr().As16()
	h.m = New(c)
	h.conns = make(map[uint32]*userConn)
	require.True(h.w.t, h.m.Listen(served, ServiceOptions{RC: true, UC: true, Backlog: 64}))
	require.True(h.w.t, h.m.Listen(served|1<<31, ServiceOptions{Backlog: 64}))
}

// scheduleWithin schedules do at a random time within limit.
func (w *world) scheduleWithin(limit Time, do func()) {
	w.at(w.now+1+Time(w.rng.Int64N(int64(limit))), do)
}

func (w *world) at(t Time, do func()) {
	i, _ := slices.BinarySearchFunc(w.due, t, func(a action, t Time) int {
		if a.at <= t {
			return -1
		}
		return 1
	})
	w.due = slices.Insert(w.due, i, action{t, do})
}

// run runs until no action remains, or until the end of time.
func (w *world) run(end Time) {
	for ; ; w.steps++ {
		require.Less(w.t, w.steps, 1_000_000, "it never ends")
		next := end
		if len(w.due) > 0 {
			next = min(next, w.due[0].at)
		}
		for _, h := range w.hosts {
			if d := h.m.Deadline(); d != 0 {
				next = min(next, d)
			}
		}
		if next >= end {
			w.now = end
			return
		}
		w.now = max(w.now, next)
		for len(w.due) > 0 && w.due[0].at <= w.now {
			do := w.due[0].do
			w.due = w.due[1:]
			do()
		}
		for _, h := range w.hosts {
			h.m.Advance(w.now)
			h.dispatchEvents()
		}
	}
}

// dispatchEvents passes events to the program and datagrams to the network.
func (h *host) dispatchEvents() {
	for e, ok := h.m.NextEvent(); ok; e, ok = h.m.NextEvent() {
		h.handleEvent(*e)
	}
	for d, ok := h.m.NextDatagram(); ok; d, ok = h.m.NextDatagram() {
		h.w.transfer(h, *d)
	}
	h.m.check(h.w.t)
}

// transfer delivers a datagram, or loses it.
func (w *world) transfer(from *host, d Datagram) {
	w.sent++
	copies := 1
	if w.rng.Float64() < w.loss {
		copies = 0
	}
	if w.rng.Float64() < w.dup {
		copies++
	}
	for range copies {
		w.scheduleWithin(max(w.delay, 1), func() {
			for _, h := range w.hosts {
				if h.addr == d.To {
					h.m.Handle(w.now, from.addr.Addr(), d.MAD[:])
					h.dispatchEvents()
				}
			}
		})
	}
}

// req returns a REQ of a queue pair.
func (h *host) req(to *host, qpn, psn uint32) mad.REQ {
	q := mad.REQ{
		ServiceID: served, QPN: qpn, StartingPSN: psn, RemoteResponseTimeout: 17, LocalResponseTimeout: 17,
		MaxCMRetries: 15, MTU: 5, PKey: 0xffff,
		Primary: mad.Path{LocalGID: h.addr.Addr().As16(), RemoteGID: to.addr.Addr().As16(), AckTimeout: 14},
	}
	q.PrivateData = make([]byte, mad.CMAHeaderLen)
	mad.CMAHeader{Src: h.addr, Dst: to.addr.Addr()}.Put(q.PrivateData)
	return q
}

// dial starts a connection.
func (h *host) dial(to *host) *userConn {
	h.qpn++
	return h.dialWith(to, h.qpn)
}

func (h *host) dialWith(to *host, qpn uint32) *userConn {
	c := &userConn{h: h, active: true, qpn: qpn, psn: h.w.rng.Uint32() & 0xffffff}
	id, ok := h.m.Connect(h.w.now, to.addr, h.req(to, c.qpn, c.psn))
	require.True(h.w.t, ok)
	c.id = id
	h.conns[id] = c
	h.all = append(h.all, c)
	h.dispatchEvents()
	return c
}

// requestSIDR sends a SIDR request, and counts its result.
func (h *host) requestSIDR(to *host) {
	q := mad.SIDRReq{ServiceID: served | 1<<31, PKey: 0xffff}
	_, ok := h.m.RequestSIDR(h.w.now, to.addr, q, 17, 15)
	require.True(h.w.t, ok)
	h.asks++
	h.dispatchEvents()
}

// serve replies to such a request, or ignores it.
func (h *host) serve(id uint32) {
	h.w.scheduleWithin(100*ms, func() {
		if h.w.moody && h.w.rng.IntN(4) == 0 {
			return
		}
		h.m.ReplySIDR(id, mad.SIDRRep{QPN: id & 0xffffff, QKey: id})
		h.dispatchEvents()
	})
}

func (c *userConn) recordf(format string, args ...any) {
	c.history = append(c.history, fmt.Sprintf("%.3f ms ", float64(c.h.w.now)/1e6)+fmt.Sprintf(format, args...))
}

// recordEnd records an end; there must be only one.
func (c *userConn) recordEnd() {
	c.ended++
	delete(c.h.conns, c.id)
	require.Equal(c.h.w.t, 1, c.ended, "%s ended twice: %v", c.h.name, c.history)
}

// handleEvent handles an event as the program.
func (h *host) handleEvent(e Event) {
	w := h.w
	c := h.conns[e.ID]
	switch e.Kind {
	case EventSIDRRequest:
		h.serve(e.ID)
		return
	case EventSIDRReply:
		require.Equal(w.t, e.SIDRRep.QKey&0xffffff, e.SIDRRep.QPN)
		h.answers++
		return
	case EventUnreachable, EventWithdrawn:
		if c == nil { // a SIDR request
			return
		}
	case EventRequest:
		require.Nil(w.t, c, "a request for a connection that is known")
		h.qpn++
		c = &userConn{h: h, id: e.ID, qpn: h.qpn, psn: w.rng.Uint32() & 0xffffff, remoteQPN: e.REQ.QPN, remotePSN: e.REQ.StartingPSN}
		h.conns[e.ID] = c
		h.all = append(h.all, c)
		c.recordf("request")
		h.decide(c)
		return
	}
	require.NotNil(w.t, c, "%s: %v of a connection that is not there", h.name, e.Kind)
	c.recordf("%v %v", e.Kind, e.Reason)
	switch e.Kind {
	case EventReply:
		require.True(w.t, c.active)
		c.remoteQPN, c.remotePSN = e.REP.QPN, e.REP.StartingPSN
		w.scheduleWithin(20*ms, func() { h.ready(c) })
	case EventEstablished:
		require.False(w.t, c.active)
		c.connected = true
		h.closeLater(c)
	default:
		c.recordEnd()
	}
}

// decide decides about a request as the program.
func (h *host) decide(c *userConn) {
	w := h.w
	patience := 50 * ms
	mood := 0
	if w.moody {
		patience = 3 * sec
		mood = w.rng.IntN(10)
	}
	w.scheduleWithin(patience, func() {
		if h.conns[c.id] != c {
			return
		}
		switch mood {
		case 1:
			c.recordf("rejects")
			require.True(w.t, h.m.Reject(w.now, c.id, mad.REJ{Reason: mad.RejConsumer}))
			c.recordEnd()
		case 2: // sleeps until the request expires
		case 3:
			c.recordf("abandons")
			h.m.Abandon(w.now, c.id)
			c.recordEnd()
		default:
			c.recordf("accepts")
			require.True(w.t, h.m.Accept(w.now, c.id, mad.REP{QPN: c.qpn, StartingPSN: c.psn, RNRRetry: 7}))
		}
		h.dispatchEvents()
	})
}

// ready confirms a REP.
func (h *host) ready(c *userConn) {
	if h.conns[c.id] != c {
		return
	}
	if h.w.moody && h.w.rng.IntN(10) == 0 {
		c.recordf("rejects the REP")
		if h.m.Reject(h.w.now, c.id, mad.REJ{Reason: mad.RejConsumer}) {
			c.recordEnd()
		}
	} else {
		c.recordf("is ready")
		require.True(h.w.t, h.m.Ready(c.id, []byte("rtu")))
		c.connected = true
		h.closeLater(c)
	}
	h.dispatchEvents()
}

// closeLater ends an established connection after a while, on a good network not before an RTU can
// have arrived.
func (h *host) closeLater(c *userConn) {
	h.w.at(h.w.now+5*ms+Time(h.w.rng.Int64N(int64(2*sec))), func() {
		if h.conns[c.id] != c {
			return
		}
		if h.w.moody && h.w.rng.IntN(5) == 0 {
			c.recordf("abandons the connection")
			h.m.Abandon(h.w.now, c.id)
			c.recordEnd()
		} else if h.m.Disconnect(h.w.now, c.id, nil) {
			c.recordf("disconnects")
		}
		h.dispatchEvents()
	})
}

// finish advances a long time, in which everything must end.
func (w *world) finish() {
	w.run(w.now + 3600*sec)
	for _, h := range w.hosts {
		for _, c := range h.all {
			if c.h.conns[c.id] == c {
				require.Equal(w.t, 1, c.ended, "%s: a connection never ended: %v", h.name, c.history)
			}
		}
		require.Empty(w.t, h.conns)
		h.m.empty(w.t)
	}
}

// check compares a machine's tables.
func (m *Machine) check(t testing.TB) {
	t.Helper()
	must := func(ok bool, format string, args ...any) {
		if !ok {
			t.Helper()
			t.Fatalf(format, args...)
		}
	}
	for id, e := range m.entries {
		must(id == e.id && e.state != StateGone, "%v under %x", e, id)
		must(e.timer.At() != 0 || e.state == StateEstablished, "%v without a deadline", e.state)
	}
	for _, e := range m.timers.Objects() {
		must(m.entries[e.id] == e, "timer of %v", e.state)
	}
	for _, table := range []map[remoteKey]*entry{m.byRemoteID, m.byRemoteQPN, m.sidrByRemoteID} {
		for k, e := range table {
			must(k.peer == e.peer && m.entries[e.id] == e, "%v of %v", k, e.state)
		}
	}
	for _, l := range m.services {
		n, shares := 0, 0
		for e := l.halfOpen.first; e != nil; e = e.next {
			n++
			must(m.entries[e.id] == e && e.service == l, "%v is half-open", e.state)
		}
		for _, share := range l.halfOpenByPeer {
			shares += share
		}
		must(l.halfOpen.n == n && shares == n && n <= l.backlog, "%d half-open, counted %d, shares %d", n, l.halfOpen.n, shares)
	}
	n := 0
	for e := m.timewait.first; e != nil; e = e.next {
		n++
		must(e.state == StateTimewait, "%v waits", e.state)
	}
	must(m.timewait.n == n && n <= m.cfg.MaxTimewait, "%d in TIMEWAIT, counted %d", n, m.timewait.n)
}

// empty checks that no state remains.
func (m *Machine) empty(t testing.TB) {
	require.Empty(t, m.entries)
	require.Zero(t, m.timers.Len())
	require.Empty(t, m.byRemoteID)
	require.Empty(t, m.byRemoteQPN)
	require.Empty(t, m.sidrByRemoteID)
	require.Zero(t, m.timewait.n)
	s := m.Stats()
	require.Zero(t, cmp.Or(s.Connections, s.HalfOpen, s.TimeWait, s.SIDR))
}

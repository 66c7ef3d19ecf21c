package protocol

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

// rig is one machine whose peer is the test itself.
type rig struct {
	t    testing.TB
	m    *Machine
	now  Time
	self netip.Addr
	peer netip.AddrPort
}

func newRig(t testing.TB, c Config) *rig {
	r := &rig{t: t, now: 1, self: netip.MustParseAddr("192.0.2.1"), peer: netip.MustParseAddrPort("192.0.2.2:4791")}
	c.Rand = rand.New(rand.NewPCG(7, 7)).Uint32
	c.GUID, c.GID = 0x1234, r.self.As16()
	r.m = New(c)
	require.True(t, r.m.Listen(served, ServiceOptions{RC: true, Backlog: 8}))
	return r
}

// deliver handles a message of the peer at the machine and returns the result.
func (r *rig) deliver(tid uint64, attr mad.Attr, body mad.Message) Drop {
	r.t.Helper()
	return r.deliverFrom(r.peer, tid, attr, body)
}

func (r *rig) deliverFrom(peer netip.AddrPort, tid uint64, attr mad.Attr, body mad.Message) Drop {
	r.t.Helper()
	var b [mad.Size]byte
	h := mad.Header{TID: tid, Attr: attr}
	if peer.Port() != rocePort {
		h.UDPPort = peer.Port()
	}
	mad.Put(&b, h, body)
	d := r.m.Handle(r.now, peer.Addr(), b[:])
	r.m.check(r.t)
	return d
}

// nextSent returns the only message that the machine has for the peer.
func (r *rig) nextSent(attr mad.Attr) (mad.Header, mad.Message) {
	r.t.Helper()
	d, ok := r.m.NextDatagram()
	require.True(r.t, ok, "no %v was sent", attr)
	h, body, _ := mad.Parse(d.MAD[:])
	require.Equal(r.t, attr.String(), h.Attr.String())
	require.Equal(r.t, r.peer, d.To)
	return h, body
}

// requireSilence checks that there are no messages and no events.
func (r *rig) requireSilence() {
	r.t.Helper()
	d, ok := r.m.NextDatagram()
	if ok {
		h, _, _ := mad.Parse(d.MAD[:])
		r.t.Fatalf("%v was sent", h.Attr)
	}
	e, ok := r.m.NextEvent()
	if ok {
		r.t.Fatalf("%v happened", e.Kind)
	}
}

// nextEvent returns the only event.
func (r *rig) nextEvent(k EventKind) Event {
	r.t.Helper()
	e, ok := r.m.NextEvent()
	require.True(r.t, ok, "no %v", k)
	require.Equal(r.t, k.String(), e.Kind.String())
	return *e
}

// req returns a valid REQ of the peer.
func (r *rig) req() *mad.REQ { return r.reqOf(r.peer) }

func (r *rig) reqOf(peer netip.AddrPort) *mad.REQ {
	q := &mad.REQ{
		LocalID: 77, ServiceID: served, QPN: 500, StartingPSN: 9, RemoteResponseTimeout: 17, LocalResponseTimeout: 17,
		MaxCMRetries: 3, MTU: 3, PKey: 0xffff, PrivateData: make([]byte, mad.CMAHeaderLen),
		Primary: mad.Path{LocalGID: peer.Addr().As16(), RemoteGID: r.self.As16(), AckTimeout: 14},
	}
	mad.CMAHeader{Src: peer, Dst: r.self}.Put(q.PrivateData)
	return q
}

const reqTID = 0xabc

// requested delivers a request of the peer to the program.
func (r *rig) requested() uint32 {
	r.t.Helper()
	require.Equal(r.t, DropNone, r.deliver(reqTID, mad.AttrREQ, r.req()))
	return r.nextEvent(EventRequest).ID
}

func (r *rig) accepted() uint32 {
	r.t.Helper()
	id := r.requested()
	require.True(r.t, r.m.Accept(r.now, id, mad.REP{QPN: 600, StartingPSN: 10}))
	r.nextSent(mad.AttrREP)
	return id
}

// established completes the connection.
func (r *rig) established() uint32 {
	r.t.Helper()
	id := r.accepted()
	require.Equal(r.t, DropNone, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}))
	r.nextEvent(EventEstablished)
	return id
}

// connecting sends a REQ to the peer.
func (r *rig) connecting() (id uint32, tid uint64) {
	r.t.Helper()
	id, ok := r.m.Connect(r.now, r.peer, mad.REQ{QPN: 600, RemoteResponseTimeout: 17, MaxCMRetries: 3})
	require.True(r.t, ok)
	h, _ := r.nextSent(mad.AttrREQ)
	return id, h.TID
}

// replied delivers a REP of the peer.
func (r *rig) replied() (id uint32, tid uint64) {
	r.t.Helper()
	id, tid = r.connecting()
	require.Equal(r.t, DropNone, r.deliver(tid, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: id, QPN: 501}))
	r.nextEvent(EventReply)
	return id, tid
}

// advance advances the time.
func (r *rig) advance(d Time) {
	end := r.now + d
	for at := r.m.Deadline(); at != 0 && at <= end; at = r.m.Deadline() {
		r.now = max(r.now, at)
		r.m.Advance(r.now)
		r.m.check(r.t)
	}
	r.now = end
}

// drain discards all messages and returns their names.
func (r *rig) drain() (names []string) {
	for d, ok := r.m.NextDatagram(); ok; d, ok = r.m.NextDatagram() {
		h, _, _ := mad.Parse(d.MAD[:])
		names = append(names, h.Attr.String())
	}
	return names
}

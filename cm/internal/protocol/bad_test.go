package protocol

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

var stranger = netip.MustParseAddrPort("203.0.113.9:4791")

// TestUnknownConnections checks that messages without a connection are counted, and that those that require
// a reply get one that ends the peer's wait.
func TestUnknownConnections(t *testing.T) {
	for _, c := range []struct {
		attr   mad.Attr
		body   mad.Message
		answer mad.Attr // or 0
	}{
		{mad.AttrREP, &mad.REP{LocalID: 5, RemoteID: 6, QPN: 7}, mad.AttrREJ},
		{mad.AttrRTU, &mad.RTU{LocalID: 5, RemoteID: 6}, 0},
		{mad.AttrMRA, &mad.MRA{LocalID: 5, RemoteID: 6}, 0},
		{mad.AttrREJ, &mad.REJ{LocalID: 5, RemoteID: 6}, 0},
		{mad.AttrREJ, &mad.REJ{LocalID: 5, Reason: mad.RejTimeout}, 0},
		{mad.AttrREJ, &mad.REJ{}, 0},
		{mad.AttrDREQ, &mad.DREQ{LocalID: 5, RemoteID: 6, RemoteQPN: 7}, mad.AttrDREP},
		{mad.AttrDREP, &mad.DREP{LocalID: 5, RemoteID: 6}, 0},
		{mad.AttrLAP, &mad.LAP{LocalID: 5, RemoteID: 6}, 0},
		{mad.AttrSIDRRep, &mad.SIDRRep{RequestID: 6}, 0},
	} {
		t.Run(c.attr.String(), func(t *testing.T) {
			r := newRig(t, Config{})
			require.Equal(t, DropUnknownID, r.deliver(1, c.attr, c.body))
			require.EqualValues(t, 1, r.m.Stats().Dropped[DropUnknownID])
			switch c.answer {
			case mad.AttrREJ:
				h, body := r.nextSent(c.answer)
				rej := *body.(*mad.REJ)
				require.EqualValues(t, 1, h.TID)
				require.EqualValues(t, 5, rej.RemoteID)
				require.Equal(t, mad.RejInvalidCommID, rej.Reason)
				require.Equal(t, mad.KindREP, rej.Message)
			case mad.AttrDREP:
				h, body := r.nextSent(c.answer)
				drep := *body.(*mad.DREP)
				require.EqualValues(t, 1, h.TID)
				require.Equal(t, []uint32{6, 5}, []uint32{drep.LocalID, drep.RemoteID})
			}
			r.requireSilence()
			r.m.empty(t)
		})
	}
}

// TestWrongPeersAndTransactions checks that messages of other peers or of other transactions do not
// affect a connection.
func TestWrongPeersAndTransactions(t *testing.T) {
	r := newRig(t, Config{})
	other := netip.AddrPortFrom(r.peer.Addr(), 5000) // another adapter at the peer's address
	calling, tid := r.connecting()
	id := r.accepted()
	for _, c := range []struct {
		want Drop
		peer netip.AddrPort
		tid  uint64
		attr mad.Attr
		body mad.Message
	}{
		{DropWrongPeer, stranger, tid, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: calling, QPN: 1}},
		{DropWrongPeer, other, tid, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: calling, QPN: 1}},
		{DropWrongTID, r.peer, tid + 1, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: calling, QPN: 1}},
		{DropReservedField, r.peer, tid, mad.AttrREP, &mad.REP{LocalID: 0, RemoteID: calling, QPN: 1}},
		{DropReservedField, r.peer, tid, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: calling}},
		{DropWrongPeer, stranger, tid, mad.AttrREJ, &mad.REJ{RemoteID: calling, Reason: 1}},
		{DropWrongTID, r.peer, tid + 1, mad.AttrREJ, &mad.REJ{RemoteID: calling, Reason: 1}},
		{DropWrongTID, r.peer, tid + 1, mad.AttrMRA, &mad.MRA{LocalID: 88, RemoteID: calling}},
		{DropWrongPeer, stranger, tid, mad.AttrMRA, &mad.MRA{LocalID: 88, RemoteID: calling}},
		{DropUnexpected, r.peer, tid, mad.AttrMRA, &mad.MRA{LocalID: 88, RemoteID: calling, Message: mad.KindREP}},
		{DropUnexpected, r.peer, tid, mad.AttrRTU, &mad.RTU{LocalID: 88, RemoteID: calling}},
		{DropUnexpected, r.peer, tid, mad.AttrDREP, &mad.DREP{LocalID: 88, RemoteID: calling}},
		{DropUnexpected, r.peer, tid, mad.AttrDREQ, &mad.DREQ{LocalID: 88, RemoteID: calling, RemoteQPN: 600}},
		{DropWrongPeer, stranger, reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}},
		{DropWrongPeer, r.peer, reqTID, mad.AttrRTU, &mad.RTU{LocalID: 78, RemoteID: id}},
		{DropUnexpected, r.peer, reqTID, mad.AttrREP, &mad.REP{LocalID: 77, RemoteID: id, QPN: 1}},
		{DropWrongQPN, r.peer, 9, mad.AttrDREQ, &mad.DREQ{LocalID: 77, RemoteID: id, RemoteQPN: 601}},
		{DropWrongPeer, stranger, 9, mad.AttrDREQ, &mad.DREQ{LocalID: 77, RemoteID: id, RemoteQPN: 600}},
		{DropUnexpected, r.peer, 9, mad.AttrDREP, &mad.DREP{LocalID: 77, RemoteID: id}},
		{DropUnsupported, r.peer, 9, mad.AttrAPR, &mad.APR{LocalID: 77, RemoteID: id}},
		{DropReservedField, r.peer, 9, mad.AttrREQ, &mad.REQ{ServiceID: served, QPN: 1}},
		{DropReservedField, r.peer, 9, mad.AttrREQ, &mad.REQ{ServiceID: served, LocalID: 1}},
	} {
		before := r.m.Stats().Dropped[c.want]
		require.Equal(t, c.want, r.deliverFrom(c.peer, c.tid, c.attr, c.body), "%v", c.attr)
		require.Equal(t, before+1, r.m.Stats().Dropped[c.want])
		r.requireSilence()
		require.Equal(t, StateREQSent, r.m.State(calling))
		require.Equal(t, StateREPSent, r.m.State(id))
	}
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}))
	require.Equal(t, DropNone, r.deliver(tid, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: calling, QPN: 1}))
}

// TestMalformed checks that malformed datagrams are counted by reason.
func TestMalformed(t *testing.T) {
	r := newRig(t, Config{})
	var b [mad.Size]byte
	mad.Put(&b, mad.Header{Attr: mad.AttrREQ}, r.req())
	for n := range mad.Size {
		require.Equal(t, DropMalformed, r.m.Handle(r.now, r.peer.Addr(), b[:n]))
	}
	b[1] = 1
	require.Equal(t, DropMalformed, r.m.Handle(r.now, r.peer.Addr(), b[:]))
	require.EqualValues(t, mad.Size, r.m.Stats().Malformed[mad.DropBadSize])
	require.EqualValues(t, 1, r.m.Stats().Malformed[mad.DropOtherClass])
	require.EqualValues(t, mad.Size+1, r.m.Stats().Dropped[DropMalformed])
	r.requireSilence()
}

// TestRefusals checks that every request rejected without the program has its reason.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		reason mad.Reason
		spoil  func(r *rig, q *mad.REQ)
	}{
		{mad.RejInvalidServiceID, func(_ *rig, q *mad.REQ) { q.ServiceID++ }},
		{mad.RejInvalidServiceID, func(_ *rig, q *mad.REQ) { q.ServiceID |= 1 << 63 }},
		{mad.RejInvalidTransport, func(_ *rig, q *mad.REQ) { q.Transport = mad.TransportUC }},
		{mad.RejInvalidTransport, func(_ *rig, q *mad.REQ) { q.Transport = 2 }},
		{mad.RejInvalidTransport, func(_ *rig, q *mad.REQ) { q.Transport, q.ExtendedTransport = 3, 1 }},
		{mad.RejInvalidMTU, func(_ *rig, q *mad.REQ) { q.MTU = 0 }},
		{mad.RejInvalidMTU, func(_ *rig, q *mad.REQ) { q.MTU = 4 }},
		{mad.RejInvalidMTU, func(_ *rig, q *mad.REQ) { q.MTU = 15 }},
		{mad.RejInvalidGID, func(_ *rig, q *mad.REQ) { q.Primary.RemoteGID = stranger.Addr().As16() }},
		{mad.RejInvalidGID, func(_ *rig, q *mad.REQ) { q.Primary.LocalGID = stranger.Addr().As16() }},
		{mad.RejUnsupported, func(_ *rig, q *mad.REQ) { q.PrivateData[0] = 1 }},
		{mad.RejUnsupported, func(_ *rig, q *mad.REQ) { q.PrivateData[1] = 0x50 }},
		{mad.RejUnsupported, func(_ *rig, q *mad.REQ) { mad.CMAHeader{Src: stranger, Dst: stranger.Addr()}.Put(q.PrivateData) }},
		{mad.RejStaleConn, func(r *rig, q *mad.REQ) { r.established(); q.LocalID++ }},
		{mad.RejStaleConn, func(r *rig, q *mad.REQ) { r.established(); q.QPN++ }},
		{mad.RejStaleConn, func(r *rig, q *mad.REQ) { r.established(); q.StartingPSN++ }},
		{mad.RejStaleConn, func(r *rig, q *mad.REQ) { r.requested(); q.QPN++ }},
		{mad.RejStaleConn, func(r *rig, q *mad.REQ) { r.accepted(); q.QPN++ }},
		{mad.RejStaleConn, func(r *rig, q *mad.REQ) { r.m.Disconnect(r.now, r.established(), nil); r.drain(); q.QPN++ }},
		{mad.RejNoResources, func(r *rig, q *mad.REQ) { r.m.cfg.MaxConns = 1; r.connecting() }},
	} {
		r := newRig(t, Config{MaxMTU: 3})
		q := r.req()
		c.spoil(r, q)
		drop := r.deliver(reqTID, mad.AttrREQ, q)
		require.Equal(t, c.reason == mad.RejNoResources, drop == DropTableFull)
		h, body := r.nextSent(mad.AttrREJ)
		rej := *body.(*mad.REJ)
		require.EqualValues(t, reqTID, h.TID)
		require.Equal(t, c.reason.String(), rej.Reason.String())
		require.Equal(t, mad.KindREQ, rej.Message)
		require.Equal(t, q.LocalID, rej.RemoteID)
		if c.reason == mad.RejInvalidMTU {
			require.Equal(t, []byte{3 << 4}, rej.Info, "the MTU that would do")
		}
	}
}

// TestStaleConnection checks that a new request of a peer that has lost a connection closes the old
// one.
func TestStaleConnection(t *testing.T) {
	r := newRig(t, Config{})
	id := r.established()
	q := r.req()
	q.LocalID++
	require.Equal(t, DropNone, r.deliver(2, mad.AttrREQ, q))
	r.nextSent(mad.AttrREJ)
	_, body := r.nextSent(mad.AttrDREQ)
	require.EqualValues(t, 77, body.(*mad.DREQ).RemoteID)
	e := r.nextEvent(EventDisconnected)
	require.Equal(t, id, e.ID)
	require.Equal(t, mad.RejStaleConn, e.Reason)
	r.requireSilence()
	require.Equal(t, DropNone, r.deliver(3, mad.AttrREQ, q), "the next time it works")
	r.nextEvent(EventRequest)
}

// TestStaleREP checks the same for the queue pair or the id in a REP.
func TestStaleREP(t *testing.T) {
	r := newRig(t, Config{})
	old := r.established()
	id, tid := r.connecting()
	require.Equal(t, DropNone, r.deliver(tid, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: id, QPN: 500}))
	_, body := r.nextSent(mad.AttrREJ)
	rej := *body.(*mad.REJ)
	require.Equal(t, mad.RejStaleConn, rej.Reason)
	require.Equal(t, mad.KindREP, rej.Message)
	r.nextSent(mad.AttrDREQ)
	require.Equal(t, old, r.nextEvent(EventDisconnected).ID)
	require.Equal(t, id, r.nextEvent(EventRejected).ID)
	r.requireSilence()

	r = newRig(t, Config{})
	old = r.established()
	id, tid = r.connecting()
	require.Equal(t, DropNone, r.deliver(tid, mad.AttrREP, &mad.REP{LocalID: 77, RemoteID: id, QPN: 501}))
	r.nextSent(mad.AttrREJ)
	require.Equal(t, id, r.nextEvent(EventRejected).ID)
	require.Equal(t, StateEstablished, r.m.State(old))
	r.requireSilence()
}

// TestFlood checks that a flood of requests uses no more memory than the backlog, that one peer
// gets half of it, and that others are still served.
func TestFlood(t *testing.T) {
	r := newRig(t, Config{})
	for i := range uint32(10_000) {
		q := r.req()
		q.LocalID, q.QPN = 1000+i, 1000+i
		drop := r.deliver(uint64(i), mad.AttrREQ, q)
		require.Equal(t, i >= 4, drop == DropPeerShare)
	}
	s := r.m.Stats()
	require.EqualValues(t, 4, s.HalfOpen)
	require.EqualValues(t, 10_000-4, s.Dropped[DropPeerShare])
	require.Len(t, r.m.entries, 4)
	require.Len(t, r.m.byRemoteID, 4)
	require.Empty(t, r.drain(), "a flood is not answered")

	// From as many different addresses.
	for i := range uint32(10_000) {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), rocePort)
		q := r.reqOf(from)
		drop := r.deliverFrom(from, 1, mad.AttrREQ, q)
		require.Equal(t, i >= 4, drop == DropBacklogFull)
	}
	require.EqualValues(t, 8, r.m.Stats().HalfOpen)
	require.Len(t, r.m.entries, 8)
	require.Len(t, r.m.services[served].halfOpenByPeer, 5)

	// The program accepts them; no peer confirms. After a retransmission the oldest is evicted for
	// a new one.
	for e, ok := r.m.NextEvent(); ok; e, ok = r.m.NextEvent() {
		require.True(t, r.m.Accept(r.now, e.ID, mad.REP{QPN: 1}))
	}
	from := stranger
	q := r.reqOf(from)
	require.Equal(t, DropBacklogFull, r.deliverFrom(from, 1, mad.AttrREQ, q))
	r.advance(sec)
	require.Equal(t, DropNone, r.deliverFrom(from, 1, mad.AttrREQ, q))
	require.EqualValues(t, 1, r.m.Stats().Evicted)
	r.nextEvent(EventUnreachable)
	r.nextEvent(EventRequest)

	// In the end all are removed.
	r.advance(3600 * sec)
	r.m.empty(t)
}

// TestMRAsAreBounded checks that peers that request more and more time, by MRA, do not block others.
func TestMRAsAreBounded(t *testing.T) {
	r := newRig(t, Config{})
	for i := range byte(8) {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, i}), rocePort)
		require.Equal(t, DropNone, r.deliverFrom(from, 1, mad.AttrREQ, r.reqOf(from)))
		id := r.nextEvent(EventRequest).ID
		require.True(t, r.m.Accept(r.now, id, mad.REP{QPN: 1}))
		mra := &mad.MRA{LocalID: 77, RemoteID: id, Message: mad.KindREP, ServiceTimeout: maxServiceTimeout}
		require.Equal(t, DropNone, r.deliverFrom(from, 1, mad.AttrMRA, mra))
	}
	require.Equal(t, DropNone, r.deliverFrom(stranger, 1, mad.AttrREQ, r.reqOf(stranger)))
	require.Equal(t, netip.MustParseAddrPort("10.0.0.0:4791"), r.nextEvent(EventUnreachable).Peer, "the oldest")
	require.Equal(t, stranger, r.nextEvent(EventRequest).Peer)
	require.EqualValues(t, 1, r.m.Stats().Evicted)
}

// TestTimewaitIsEvicted checks that a new connection evicts one in TIMEWAIT.
func TestTimewaitIsEvicted(t *testing.T) {
	r := newRig(t, Config{MaxTimewait: 2, MaxConns: 3})
	first := r.established()
	r.m.Abandon(r.now, first)
	require.Equal(t, StateTimewait, r.m.State(first))
	ids := []uint32{first}
	for i := range uint32(5) {
		q := r.req()
		q.LocalID += i + 1
		q.QPN += i + 1
		require.Equal(t, DropNone, r.deliver(uint64(i), mad.AttrREQ, q))
		e := r.nextEvent(EventRequest)
		require.True(t, r.m.Accept(r.now, e.ID, mad.REP{QPN: 600}))
		require.Equal(t, DropNone, r.deliver(uint64(i), mad.AttrRTU, &mad.RTU{LocalID: q.LocalID, RemoteID: e.ID}))
		r.nextEvent(EventEstablished)
		r.m.Abandon(r.now, e.ID)
		ids = append(ids, e.ID)
	}
	require.Equal(t, StateGone, r.m.State(ids[3]))
	require.Equal(t, StateTimewait, r.m.State(ids[4]))
	require.Equal(t, StateTimewait, r.m.State(ids[5]))
	require.Equal(t, 2, r.m.Stats().TimeWait)
}

func TestWords(t *testing.T) {
	for s := StateREQSent; s <= StateGone; s++ {
		require.NotEmpty(t, s.String())
	}
	require.Equal(t, "GONE", State(200).String())
	for k := EventRequest; k <= EventSIDRReply; k++ {
		require.NotContains(t, k.String(), "event ")
	}
	require.Equal(t, "event 0", EventKind(0).String())
	require.Equal(t, "event 200", EventKind(200).String())
	for d := DropNone; d < NumDrops; d++ {
		require.NotContains(t, d.String(), "drop_")
	}
	require.Equal(t, "drop_200", Drop(200).String())
}

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

const datagrams = mad.ServiceID(0x01114853)

func newSIDRRig(t *testing.T) (*rig, *mad.SIDRReq) {
	r := newRig(t, Config{})
	require.True(t, r.m.Listen(datagrams, ServiceOptions{Backlog: 4}))
	q := &mad.SIDRReq{RequestID: 9, PKey: 0xffff, ServiceID: datagrams, PrivateData: make([]byte, mad.CMAHeaderLen, 100)}
	mad.CMAHeader{Src: r.peer, Dst: r.self}.Put(q.PrivateData)
	q.PrivateData = append(q.PrivateData, "hello"...)
	return r, q
}

func TestSIDRServed(t *testing.T) {
	r, q := newSIDRRig(t)
	require.Equal(t, DropNone, r.deliver(5, mad.AttrSIDRReq, q))
	e := r.nextEvent(EventSIDRRequest)
	require.Equal(t, "hello", string(e.Private[:5]))
	require.Equal(t, r.peer, e.CMA.Src)
	require.Equal(t, DropDuplicate, r.deliver(5, mad.AttrSIDRReq, q))
	require.True(t, r.m.ReplySIDR(e.ID, mad.SIDRRep{QPN: 7, QKey: 8, PrivateData: []byte("x")}))
	require.False(t, r.m.ReplySIDR(e.ID, mad.SIDRRep{}))
	h, body := r.nextSent(mad.AttrSIDRRep)
	rep := *body.(*mad.SIDRRep)
	require.EqualValues(t, 5, h.TID)
	require.EqualValues(t, 9, rep.RequestID)
	require.Equal(t, datagrams, rep.ServiceID)
	require.Equal(t, []uint32{7, 8}, []uint32{rep.QPN, rep.QKey})
	r.requireSilence()
	r.m.empty(t)

	require.Equal(t, DropNone, r.deliver(5, mad.AttrSIDRReq, q), "the answer was lost")
	r.nextEvent(EventSIDRRequest)
	r.advance(maxPendingTime)
	r.nextEvent(EventWithdrawn)
	r.m.empty(t)
}

func TestSIDRRefused(t *testing.T) {
	for _, c := range []struct {
		status mad.SIDRStatus
		spoil  func(q *mad.SIDRReq)
	}{
		{mad.SIDRUnsupported, func(q *mad.SIDRReq) { q.ServiceID++ }},
		{mad.SIDRUnsupported, func(q *mad.SIDRReq) { q.ServiceID = served }},
		{mad.SIDRReject, func(q *mad.SIDRReq) { q.PrivateData[1] = 0 }},
	} {
		r, q := newSIDRRig(t)
		c.spoil(q)
		require.Equal(t, DropNone, r.deliver(5, mad.AttrSIDRReq, q))
		_, body := r.nextSent(mad.AttrSIDRRep)
		require.Equal(t, c.status.String(), body.(*mad.SIDRRep).Status.String())
		r.requireSilence()
	}
	r, _ := newSIDRRig(t)
	q := r.req()
	q.ServiceID = datagrams
	require.Equal(t, DropNone, r.deliver(5, mad.AttrREQ, q))
	_, body := r.nextSent(mad.AttrREJ)
	require.Equal(t, mad.RejInvalidServiceID, body.(*mad.REJ).Reason, "a connection to a datagram service")
}

// TestSIDRFlood checks that SIDR requests are bounded like connection requests, and end with the
// service.
func TestSIDRFlood(t *testing.T) {
	r, q := newSIDRRig(t)
	for i := range uint32(1000) {
		q.RequestID = i + 1
		require.Equal(t, i >= 2, r.deliver(5, mad.AttrSIDRReq, q) == DropPeerShare)
	}
	require.Equal(t, 2, r.m.Stats().SIDR)
	require.Equal(t, 2, r.m.Stats().HalfOpen)
	r.m.Unlisten(r.now, datagrams, nil)
	require.Equal(t, []string{"SIDR_REP", "SIDR_REP"}, r.drain())
	r.m.empty(t)

	r, q = newSIDRRig(t)
	r.m.cfg.MaxConns = 1
	r.connecting()
	require.Equal(t, DropTableFull, r.deliver(5, mad.AttrSIDRReq, q))
	r.requireSilence()
	_, ok := r.m.RequestSIDR(r.now, r.peer, *q, 17, 3)
	require.False(t, ok)
	_, ok = r.m.Connect(r.now, r.peer, mad.REQ{})
	require.False(t, ok)
}

func TestSIDRRequest(t *testing.T) {
	r := newRig(t, Config{})
	id, ok := r.m.RequestSIDR(r.now, r.peer, mad.SIDRReq{ServiceID: datagrams}, 17, 2)
	require.True(t, ok)
	h, body := r.nextSent(mad.AttrSIDRReq)
	require.Equal(t, id, body.(*mad.SIDRReq).RequestID)
	r.advance(sec)
	r.nextSent(mad.AttrSIDRReq)
	require.Equal(t, DropWrongPeer, r.deliverFrom(stranger, h.TID, mad.AttrSIDRRep, &mad.SIDRRep{RequestID: id}))
	require.Equal(t, DropWrongTID, r.deliver(h.TID+1, mad.AttrSIDRRep, &mad.SIDRRep{RequestID: id}))
	require.Equal(t, DropUnknownID, r.deliver(h.TID, mad.AttrREP, &mad.REP{LocalID: 1, RemoteID: id, QPN: 1}), "of another kind")
	r.drain()
	require.Equal(t, DropNone, r.deliver(h.TID, mad.AttrSIDRRep, &mad.SIDRRep{RequestID: id, QPN: 3, PrivateData: []byte("z")}))
	e := r.nextEvent(EventSIDRReply)
	require.EqualValues(t, 3, e.SIDRRep.QPN)
	require.EqualValues(t, 'z', e.Private[0])
	r.requireSilence()
	r.m.empty(t)

	id, _ = r.m.RequestSIDR(r.now, r.peer, mad.SIDRReq{ServiceID: datagrams}, 17, 2)
	r.advance(10 * sec)
	require.Equal(t, []string{"SIDR_REQ", "SIDR_REQ", "SIDR_REQ"}, r.drain())
	require.Equal(t, id, r.nextEvent(EventUnreachable).ID)

	id, _ = r.m.RequestSIDR(r.now, r.peer, mad.SIDRReq{ServiceID: datagrams}, 17, 2)
	r.drain()
	r.m.Abandon(r.now, id)
	r.requireSilence()
	r.m.empty(t)
}

package protocol

import (
	"cmp"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

// TestREQIsRetransmitted checks that a REQ is retransmitted as its own fields state, unchanged, and then
// fails.
func TestREQIsRetransmitted(t *testing.T) {
	r := newRig(t, Config{})
	id, ok := r.m.Connect(r.now, r.peer, mad.REQ{QPN: 600, RemoteResponseTimeout: 16, MaxCMRetries: 5})
	require.True(t, ok)
	d, _ := r.m.NextDatagram()
	first := d.MAD
	interval := Time(mad.TimeoutNanos(16))
	for range 5 {
		wait := r.m.Deadline() - r.now
		require.GreaterOrEqual(t, wait, interval)
		require.LessOrEqual(t, wait, interval+interval/4, "the jitter")
		r.advance(wait - 1)
		r.requireSilence()
		r.advance(1)
		d, ok := r.m.NextDatagram()
		require.True(t, ok)
		require.Equal(t, first, d.MAD)
		r.requireSilence()
	}
	r.advance(2 * interval)
	require.Equal(t, id, r.nextEvent(EventUnreachable).ID)
	r.requireSilence()
	r.m.empty(t)
	require.EqualValues(t, 5, r.m.Stats().Retransmitted)
	require.EqualValues(t, 1, r.m.Stats().TimedOut)
}

// TestDefaultRetransmissions checks that a REQ with the defaults of package cm is sent 16 times, and
// fails after 8.6 to 10.7 s.
func TestDefaultRetransmissions(t *testing.T) {
	r := newRig(t, Config{})
	id, ok := r.m.Connect(r.now, r.peer, mad.REQ{QPN: 600, RemoteResponseTimeout: 17, MaxCMRetries: 15})
	require.True(t, ok)
	least := 16 * Time(mad.TimeoutNanos(17))
	r.advance(least - 1)
	_, happened := r.m.NextEvent()
	require.False(t, happened)
	r.advance(least/4 + 1)
	require.Equal(t, id, r.nextEvent(EventUnreachable).ID)
	require.Equal(t, slices.Repeat([]string{"REQ"}, 16), r.drain())
}

// TestRequest checks that the program gets the content of a request without RDMA-CM's header.
func TestRequest(t *testing.T) {
	r := newRig(t, Config{})
	q := r.req()
	q.PrivateData = append(q.PrivateData, "hello"...)
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREQ, q))
	e := r.nextEvent(EventRequest)
	require.Equal(t, "hello", string(e.Private[:5]))
	require.Len(t, e.Private, mad.REQPrivateLen-mad.CMAHeaderLen)
	require.Equal(t, mad.CMAHeader{Src: r.peer, Dst: r.self}, e.CMA)
	require.Equal(t, r.peer, e.Peer)
	require.EqualValues(t, 500, e.REQ.QPN)
}

// TestREPIsRetransmitted checks that a REP is retransmitted until the RTU arrives, and immediately for a
// duplicate REQ.
func TestREPIsRetransmitted(t *testing.T) {
	r := newRig(t, Config{})
	id := r.accepted()
	r.advance(sec)
	_, body := r.nextSent(mad.AttrREP)
	require.Equal(t, id, body.(*mad.REP).LocalID)
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREQ, r.req()))
	r.nextSent(mad.AttrREP)
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id, PrivateData: []byte("x")}))
	require.EqualValues(t, 'x', r.nextEvent(EventEstablished).Private[0])
	r.advance(3600 * sec)
	r.requireSilence()
	require.Equal(t, DropDuplicate, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}))
	require.Equal(t, DropDuplicate, r.deliver(reqTID, mad.AttrREQ, r.req()))
	r.requireSilence()
}

// TestTimeoutsAreBounded checks that peers cannot cause hours of waiting or a loop of
// retransmissions.
func TestTimeoutsAreBounded(t *testing.T) {
	for code, want := range map[uint8]uint8{0: minInterval, 12: 12, 31: maxInterval} {
		r := newRig(t, Config{})
		q := r.req()
		q.LocalResponseTimeout, q.RemoteResponseTimeout, q.Primary.AckTimeout = code, code, code
		require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREQ, q))
		require.True(t, r.m.Accept(r.now, r.nextEvent(EventRequest).ID, mad.REP{QPN: 1}))
		wait, least := r.m.Deadline()-r.now, Time(mad.TimeoutNanos(want))
		require.GreaterOrEqual(t, wait, least)
		require.LessOrEqual(t, wait, least+least/4)
		r.advance(300 * sec)
		r.m.empty(t)
	}
}

func TestREPExpires(t *testing.T) {
	r := newRig(t, Config{})
	id := r.accepted()
	r.advance(20 * sec)
	require.Equal(t, []string{"REP", "REP", "REP"}, r.drain(), "MaxCMRetries of the REQ is 3")
	require.Equal(t, id, r.nextEvent(EventUnreachable).ID)
	require.Equal(t, DropUnknownID, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}), "a late RTU")
	r.requireSilence()
}

// TestRTUIsRetransmitted checks that a lost RTU is retransmitted for a duplicate REP, with its private
// data.
func TestRTUIsRetransmitted(t *testing.T) {
	r := newRig(t, Config{})
	id, tid := r.replied()
	require.Equal(t, DropDuplicate, r.deliver(tid, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: id, QPN: 501}))
	require.True(t, r.m.Ready(id, []byte("y")))
	require.False(t, r.m.Ready(id, nil))
	for range 2 {
		h, body := r.nextSent(mad.AttrRTU)
		rtu := *body.(*mad.RTU)
		require.Equal(t, tid, h.TID)
		require.Equal(t, []uint32{id, 88}, []uint32{rtu.LocalID, rtu.RemoteID})
		require.EqualValues(t, 'y', rtu.PrivateData[0])
		require.Equal(t, DropNone, r.deliver(tid, mad.AttrREP, &mad.REP{LocalID: 88, RemoteID: id, QPN: 501}))
	}
}

// TestSlowProgram checks that for a slow program the peer gets an MRA, and that a slower one loses
// the request.
func TestSlowProgram(t *testing.T) {
	r := newRig(t, Config{ServiceTimeout: 20})
	id := r.requested()
	r.advance(Time(mad.TimeoutNanos(17)) * 3 / 4)
	h, body := r.nextSent(mad.AttrMRA)
	mra := *body.(*mad.MRA)
	require.EqualValues(t, reqTID, h.TID)
	require.Equal(t, mad.MRA{LocalID: id, RemoteID: 77, Message: mad.KindREQ, ServiceTimeout: 20, PrivateData: mra.PrivateData}, mra)
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREQ, r.req()))
	r.nextSent(mad.AttrMRA)
	r.advance(4 * sec)
	r.requireSilence()
	r.advance(maxPendingTime)
	require.Equal(t, id, r.nextEvent(EventWithdrawn).ID)
	_, body = r.nextSent(mad.AttrREJ)
	require.Equal(t, mad.RejTimeout, body.(*mad.REJ).Reason)
	require.False(t, r.m.Accept(r.now, id, mad.REP{QPN: 1}))
	require.False(t, r.m.Reject(r.now, id, mad.REJ{}))
	r.requireSilence()
	r.m.empty(t)
}

// TestPendingRequestExpires checks that a request without a decision of the program is rejected when the
// peer's retransmissions and the time of the MRA, by default 17 s, have passed, and after 2 minutes
// at most.
func TestPendingRequestExpires(t *testing.T) {
	repeated := 16 * Time(mad.TimeoutNanos(17))
	for asked, want := range map[uint8]Time{0: repeated + Time(mad.TimeoutNanos(22)), 20: repeated + Time(mad.TimeoutNanos(20)), 31: 120 * sec} {
		r := newRig(t, Config{ServiceTimeout: asked})
		q := r.req()
		q.MaxCMRetries = 15
		require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREQ, q))
		id, begin := r.nextEvent(EventRequest).ID, r.now
		r.advance(Time(mad.TimeoutNanos(17)))
		_, body := r.nextSent(mad.AttrMRA)
		require.Equal(t, cmp.Or(asked, 22), body.(*mad.MRA).ServiceTimeout)
		r.advance(begin + want - 1 - r.now)
		r.requireSilence()
		r.advance(1)
		require.Equal(t, id, r.nextEvent(EventWithdrawn).ID)
		_, body = r.nextSent(mad.AttrREJ)
		require.Equal(t, mad.RejTimeout, body.(*mad.REJ).Reason)
		r.m.empty(t)
	}
}

// TestMRAOfDuplicate checks that an earlier duplicate REQ causes the MRA at once, and that the
// request stays.
func TestMRAOfDuplicate(t *testing.T) {
	r := newRig(t, Config{})
	id := r.requested()
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREQ, r.req()))
	r.nextSent(mad.AttrMRA)
	r.advance(15 * sec)
	r.requireSilence()
	require.True(t, r.m.Accept(r.now, id, mad.REP{QPN: 1}))
	r.nextSent(mad.AttrREP)
}

// TestMRAExtendsTimeout checks that an MRA extends the timeout by its time, within a bound, and as often
// as there are retransmissions.
func TestMRAExtendsTimeout(t *testing.T) {
	r := newRig(t, Config{})
	id, tid := r.connecting()
	for range 4 {
		require.Equal(t, DropNone, r.deliver(tid, mad.AttrMRA, &mad.MRA{LocalID: 88, RemoteID: id, ServiceTimeout: 22}))
		require.Equal(t, StateMRAREQRcvd, r.m.State(id))
		r.advance(Time(mad.TimeoutNanos(22)))
		r.requireSilence()
	}
	require.Equal(t, DropDuplicate, r.deliver(tid, mad.AttrMRA, &mad.MRA{LocalID: 88, RemoteID: id, ServiceTimeout: 31}))
	r.advance(60 * sec)
	require.Equal(t, []string{"REQ", "REQ", "REQ"}, r.drain())
	r.nextEvent(EventUnreachable)

	id, tid = r.connecting()
	require.Equal(t, DropNone, r.deliver(tid, mad.AttrMRA, &mad.MRA{LocalID: 88, RemoteID: id, ServiceTimeout: 31}))
	r.advance(2 * Time(mad.TimeoutNanos(maxServiceTimeout)))
	require.NotEmpty(t, r.drain(), "two hours are beyond reason")

	r = newRig(t, Config{})
	id = r.accepted()
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrMRA, &mad.MRA{LocalID: 77, RemoteID: id, Message: mad.KindREP, ServiceTimeout: 22}))
	require.Equal(t, StateMRAREPRcvd, r.m.State(id))
	r.advance(Time(mad.TimeoutNanos(22)))
	r.requireSilence()
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}))
	r.nextEvent(EventEstablished)
}

// TestNotify checks that data before the RTU replaces the RTU.
func TestNotify(t *testing.T) {
	r := newRig(t, Config{})
	id := r.accepted()
	r.m.Notify(id)
	r.nextEvent(EventEstablished)
	r.m.Notify(id)
	r.m.Notify(12345)
	require.Equal(t, DropDuplicate, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}))
	r.requireSilence()
}

func TestDisconnect(t *testing.T) {
	r := newRig(t, Config{})
	id := r.established()
	require.True(t, r.m.Disconnect(r.now, id, []byte("bye")))
	require.False(t, r.m.Disconnect(r.now, id, nil))
	h, body := r.nextSent(mad.AttrDREQ)
	dreq := *body.(*mad.DREQ)
	require.Equal(t, []uint32{id, 77, 500}, []uint32{dreq.LocalID, dreq.RemoteID, dreq.RemoteQPN})
	require.Equal(t, "bye", string(dreq.PrivateData[:3]))
	require.NotEqual(t, uint64(reqTID), h.TID)
	require.Equal(t, DropWrongTID, r.deliver(h.TID+1, mad.AttrDREP, &mad.DREP{LocalID: 77, RemoteID: id}))
	r.advance(sec / 2)
	r.nextSent(mad.AttrDREQ)
	require.Equal(t, DropNone, r.deliver(h.TID, mad.AttrDREP, &mad.DREP{LocalID: 77, RemoteID: id}))
	e := r.nextEvent(EventReleased)
	require.False(t, e.TimedOut)
	require.Equal(t, StateTimewait, r.m.State(id))
	require.Equal(t, DropDuplicate, r.deliver(h.TID, mad.AttrDREP, &mad.DREP{LocalID: 77, RemoteID: id}))
	require.Equal(t, DropUnexpected, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}))
	r.requireSilence()
	r.advance(10 * sec)
	r.m.empty(t)
}

// TestCrossingDREQs checks that two crossing DREQs both get a reply.
func TestCrossingDREQs(t *testing.T) {
	r := newRig(t, Config{})
	id := r.established()
	require.True(t, r.m.Disconnect(r.now, id, nil))
	r.nextSent(mad.AttrDREQ)
	require.Equal(t, DropNone, r.deliver(55, mad.AttrDREQ, &mad.DREQ{LocalID: 77, RemoteID: id, RemoteQPN: 600}))
	h, _ := r.nextSent(mad.AttrDREP)
	require.EqualValues(t, 55, h.TID)
	r.nextEvent(EventReleased)
	r.requireSilence()
}

// TestDREQExpires checks that a disconnect completes without a reply of the peer.
func TestDREQExpires(t *testing.T) {
	r := newRig(t, Config{})
	id := r.established()
	require.True(t, r.m.Disconnect(r.now, id, nil))
	r.advance(20 * sec)
	require.Equal(t, []string{"DREQ", "DREQ", "DREQ", "DREQ"}, r.drain())
	require.True(t, r.nextEvent(EventReleased).TimedOut)
	r.m.empty(t)
}

// TestDREQIsRetransmittedSoon checks that a DREQ is retransmitted soon, whatever the response time of
// the peer: the ending program does not wait for it, and a peer that does not get it waits for
// ever.
func TestDREQIsRetransmittedSoon(t *testing.T) {
	r := newRig(t, Config{})
	id := r.established()
	r.m.entries[id].retryInterval = clampInterval(20) // 4.3 s with Linux
	require.True(t, r.m.Disconnect(r.now, id, nil))
	h, _ := r.nextSent(mad.AttrDREQ)
	r.advance(sec)
	require.Equal(t, []string{"DREQ", "DREQ"}, r.drain())
	require.Equal(t, DropNone, r.deliver(h.TID, mad.AttrDREP, &mad.DREP{LocalID: 77, RemoteID: id}))
	require.False(t, r.nextEvent(EventReleased).TimedOut)
}

// TestDREQ checks that each DREQ of the peer gets a reply, also for a removed connection.
func TestDREQ(t *testing.T) {
	for name, begin := range map[string]func(r *rig) (id uint32){
		"established": (*rig).established,
		"before RTU":  (*rig).accepted,
		"before Ready": func(r *rig) uint32 {
			id, _ := r.replied()
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			id := begin(r)
			theirs := r.m.entries[id].remoteID
			dreq := &mad.DREQ{LocalID: theirs, RemoteID: id, RemoteQPN: 600, PrivateData: []byte("bye")}
			require.Equal(t, DropNone, r.deliver(55, mad.AttrDREQ, dreq))
			if name == "before RTU" { // the peer has the REP, otherwise there would be no connection to end
				require.Equal(t, id, r.nextEvent(EventEstablished).ID)
			}
			e := r.nextEvent(EventDisconnected)
			require.Equal(t, id, e.ID)
			require.Equal(t, "bye", string(e.Private[:3]))
			require.Zero(t, e.Reason)
			r.nextSent(mad.AttrDREP)
			require.False(t, r.m.Ready(id, nil))
			require.Equal(t, DropDuplicate, r.deliver(55, mad.AttrDREQ, dreq))
			r.nextSent(mad.AttrDREP)
			r.advance(100 * sec)
			r.m.empty(t)
			require.Equal(t, DropUnknownID, r.deliver(55, mad.AttrDREQ, dreq))
			h, body := r.nextSent(mad.AttrDREP)
			drep := *body.(*mad.DREP)
			require.EqualValues(t, 55, h.TID)
			require.Equal(t, []uint32{id, theirs}, []uint32{drep.LocalID, drep.RemoteID})
			r.requireSilence()
		})
	}
}

// TestREJ checks the event of a REJ in each state.
func TestREJ(t *testing.T) {
	info := []byte{1, 2}
	for _, c := range []struct {
		name  string
		begin func(r *rig) (id uint32)
		want  EventKind
	}{
		{"REQ sent", func(r *rig) uint32 { id, _ := r.connecting(); return id }, EventRejected},
		{"REP received", func(r *rig) uint32 { id, _ := r.replied(); return id }, EventRejected},
		{"REQ received", (*rig).requested, EventWithdrawn},
		{"REP sent", (*rig).accepted, EventRejected},
		{"established", (*rig).established, EventDisconnected},
		{"DREQ sent", func(r *rig) uint32 {
			id := r.established()
			r.m.Disconnect(r.now, id, nil)
			r.nextSent(mad.AttrDREQ)
			return id
		}, EventReleased},
	} {
		for _, knows := range []bool{true, false} { // the id of the rejecting side
			t.Run(c.name, func(t *testing.T) {
				r := newRig(t, Config{})
				id := c.begin(r)
				e := r.m.entries[id]
				rej := &mad.REJ{RemoteID: id, Reason: mad.RejConsumer, Info: info, PrivateData: []byte("no")}
				if knows {
					rej.LocalID = e.remoteID
				}
				require.Equal(t, DropNone, r.deliver(e.tid, mad.AttrREJ, rej))
				ev := r.nextEvent(c.want)
				require.Equal(t, id, ev.ID)
				require.Equal(t, mad.RejConsumer, ev.Reason)
				require.Equal(t, info, ev.Info)
				require.Equal(t, "no", string(ev.Private[:2]))
				require.Contains(t, []Drop{DropUnexpected, DropUnknownID}, r.deliver(e.tid, mad.AttrREJ, rej))
				r.requireSilence()
				r.advance(100 * sec)
				r.m.empty(t)
			})
		}
	}
}

// TestREJOfTimeout checks a REJ of a peer that times out before it knows the local id, and names
// its own.
func TestREJOfTimeout(t *testing.T) {
	for _, begin := range []func(r *rig) uint32{(*rig).requested, (*rig).accepted} {
		r := newRig(t, Config{})
		id := begin(r)
		require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREJ, &mad.REJ{LocalID: 77, Reason: mad.RejTimeout}))
		e, ok := r.m.NextEvent()
		require.True(t, ok)
		require.Equal(t, id, e.ID)
		r.advance(100 * sec)
		r.m.empty(t)
	}
}

// TestAbandon checks that abandoning a connection sends the message of its state once, and raises
// no event.
func TestAbandon(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(r *rig) uint32
		says  mad.Attr
		why   mad.Reason
		which mad.MessageKind
	}{
		{"REQ sent", func(r *rig) uint32 { id, _ := r.connecting(); return id }, mad.AttrREJ, mad.RejTimeout, mad.KindREQ},
		{"REP received", func(r *rig) uint32 { id, _ := r.replied(); return id }, mad.AttrREJ, mad.RejConsumer, mad.KindREP},
		{"REQ received", (*rig).requested, mad.AttrREJ, mad.RejConsumer, mad.KindREQ},
		{"REP sent", (*rig).accepted, mad.AttrREJ, mad.RejConsumer, mad.KindOther},
		{"established", (*rig).established, mad.AttrDREQ, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{})
			id := c.begin(r)
			r.m.Abandon(r.now, id)
			r.m.check(t)
			_, body := r.nextSent(c.says)
			if c.says == mad.AttrREJ {
				rej := *body.(*mad.REJ)
				require.Equal(t, c.why, rej.Reason)
				require.Equal(t, c.which, rej.Message)
				if c.why == mad.RejTimeout {
					require.EqualValues(t, 0x1234, binary.BigEndian.Uint64(rej.Info), "the GUID finds the connection at the peer")
				}
			}
			r.m.Abandon(r.now, id)
			r.requireSilence()
			r.advance(100 * sec)
			r.requireSilence()
			r.m.empty(t)
		})
	}
	newRig(t, Config{}).m.Abandon(1, 5)
}

func TestClose(t *testing.T) {
	r := newRig(t, Config{})
	r.connecting()
	r.established()
	q := r.req()
	q.LocalID, q.QPN = 1, 1
	require.Equal(t, DropNone, r.deliver(1, mad.AttrREQ, q))
	r.nextEvent(EventRequest)
	_, ok := r.m.RequestSIDR(r.now, r.peer, mad.SIDRReq{}, 17, 3)
	require.True(t, ok)
	r.nextSent(mad.AttrSIDRReq)
	r.m.Close(r.now)
	said := r.drain()
	slices.Sort(said)
	require.Equal(t, []string{"DREQ", "REJ", "REJ"}, said)
	r.m.empty(t)
	_, ok = r.m.Connect(r.now, r.peer, mad.REQ{})
	require.False(t, ok)
	_, ok = r.m.RequestSIDR(r.now, r.peer, mad.SIDRReq{}, 17, 3)
	require.False(t, ok)
	require.False(t, r.m.Listen(served, ServiceOptions{RC: true}))
	require.Equal(t, DropUnexpected, r.deliver(1, mad.AttrREQ, q))
	r.requireSilence()
}

// TestUnlisten checks that closing a service rejects pending requests that the program does not
// have, and leaves the others.
func TestUnlisten(t *testing.T) {
	r := newRig(t, Config{})
	require.False(t, r.m.Listen(served, ServiceOptions{}), "taken")
	id := r.accepted()
	var ids [2]uint32
	for i := range ids {
		q := r.req()
		q.LocalID, q.QPN = uint32(i)+1, uint32(i)+1
		require.Equal(t, DropNone, r.deliver(uint64(i)+1, mad.AttrREQ, q))
		ids[i] = r.nextEvent(EventRequest).ID
	}
	mine := func(id uint32) bool { return id == ids[1] }
	r.m.Unlisten(r.now, served, mine)
	r.m.Unlisten(r.now, served, mine)
	_, body := r.nextSent(mad.AttrREJ)
	require.Equal(t, mad.RejInvalidServiceID, body.(*mad.REJ).Reason)
	require.EqualValues(t, 1, body.(*mad.REJ).RemoteID)
	r.requireSilence()
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}))
	r.nextEvent(EventEstablished)
	require.True(t, r.m.Accept(r.now, ids[1], mad.REP{QPN: 5}))
	r.nextSent(mad.AttrREP)
	require.True(t, r.m.Listen(served, ServiceOptions{RC: true}))
}

// TestLAP checks that alternate paths are rejected.
func TestLAP(t *testing.T) {
	r := newRig(t, Config{})
	id := r.established()
	require.Equal(t, DropNone, r.deliver(5, mad.AttrLAP, &mad.LAP{LocalID: 77, RemoteID: id}))
	h, body := r.nextSent(mad.AttrAPR)
	require.EqualValues(t, 5, h.TID)
	require.Equal(t, mad.APR{LocalID: id, RemoteID: 77, Status: mad.APRUnsupported}, *body.(*mad.APR))
	require.Equal(t, StateEstablished, r.m.State(id))
}

// TestProgramNeverConfirms checks that a program that never confirms a REP loses the connection.
func TestProgramNeverConfirms(t *testing.T) {
	r := newRig(t, Config{})
	id, _ := r.replied()
	r.advance(maxPendingTime)
	require.Equal(t, id, r.nextEvent(EventUnreachable).ID)
	_, body := r.nextSent(mad.AttrREJ)
	require.Equal(t, mad.KindREP, body.(*mad.REJ).Message)
	require.False(t, r.m.Ready(id, nil))
	r.m.empty(t)
}

package verbstest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func testEventCQErr(t *T) {
	a, b := newEnd(t), newEnd(t)
	c := b.newCQ(t, 3)
	b.qp = b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: c})
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{Retries: 1})
	for i := range 6 {
		b.recv(t, uint64(i), 0, 0)
	}
	for range 4 {
		a.post(t, empty[0])
		a.poll1(t)
	}
	ev := b.event(t, verbs.EventCQErr)
	require.Same(t, c, ev.CQ)
	t.explainsEvent(ev, "completion queue of 3 overran")
	ev = b.event(t, verbs.EventQPFatal)
	require.Same(t, b.qp, ev.QP)
	t.explainsEvent(ev, "create one with the depth of all queues")
	require.Equal(t, verbs.StateErr, b.qp.State())

	for id := range uint64(3) {
		require.Equal(t, id, nextOf(t, c).WRID, "completions before the overrun are kept")
	}
	_, err := c.Poll(make([]verbs.WC, 1))
	require.ErrorIs(t, err, verbs.ErrCQOverrun)
	_, err = c.PollWait(context.Background(), make([]verbs.WC, 1))
	require.ErrorIs(t, err, verbs.ErrCQOverrun)
	require.ErrorIs(t, c.Wait(context.Background()), verbs.ErrCQOverrun)
	require.ErrorIs(t, c.Resize(100), verbs.ErrCQOverrun, "what is lost stays lost")
	_, err = b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c})
	require.ErrorIs(t, err, verbs.ErrCQOverrun, "it would lose all of its completions")
	t.explains(err, "create a deeper one")

	a.post(t, empty[0])
	require.Equal(t, verbs.WCRetryExcErr, a.next(t).Status)
	require.NoError(t, b.qp.Close())
	require.NoError(t, c.Close())
}

// testEventCQErrOfRequester checks that a requester fails if its own completions are lost.
func testEventCQErrOfRequester(t *T) {
	a, b := newEnd(t), newEnd(t)
	c := a.newCQ(t, 1)
	a.qp = a.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: a.cq})
	connect(t, a.dev, a.qp, b.dev, b.qp)
	for range 2 {
		a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite})
	}
	require.Same(t, c, a.event(t, verbs.EventCQErr).CQ)
	require.Same(t, a.qp, a.event(t, verbs.EventQPFatal).QP)
	require.Equal(t, verbs.StateErr, a.qp.State())
}

func testEventQPReqErr(t *T) {
	a, b := newEnd(t), newEnd(t)
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{Access: verbs.AccessRemoteRead})
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	require.Equal(t, verbs.WCRemInvReqErr, a.next(t).Status)
	ev := b.event(t, verbs.EventQPReqErr)
	require.Same(t, b.qp, ev.QP)
	t.explainsEvent(ev, "does not permit remote writes")
	require.Equal(t, verbs.StateErr, b.qp.State())
}

func testEventQPAccessErr(t *T) {
	a, b := pair(t)
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey() ^ 1})
	require.Equal(t, verbs.WCRemAccessErr, a.next(t).Status)
	ev := b.event(t, verbs.EventQPAccessErr)
	require.Same(t, b.qp, ev.QP)
	require.Equal(t, b.mr.RKey()^1, ev.Failure.Key)
	require.Equal(t, verbs.StateErr, b.qp.State())
}

func testEventCommEst(t *T) {
	a, b := newEnd(t), newEnd(t)
	ea, err := verbs.LocalEndpoint(a.dev, a.qp, 1)
	require.NoError(t, err)
	eb, err := verbs.LocalEndpoint(b.dev, b.qp, 2)
	require.NoError(t, err)
	require.NoError(t, verbs.ToInit(b.qp, 0))
	require.NoError(t, b.qp.Modify(verbs.QPAttr{State: verbs.StateRTR, PathMTU: verbs.MTU1024, RQPSN: 1, DestQPN: a.qp.Num(),
		AV: verbs.AHAttr{DGID: ea.GID, UDPPort: ea.UDPPort}, MaxDestRdAtomic: 1, MinRNRTimer: 1},
		verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN|verbs.AttrMaxDestRdAtomic|verbs.AttrMinRNRTimer))
	b.recv(t, 1, 0, 0)
	require.NoError(t, verbs.Connect(a.qp, ea, eb, verbs.ConnectOptions{MTU: verbs.MTU1024}))
	a.post(t, empty[0])
	require.Same(t, b.qp, b.event(t, verbs.EventCommEst).QP)
	require.EqualValues(t, 1, b.poll1(t).WRID, "messages are received before RTS")
	a.poll1(t)
}

func testEventSQDrained(t *T) {
	a, b := pair(t)
	a.post(t, verbs.SendWR{WRID: 1, Opcode: verbs.WRSend}) // waits until the peer posts a receive
	require.NoError(t, a.qp.Modify(verbs.QPAttr{State: verbs.StateSQD}, verbs.AttrState))
	a.post(t, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend})
	attr, _ := a.qp.Query()
	require.True(t, attr.SQDraining)
	err := a.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState)
	require.ErrorIs(t, err, verbs.ErrState)
	t.explains(err, "wait for EventSQDrained")

	b.recv(t, 1, 0, 0)
	b.recv(t, 2, 0, 0)
	require.Same(t, a.qp, a.event(t, verbs.EventSQDrained).QP)
	require.EqualValues(t, 1, a.poll1(t).WRID)
	attr, _ = a.qp.Query()
	require.False(t, attr.SQDraining)
	require.NoError(t, a.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState))
	require.EqualValues(t, 2, a.poll1(t).WRID)

	require.NoError(t, a.qp.Modify(verbs.QPAttr{State: verbs.StateSQD}, verbs.AttrState))
	require.Same(t, a.qp, a.event(t, verbs.EventSQDrained).QP, "of an idle queue at once, and once more")
}

func testEventLastWQEReached(t *T) {
	e := newEnd(t)
	srq, err := e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
	require.NoError(t, err)
	q := e.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SRQ: srq})
	require.NoError(t, verbs.ToInit(q, 0))
	_, err = srq.PostRecv(recv0)
	require.NoError(t, err)
	require.NoError(t, q.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState))
	require.Same(t, q, e.event(t, verbs.EventQPLastWQEReached).QP)
	n, err := e.cq.Poll(make([]verbs.WC, 1))
	require.NoError(t, err)
	require.Zero(t, n, "shared receives are not flushed")
}

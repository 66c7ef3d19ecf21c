package cm_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// external returns the description of a queue pair that the test modifies itself.
func external(qp verbs.QP, psn uint32) cm.ExternalQP {
	return cm.ExternalQP{
		Num: qp.Num(), Type: qp.Type(), PSN: psn, ResponderResources: 3, InitiatorDepth: 2, FlowControl: true,
		Retries: 6, RNRRetries: 5, AckTimeout: 15,
	}
}

// moveToRTS modifies a queue pair by the parameters of its connection, as a program does by
// rdma_init_qp_attr.
func moveToRTS(t testing.TB, qp verbs.QP, p cm.Params, peer verbs.AHAttr, psn uint32) {
	t.Helper()
	require.NoError(t, verbs.ToInit(qp, verbs.AccessRemote))
	require.NoError(t, qp.Modify(verbs.QPAttr{
		State: verbs.StateRTR, PathMTU: p.MTU, DestQPN: p.QPN, RQPSN: psn, AV: peer, MaxDestRdAtomic: p.InitiatorDepth, MinRNRTimer: 12,
	}, verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN|verbs.AttrMaxDestRdAtomic|verbs.AttrMinRNRTimer))
	require.NoError(t, qp.Modify(verbs.QPAttr{
		State: verbs.StateRTS, SQPSN: p.PSN, Timeout: 14, RetryCnt: 7, RNRRetry: p.RNRRetry, MaxRdAtomic: p.ResponderResources,
	}, verbs.AttrState|verbs.AttrSQPSN|verbs.AttrTimeout|verbs.AttrRetryCnt|verbs.AttrRNRRetry|verbs.AttrMaxQPRdAtomic))
}

func avOf(c *cm.Conn) verbs.AHAttr {
	a := c.RemoteAdapter()
	return verbs.AHAttr{DGID: verbs.GIDFromAddr(a.Addr()), UDPPort: a.Port(), HopLimit: 64, PortNum: 1}
}

// externalDial dials to l and returns the request and a channel with the result.
func externalDial(t testing.TB, ctx context.Context, a, b *end, l *cm.Listener, qp verbs.QP) (*cm.Request, <-chan accepted) {
	t.Helper()
	ch := make(chan accepted, 1)
	go func() {
		c, err := a.m.DialExternal(ctx, l.Addr(), external(qp, 77), cm.DialOptions{
			PrivateData: []byte("hello"), UDPPort: b.m.Addr().Port(), LocalPort: 4242,
		})
		ch <- accepted{c, err}
	}()
	r, err := l.Accept(soon(t))
	require.NoError(t, err)
	return r, ch
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// TestExternal checks that two queue pairs that the program modifies itself are connected: the
// fields cross, data flows, and the end arrives while the queue pairs keep their states.
func TestExternal(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	qa, qb := a.newQP(t, verbs.RC), b.newQP(t, verbs.RC)
	r, dialed := externalDial(t, soon(t), a, b, l, qa)
	require.Equal(t, "hello", string(r.PrivateData()[:5]))
	require.EqualValues(t, 4242, r.RemoteAddr().Port())
	require.Equal(t, []uint32{qa.Num(), 77, 3, 2, 6, 5}, []uint32{r.QPN, r.PSN, uint32(r.ResponderResources), uint32(r.InitiatorDepth),
		uint32(r.RetryCount), uint32(r.RNRRetry)})
	require.Equal(t, verbs.AckTimeout(15), r.AckTimeout)
	require.True(t, r.FlowControl)
	require.False(t, r.SRQ)

	mr := b.reg(t, 8)
	x := external(qb, 99)
	x.SRQ, x.FlowControl, x.ResponderResources, x.InitiatorDepth = true, false, 2, 3
	cb, err := r.AcceptExternal(x, []byte("come in"))
	require.NoError(t, err)
	moveToRTS(t, qb, cb.Params(), avOf(cb), 99)
	_, err = qb.PostRecv([]verbs.RecvWR{{WRID: 7, SGList: []verbs.SGE{mr.SGE(0, 8)}}})
	require.NoError(t, err)
	got := <-dialed
	require.NoError(t, got.err)
	ca := got.conn
	require.Equal(t, "come in", string(ca.PrivateData()[:7]))
	p := ca.Params()
	require.Equal(t, []uint32{qb.Num(), 99, 2, 3, 5}, []uint32{p.QPN, p.PSN, uint32(p.ResponderResources), uint32(p.InitiatorDepth), uint32(p.RNRRetry)})
	require.True(t, p.SRQ)
	require.False(t, isClosed(ca.Established()))
	require.False(t, isClosed(cb.Established()))

	moveToRTS(t, qa, p, avOf(ca), 77)
	require.NoError(t, ca.Establish([]byte("thanks")))
	require.True(t, isClosed(ca.Established()))
	<-cb.Established()
	require.NoError(t, ca.Establish(nil), "a second call has no effect")
	_, err = qa.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte("by hand!")}})
	require.NoError(t, err)
	require.EqualValues(t, 7, b.next(t).WRID)
	require.Equal(t, "by hand!", string(mr.Bytes()))

	require.NoError(t, cb.Disconnect(soon(t), []byte("bye")))
	<-ca.Done()
	require.ErrorIs(t, ca.Err(), cm.ErrDisconnected)
	require.Equal(t, "bye", string(ca.DisconnectPrivateData()[:3]))
	require.Nil(t, ca.QP())
	require.Equal(t, []verbs.QPState{verbs.StateRTS, verbs.StateRTS}, []verbs.QPState{qa.State(), qb.State()})
	require.Error(t, ca.Establish(nil), "the connection has ended")
}

// TestExternalRejected checks rejections at each step of the handshake.
func TestExternalRejected(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)

	r, dialed := externalDial(t, soon(t), a, b, l, a.newQP(t, verbs.RC))
	require.NoError(t, r.Reject(mad.RejConsumer, []byte("no")))
	var rejected *cm.RejectError
	require.ErrorAs(t, (<-dialed).err, &rejected)
	require.Equal(t, "no", string(rejected.PrivateData[:2]))
	_, err = r.AcceptExternal(external(b.newQP(t, verbs.RC), 1), nil)
	require.ErrorIs(t, err, cm.ErrAnswered)

	// The dialer rejects the REP.
	r, dialed = externalDial(t, soon(t), a, b, l, a.newQP(t, verbs.RC))
	cb, err := r.AcceptExternal(external(b.newQP(t, verbs.RC), 1), nil)
	require.NoError(t, err)
	got := <-dialed
	require.NoError(t, got.err)
	require.NoError(t, got.conn.Disconnect(soon(t), []byte("not you")))
	<-cb.Done()
	require.ErrorAs(t, cb.Err(), &rejected)
	require.Equal(t, mad.RejConsumer, rejected.Reason)
	require.Equal(t, "not you", string(rejected.PrivateData[:7]))
	require.False(t, isClosed(cb.Established()))

	// The acceptor gives up after its REP.
	r, dialed = externalDial(t, soon(t), a, b, l, a.newQP(t, verbs.RC))
	cb, err = r.AcceptExternal(external(b.newQP(t, verbs.RC), 1), nil)
	require.NoError(t, err)
	got = <-dialed
	require.NoError(t, got.err)
	require.NoError(t, cb.Disconnect(soon(t), nil))
	<-got.conn.Done()
	require.ErrorAs(t, got.conn.Err(), &rejected)
	require.False(t, isClosed(got.conn.Established()))
	require.Error(t, got.conn.Establish(nil))

	// The dialer's context ends before the reply.
	ctx, cancel := context.WithCancel(soon(t))
	r, dialed = externalDial(t, ctx, a, b, l, a.newQP(t, verbs.RC))
	cancel()
	require.ErrorIs(t, (<-dialed).err, context.Canceled)
	require.Eventually(t, func() bool { return b.m.Stats().HalfOpen == 0 }, patience, time.Millisecond)
	_, err = r.AcceptExternal(external(b.newQP(t, verbs.RC), 1), nil)
	require.ErrorIs(t, err, cm.ErrWithdrawn)
}

// TestExternalNotify checks that arrived data implies the RTU.
func TestExternalNotify(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	r, dialed := externalDial(t, soon(t), a, b, l, a.newQP(t, verbs.RC))
	cb, err := r.AcceptExternal(external(b.newQP(t, verbs.RC), 1), nil)
	require.NoError(t, err)
	require.NoError(t, cb.Establish(nil))
	require.True(t, isClosed(cb.Established()))
	got := <-dialed
	require.NoError(t, got.err)
	require.NoError(t, got.conn.Establish(nil))
	require.NoError(t, b.m.Close())
	<-cb.Done()
	require.ErrorIs(t, cb.Err(), cm.ErrClosed)
	<-got.conn.Done()
}

// TestExternalChecked checks that fields out of range are refused before a message is sent.
func TestExternalChecked(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	good := external(a.newQP(t, verbs.RC), 1)
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	o := cm.DialOptions{UDPPort: b.m.Addr().Port()}
	for name, spoil := range map[string]func(*cm.ExternalQP){
		"Num": func(q *cm.ExternalQP) { q.Num = 0 }, "PSN": func(q *cm.ExternalQP) { q.PSN = 1 << 24 },
		"Retries": func(q *cm.ExternalQP) { q.Retries = 8 }, "RNRRetries": func(q *cm.ExternalQP) { q.RNRRetries = 8 },
		"AckTimeout": func(q *cm.ExternalQP) { q.AckTimeout = 32 }, "Type": func(q *cm.ExternalQP) { q.Type = verbs.UD },
	} {
		bad := good
		spoil(&bad)
		_, err := a.m.DialExternal(soon(t), l.Addr(), bad, o)
		require.ErrorContains(t, err, "ExternalQP."+name)
	}
	o.PrivateData = make([]byte, 57)
	_, err = a.m.DialExternal(soon(t), l.Addr(), good, o)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.Zero(t, a.m.Stats().Sent.REQ)

	r, _ := externalDial(t, soon(t), a, b, l, a.newQP(t, verbs.RC))
	uc := external(b.newQP(t, verbs.UC), 1)
	_, err = r.AcceptExternal(uc, nil)
	require.ErrorContains(t, err, "transport RC requested")
	_, err = r.AcceptExternal(external(b.newQP(t, verbs.RC), 1), make([]byte, 197))
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.NoError(t, r.Reject(0, nil), "the request is still unanswered")
}

// TestExternalDatagrams checks that a request for datagrams is accepted for a queue pair of which
// the manager knows only the number.
func TestExternalDatagrams(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	ctx := soon(t)
	served := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QPN: 0x1234}})
		}
		served <- err
	}()
	p, err := a.m.DialUD(ctx, l.Addr(), cm.UDDialOptions{UDPPort: b.m.Addr().Port()})
	require.NoError(t, err)
	require.NoError(t, <-served)
	require.Equal(t, []uint32{0x1234, cm.UDQKey}, []uint32{p.QPN, p.QKey})
}

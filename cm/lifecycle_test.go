package cm_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// TestEveryRejectReason checks that every reject reason arrives unchanged.
func TestEveryRejectReason(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	for reason := mad.RejNoQP; reason <= mad.RejVendorOption; reason++ {
		done := make(chan error, 1)
		ctx := soon(t)
		go func() {
			r, err := l.Accept(ctx)
			if err == nil {
				err = r.Reject(reason, []byte("because"))
			}
			if err == nil && !errors.Is(r.Reject(0, nil), cm.ErrAnswered) {
				err = errors.New("rejected twice")
			}
			done <- err
		}()
		_, err := a.dial(t, b, l.Addr(), cm.DialOptions{})
		var refused *cm.RejectError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, reason.String(), refused.Reason.String())
		require.Equal(t, "because", string(refused.PrivateData[:7]))
		require.Contains(t, err.Error(), reason.String())
		require.Contains(t, err.Error(), l.Addr().String())
		require.NoError(t, <-done)
	}
}

func TestNoListener(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	_, err := a.dial(t, b, netip.AddrPortFrom(b.m.Addr().Addr(), 9), cm.DialOptions{})
	var refused *cm.RejectError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, cm.InvalidServiceID, refused.Reason)
}

// TestUnreachable checks that a device without a manager, and one that does not exist, are
// unreachable.
func TestUnreachable(t *testing.T) {
	a := newEnd(t, cm.Options{ResponseTimeout: 4 * time.Millisecond, Retries: 2})
	silent, err := rnic.Open(rnic.Options{})
	require.NoError(t, err)
	at := netip.AddrPortFrom(silent.Addr().Addr(), 7)
	qp := a.newQP(t, verbs.RC)
	_, err = a.m.Dial(soon(t), at, qp, cm.DialOptions{UDPPort: silent.Addr().Port()})
	require.ErrorIs(t, err, cm.ErrUnreachable)
	_, err = a.m.DialUD(soon(t), at, cm.UDDialOptions{UDPPort: silent.Addr().Port()})
	require.ErrorIs(t, err, cm.ErrUnreachable)
	require.NoError(t, silent.Close())
	_, err = a.m.Dial(soon(t), at, qp, cm.DialOptions{UDPPort: silent.Addr().Port()})
	require.ErrorIs(t, err, cm.ErrUnreachable, "the queue pair is still good")
	require.Zero(t, a.m.Stats().Connections)

	odd := newEndOn(t, rnic.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0"), AnyPort: true}, cm.Options{ResponseTimeout: 4 * time.Millisecond, Retries: 1})
	_, err = odd.m.Dial(soon(t), at, odd.newQP(t, verbs.RC), cm.DialOptions{})
	require.ErrorIs(t, err, cm.ErrUnreachable)
	require.ErrorContains(t, err, "4791", "where others would find us")
}

// TestContexts checks that the end of the context ends a call, and notifies the peer.
func TestContexts(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(context.Background())
	dialed := make(chan error, 1)
	qp := a.newQP(t, verbs.RC)
	go func() {
		_, err := a.m.Dial(ctx, l.Addr(), qp, cm.DialOptions{UDPPort: b.m.Addr().Port()})
		dialed <- err
	}()
	r, err := l.Accept(soon(t))
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-dialed, context.Canceled)
	_, err = l.Accept(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.Accept(soon(t), b.newQP(t, verbs.RC), cm.AcceptOptions{})
	require.Error(t, err)
	var refused *cm.RejectError
	require.True(t, errors.Is(err, cm.ErrWithdrawn) || errors.As(err, &refused), "%v", err)

	// The other side times out while the peer is silent.
	p := newPuppet(t, a)
	la, err := a.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	p.send(1, mad.AttrREQ, p.req(la.Addr().Port()))
	r, err = la.Accept(soon(t))
	require.NoError(t, err)
	ctx, cancel = context.WithCancel(context.Background())
	accepting := make(chan error, 1)
	qp2 := a.newQP(t, verbs.RC)
	go func() {
		_, err := r.Accept(ctx, qp2, cm.AcceptOptions{})
		accepting <- err
	}()
	p.receive(mad.AttrREP)
	cancel()
	require.ErrorIs(t, <-accepting, context.Canceled)
	_, body := p.receive(mad.AttrREJ)
	require.Equal(t, mad.RejConsumer, body.(*mad.REJ).Reason)
}

// TestPending checks that a program that does not respond is not reported as an unreachable adapter
// once the adapter has replied.
func TestPending(t *testing.T) {
	a, b := newEnd(t, cm.Options{ResponseTimeout: 67 * time.Millisecond}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(soon(t))
	dialed := make(chan error, 1)
	qp := a.newQP(t, verbs.RC)
	go func() {
		_, err := a.m.Dial(ctx, l.Addr(), qp, cm.DialOptions{UDPPort: b.m.Addr().Port()})
		dialed <- err
	}()
	for a.m.Stats().Received.MRA == 0 {
		require.NoError(t, ctx.Err())
		runtime.Gosched()
	}
	cancel()
	err = <-dialed
	require.ErrorIs(t, err, cm.ErrPending)
	require.ErrorIs(t, err, context.Canceled)
}

// TestManagerCloses checks that Close ends all pending operations, at both ends, and that every
// call returns.
func TestManagerCloses(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	ca, cb := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})

	dialed := make(chan error, 1)
	qp := a.newQP(t, verbs.RC)
	ctx := soon(t)
	go func() {
		_, err := a.m.Dial(ctx, l.Addr(), qp, cm.DialOptions{UDPPort: b.m.Addr().Port()})
		dialed <- err
	}()
	r, err := l.Accept(ctx)
	require.NoError(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := l.Accept(ctx)
		waiting <- err
	}()
	require.NoError(t, b.m.Close())
	require.NoError(t, b.m.Close(), "twice")
	require.ErrorIs(t, <-waiting, cm.ErrClosed)
	var refused *cm.RejectError
	require.ErrorAs(t, <-dialed, &refused)
	<-ca.Done()
	require.ErrorIs(t, ca.Err(), cm.ErrDisconnected)
	<-cb.Done()
	require.ErrorIs(t, cb.Err(), cm.ErrClosed)
	require.NoError(t, cb.Disconnect(ctx, nil), "it has ended")

	_, err = r.Accept(ctx, b.newQP(t, verbs.RC), cm.AcceptOptions{})
	require.ErrorIs(t, err, cm.ErrClosed)
	require.ErrorIs(t, r.Reject(0, nil), cm.ErrClosed)
	_, err = b.m.Listen(0, cm.ListenOptions{})
	require.ErrorIs(t, err, cm.ErrClosed)
	_, err = b.dial(t, a, l.Addr(), cm.DialOptions{})
	require.ErrorIs(t, err, cm.ErrClosed)
	_, err = b.m.DialUD(ctx, l.Addr(), cm.UDDialOptions{})
	require.ErrorIs(t, err, cm.ErrClosed)

	m, err := cm.New(b.dev, cm.Options{})
	require.NoError(t, err, "queue pair 1 is free again")
	require.NoError(t, m.Close())
}

// TestDeviceCloses checks the same for closing the device under the manager.
func TestDeviceCloses(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	_, cb := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
	waiting := make(chan error, 1)
	ctx := soon(t)
	go func() {
		_, err := l.Accept(ctx)
		waiting <- err
	}()
	require.NoError(t, b.dev.Close())
	require.ErrorIs(t, <-waiting, cm.ErrClosed)
	<-cb.Done()
	require.ErrorIs(t, cb.Err(), cm.ErrClosed)
	require.NoError(t, b.m.Close())
	_, err = cm.New(b.dev, cm.Options{})
	require.ErrorIs(t, err, verbs.ErrClosed)
}

// TestOneManager checks that a device has at most one manager.
func TestOneManager(t *testing.T) {
	a := newEnd(t, cm.Options{})
	_, err := cm.New(a.dev, cm.Options{})
	require.ErrorIs(t, err, verbs.ErrBusy)
}

func TestBadOptions(t *testing.T) {
	dev, err := rnic.Open(rnic.Options{})
	require.NoError(t, err)
	defer dev.Close()
	for _, o := range []cm.Options{
		{ResponseTimeout: -1}, {ResponseTimeout: 3 * time.Hour}, {Retries: 16}, {Retries: -2}, {ServiceTimeout: -1}, {ServiceTimeout: 3 * time.Hour}, {MaxConns: -1}, {Receives: -1}, {Receives: 1 << 16},
	} {
		_, err := cm.New(dev, o)
		require.ErrorIs(t, err, verbs.ErrInvalid, "%+v", o)
	}
}

// TestBadListenAndDialOptions checks that the options of a call are refused by field, value and
// range.
func TestBadListenAndDialOptions(t *testing.T) {
	a := newEnd(t, cm.Options{})
	to := netip.MustParseAddrPort("127.0.0.1:7")
	listen := func(o cm.ListenOptions) error {
		_, err := a.m.Listen(100, o)
		return err
	}
	dial := func(at netip.AddrPort, o cm.DialOptions) error {
		_, err := a.m.Dial(t.Context(), at, a.newQP(t, verbs.RC), o)
		return err
	}
	_, listenUD := a.m.ListenUD(100, cm.ListenOptions{Backlog: 1<<20 + 1})
	_, dialUD := a.m.DialUD(t.Context(), to, cm.UDDialOptions{PortSpace: 0x999})
	for want, err := range map[string]error{
		"ListenOptions.Backlog: -1 out of range [0, 1048576]":               listen(cm.ListenOptions{Backlog: -1}),
		"ListenOptions.Backlog: 1048577 out of range [0, 1048576]":          listenUD,
		"ListenOptions.PortSpace: 0x0999, want TCP, UDP, IB or SDP":         listen(cm.ListenOptions{PortSpace: 0x999}),
		"ListenOptions.NoRC and NoUC exclude all connections":               listen(cm.ListenOptions{NoRC: true, NoUC: true}),
		"cm: 127.0.0.1:7: dial: verbs: invalid argument: DialOptions.PortS": dial(to, cm.DialOptions{PortSpace: 0x999}),
		"UDDialOptions.PortSpace: 0x0999, want TCP, UDP, IB or SDP":         dialUD,
		"cm: dial: verbs: invalid argument: no address":                     dial(netip.AddrPort{}, cm.DialOptions{}),
	} {
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

func TestListeners(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(100, cm.ListenOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 100, l.Addr().Port())
	_, err = b.m.Listen(100, cm.ListenOptions{})
	require.ErrorIs(t, err, cm.ErrInUse)
	other, err := b.m.Listen(100, cm.ListenOptions{PortSpace: cm.IB})
	require.NoError(t, err)
	require.NoError(t, other.Close())
	ud, err := b.m.ListenUD(100, cm.ListenOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 100, ud.Addr().Port())
	require.NoError(t, ud.Close())
	require.NoError(t, ud.Close())

	// A request that the program has stays valid when the listener closes; others are rejected.
	ctx := soon(t)
	dial := func() <-chan error {
		qp, dialed := a.newQP(t, verbs.RC), make(chan error, 1)
		go func() {
			_, err := a.m.Dial(ctx, l.Addr(), qp, cm.DialOptions{UDPPort: b.m.Addr().Port()})
			dialed <- err
		}()
		return dialed
	}
	taken := dial()
	r, err := l.Accept(ctx)
	require.NoError(t, err)
	waiting := dial()
	for b.m.Stats().Requests < 2 {
		require.NoError(t, ctx.Err())
		runtime.Gosched()
	}
	require.NoError(t, l.Close())
	var refused *cm.RejectError
	require.ErrorAs(t, <-waiting, &refused)
	require.Equal(t, cm.InvalidServiceID, refused.Reason)
	_, err = r.Accept(ctx, b.newQP(t, verbs.RC), cm.AcceptOptions{})
	require.NoError(t, err)
	require.NoError(t, <-taken)
	_, err = l.Accept(ctx)
	require.ErrorIs(t, err, cm.ErrClosed)
	l, err = b.m.Listen(100, cm.ListenOptions{})
	require.NoError(t, err, "free again")
	require.NoError(t, l.Close())
}

// TestRestartedPeer checks that a restarted peer with the same QPN and id closes the connection of
// its earlier incarnation, and can connect the next time.
func TestRestartedPeer(t *testing.T) {
	a := newEnd(t, cm.Options{})
	p := newPuppet(t, a)
	l, err := a.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	ch := a.acceptOne(t, l, cm.AcceptOptions{})
	q := p.req(l.Addr().Port())
	p.send(1, mad.AttrREQ, q)
	_, body := p.receive(mad.AttrREP)
	p.send(1, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: body.(*mad.REP).LocalID})
	first := <-ch
	require.NoError(t, first.err)

	q.LocalID = 78
	p.send(2, mad.AttrREQ, q)
	_, body = p.receive(mad.AttrREJ)
	require.Equal(t, mad.RejStaleConn, body.(*mad.REJ).Reason)
	p.receive(mad.AttrDREQ)
	<-first.conn.Done()
	var refused *cm.RejectError
	require.ErrorAs(t, first.conn.Err(), &refused)
	require.Equal(t, cm.StaleConn, refused.Reason)

	ch = a.acceptOne(t, l, cm.AcceptOptions{})
	p.send(3, mad.AttrREQ, q)
	_, body = p.receive(mad.AttrREP)
	p.send(3, mad.AttrRTU, &mad.RTU{LocalID: 78, RemoteID: body.(*mad.REP).LocalID})
	require.NoError(t, (<-ch).err)
}

// TestHalfOpenPeers checks that peers that never confirm or that flood have a bounded number of
// half-open connections, and that the listener continues to serve others.
func TestHalfOpenPeers(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{Backlog: 20})
	require.NoError(t, err)
	stop := b.serve(t, l, func(c *cm.Conn) {
		<-c.Done()
		_ = c.QP().Close()
	})
	p := newPuppet(t, b)
	q := p.req(l.Addr().Port())
	for i := range uint32(2000) {
		q.LocalID, q.QPN = i+1, i+1
		p.send(uint64(i), mad.AttrREQ, q)
	}
	ca, err := a.dial(t, b, l.Addr(), cm.DialOptions{})
	require.NoError(t, err)
	s := b.m.Stats()
	require.LessOrEqual(t, s.HalfOpen, 11, "half of the backlog is the peer's")
	require.Less(t, s.Connections, 50)
	require.Positive(t, s.Dropped.PeerShare)
	require.NoError(t, ca.Disconnect(soon(t), nil))
	stop()
}

// TestWithdrawnRequests checks that withdrawn requests do not wait for a program that does not call
// Accept.
func TestWithdrawnRequests(t *testing.T) {
	a := newEnd(t, cm.Options{})
	p := newPuppet(t, a)
	l, err := a.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	q := p.req(l.Addr().Port())
	p.send(1, mad.AttrREQ, q)
	const many = 200
	for i := range uint32(many) {
		q.LocalID, q.QPN = 1000+i, 1000+i
		p.send(uint64(i), mad.AttrREQ, q)
		p.send(uint64(i), mad.AttrREJ, &mad.REJ{LocalID: q.LocalID, Reason: mad.RejTimeout})
	}
	for ctx := soon(t); a.m.Stats().Received.REJ < many; {
		require.NoError(t, ctx.Err())
		runtime.Gosched()
	}
	require.Equal(t, 1, l.Waiting())
	r, err := l.Accept(soon(t))
	require.NoError(t, err)
	require.EqualValues(t, 500, r.QPN, "the first")
}

// TestMalformedDatagrams checks that malformed datagrams, from queue pairs other than management ones or of other
// senders, are counted, and that the service continues.
func TestMalformedDatagrams(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	p := newPuppet(t, b)
	p.sendRaw(p.qp, []byte("short"))
	p.sendRaw(p.qp, make([]byte, mad.Size))
	p.sendRaw(p.qp, make([]byte, mad.Size+100))
	p.sendRaw(p.qp, nil)
	ud, err := p.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: p.cq, RecvCQ: p.cq,
		Cap: verbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1, MaxInlineData: 300}})
	require.NoError(t, err)
	require.NoError(t, verbs.ActivateUD(ud, 0x80010000, 1))
	p.sendRaw(ud, make([]byte, mad.Size))
	p.send(1, mad.AttrREP, &mad.REP{LocalID: 5, RemoteID: 6, QPN: 7})
	p.receive(mad.AttrREJ)
	p.send(1, mad.AttrRTU, &mad.RTU{LocalID: 5, RemoteID: 6})
	p.send(1, mad.AttrDREQ, &mad.DREQ{LocalID: 5, RemoteID: 6, RemoteQPN: 7})
	p.receive(mad.AttrDREP)

	s := b.m.Stats()
	require.EqualValues(t, 1, s.Foreign)
	require.EqualValues(t, 3, s.Dropped.UnknownID)
	require.Positive(t, s.Malformed.BadSize)
	require.Positive(t, s.Malformed.BadVersion)
	ca, _ := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
	require.NoError(t, ca.Disconnect(soon(t), nil))

	names := maps.Collect(s.All())
	require.EqualValues(t, 3, names["dropped_unknown_id"])
	require.EqualValues(t, 1, names["received_rtu"])
	require.Greater(t, len(names), 50)
}

// TestDataBeforeRTU checks that data before the RTU establishes the connection, if the program says
// so.
func TestDataBeforeRTU(t *testing.T) {
	a := newEnd(t, cm.Options{})
	p := newPuppet(t, a)
	l, err := a.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	p.send(1, mad.AttrREQ, p.req(l.Addr().Port()))
	r, err := l.Accept(soon(t))
	require.NoError(t, err)
	qp := a.newQP(t, verbs.RC)
	a.m.Notify(qp)
	ch := make(chan error, 1)
	go func() {
		_, err := r.Accept(soon(t), qp, cm.AcceptOptions{})
		ch <- err
	}()
	p.receive(mad.AttrREP)
	a.m.Notify(qp)
	require.NoError(t, <-ch)
	a.m.Notify(qp)
}

// TestMisuse checks that private data of the last message arrives, and that oversized data and
// invalid arguments are refused.
func TestMisuse(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	ca, cb := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
	require.Nil(t, ca.Err())
	require.Nil(t, ca.DisconnectPrivateData())
	require.ErrorIs(t, ca.Disconnect(soon(t), make([]byte, 221)), verbs.ErrInvalid)
	require.NoError(t, ca.Disconnect(soon(t), []byte("bye")))
	require.NoError(t, ca.Close(), "it has ended")
	<-cb.Done()
	require.Equal(t, "bye", string(cb.DisconnectPrivateData()[:3]))

	at := netip.MustParseAddrPort("127.0.0.1:7")
	for _, c := range []struct {
		qp   verbs.QP
		o    cm.DialOptions
		want error
	}{
		{nil, cm.DialOptions{}, verbs.ErrInvalid},
		{a.newQP(t, verbs.UD), cm.DialOptions{}, verbs.ErrUnsupported},
		{ca.QP(), cm.DialOptions{}, verbs.ErrState},
		{a.newQP(t, verbs.RC), cm.DialOptions{PrivateData: make([]byte, 57)}, verbs.ErrInvalid},
		{a.newQP(t, verbs.RC), cm.DialOptions{ConnectOptions: verbs.ConnectOptions{Retries: 8}}, verbs.ErrInvalid},
		{a.newQP(t, verbs.RC), cm.DialOptions{ConnectOptions: verbs.ConnectOptions{AckTimeout: 3 * time.Hour}}, verbs.ErrInvalid},
		{a.newQP(t, verbs.RC), cm.DialOptions{ConnectOptions: verbs.ConnectOptions{MTU: 6}}, verbs.ErrInvalid},
		{a.newQP(t, verbs.RC), cm.DialOptions{Prepare: func(verbs.QP) error { return context.Canceled }}, context.Canceled},
		{a.newQP(t, verbs.RC), cm.DialOptions{Receives: make([]verbs.RecvWR, 1000)}, verbs.ErrQueueFull},
	} {
		_, err := a.m.Dial(soon(t), at, c.qp, c.o)
		require.ErrorIs(t, err, c.want)
		var e *cm.Error
		require.ErrorAs(t, err, &e)
	}
	_, err := a.m.Dial(soon(t), netip.MustParseAddrPort("[::1]:7"), a.newQP(t, verbs.RC), cm.DialOptions{})
	require.ErrorIs(t, err, verbs.ErrInvalid, "of another family")
	_, err = a.m.Dial(soon(t), netip.AddrPort{}, a.newQP(t, verbs.RC), cm.DialOptions{})
	require.ErrorIs(t, err, verbs.ErrInvalid, "of none")
	_, err = a.m.DialUD(soon(t), at, cm.UDDialOptions{PrivateData: make([]byte, 181)})
	require.ErrorIs(t, err, verbs.ErrInvalid)

	p := newPuppet(t, a)
	l, err := a.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	p.send(1, mad.AttrREQ, p.req(l.Addr().Port()))
	r, err := l.Accept(soon(t))
	require.NoError(t, err)
	for _, c := range []struct {
		qp verbs.QP
		o  cm.AcceptOptions
	}{
		{nil, cm.AcceptOptions{}},
		{a.newQP(t, verbs.UC), cm.AcceptOptions{}},
		{a.newQP(t, verbs.RC), cm.AcceptOptions{PrivateData: make([]byte, 197)}},
		{a.newQP(t, verbs.RC), cm.AcceptOptions{ConnectOptions: verbs.ConnectOptions{RNRDelay: time.Second}}},
	} {
		_, err := r.Accept(soon(t), c.qp, c.o)
		require.ErrorIs(t, err, verbs.ErrInvalid)
	}
	require.ErrorIs(t, r.Reject(0, make([]byte, 149)), verbs.ErrInvalid)
	require.NoError(t, r.Reject(0, nil), "it can still be answered")
	_, err = r.Accept(soon(t), a.newQP(t, verbs.RC), cm.AcceptOptions{})
	require.ErrorIs(t, err, cm.ErrAnswered)
}

// TestLossyNetwork checks that connections are established with a quarter of all packets lost.
func TestLossyNetwork(t *testing.T) {
	ro := rnic.Options{Impair: "loss 25% duplicate 10% seed 5"}
	o := cm.Options{ResponseTimeout: 67 * time.Millisecond}
	a, b := newEndOn(t, ro, o), newEndOn(t, ro, o)
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	stop := b.serve(t, l, func(c *cm.Conn) {
		<-c.Done()
		_ = c.QP().Close()
	})
	ctx := soon(t)
	var wg sync.WaitGroup
	for range 50 {
		qp := a.newQP(t, verbs.RC)
		wg.Go(func() {
			c, err := a.m.Dial(ctx, l.Addr(), qp, cm.DialOptions{UDPPort: b.m.Addr().Port()})
			if err == nil {
				err = c.Disconnect(ctx, nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Positive(t, a.m.Stats().Retransmitted)
	stop()
}

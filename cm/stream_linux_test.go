package cm_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A streamEnd is a device with iWARP, its manager and a queue pair.
type streamEnd struct {
	dev *rnic.Device
	m   *cm.Manager
	cq  verbs.CQ
	pd  verbs.PD
	mr  verbs.MR
}

func newStreamEnd(t *testing.T) *streamEnd {
	dev, err := rnic.Open(rnic.Options{Wire: rnic.IWARP})
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	e := &streamEnd{dev: dev}
	e.m, err = cm.New(dev, cm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { e.m.Close() })
	e.cq, err = dev.CreateCQ(64)
	require.NoError(t, err)
	e.pd, err = dev.AllocPD()
	require.NoError(t, err)
	e.mr, err = e.pd.RegMR(make([]byte, 4096), verbs.AccessLocalWrite|verbs.AccessRemote)
	require.NoError(t, err)
	return e
}

func (e *streamEnd) newQP(t *testing.T) verbs.QP {
	qp, err := e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1}})
	require.NoError(t, err)
	return qp
}

// receives is a receive of the first 100 bytes.
func (e *streamEnd) receives() []verbs.RecvWR {
	return []verbs.RecvWR{{WRID: 1, SGList: []verbs.SGE{e.mr.SGE(0, 100)}}}
}

// awaitCompletion returns the next completion.
func (e *streamEnd) awaitCompletion(t *testing.T) verbs.WC {
	var wc [1]verbs.WC
	_, err := e.cq.PollWait(t.Context(), wc[:])
	require.NoError(t, err)
	return wc[0]
}

// TestStreamConnection connects two devices with iWARP, with private data both ways. Either end may
// send first. The end of the connection is noticed by both.
func TestStreamConnection(t *testing.T) {
	for _, acceptorSends := range []bool{false, true} {
		client, server := newStreamEnd(t), newStreamEnd(t)
		l, err := server.m.Listen(0, cm.ListenOptions{})
		require.NoError(t, err)
		accepted := make(chan *cm.Conn, 1)
		go func() {
			r, err := l.Accept(t.Context())
			if err != nil {
				close(accepted)
				return
			}
			if string(r.PrivateData()) != "hello" || r.Transport != verbs.RC || r.LocalAddr() != l.Addr() {
				_ = r.Reject(0, []byte("unexpected"))
			}
			c, _ := r.Accept(t.Context(), server.newQP(t), cm.AcceptOptions{PrivateData: []byte("welcome"), Receives: server.receives()})
			accepted <- c
		}()
		qp := client.newQP(t)
		c, err := client.m.Dial(t.Context(), l.Addr(), qp, cm.DialOptions{PrivateData: []byte("hello"), Receives: client.receives()})
		require.NoError(t, err)
		require.Equal(t, "welcome", string(c.PrivateData()))
		s := <-accepted
		require.NotNil(t, s)
		require.Equal(t, c.LocalAddr(), s.RemoteAddr())
		require.Equal(t, verbs.StateRTS, qp.State())
		from, to, sender := client, server, c
		if acceptorSends {
			from, to, sender = server, client, s
		}
		copy(from.mr.Bytes()[200:], "message")
		_, err = sender.QP().PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{from.mr.SGE(200, 7)}}})
		require.NoError(t, err)
		require.Equal(t, verbs.WCSend, from.awaitCompletion(t).Opcode)
		require.EqualValues(t, 7, to.awaitCompletion(t).ByteLen)
		require.Equal(t, "message", string(to.mr.Bytes()[:7]))

		require.NoError(t, c.Close())
		<-s.Done()
		require.ErrorIs(t, s.Err(), cm.ErrDisconnected)
		require.ErrorIs(t, c.Err(), cm.ErrClosed)
		require.Equal(t, verbs.StateErr, s.QP().State())
		require.NoError(t, s.Close())
		require.NoError(t, l.Close())
	}
}

// TestStreamRefusals checks the errors of connections that are not established.
func TestStreamRefusals(t *testing.T) {
	client, server := newStreamEnd(t), newStreamEnd(t)
	l, err := server.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	_, err = server.m.Listen(l.Addr().Port(), cm.ListenOptions{})
	require.ErrorIs(t, err, cm.ErrInUse)

	go func() {
		r, err := l.Accept(t.Context())
		if err == nil {
			_ = r.Reject(0, []byte("no"))
		}
	}()
	var rejection *cm.RejectError
	_, err = client.m.Dial(t.Context(), l.Addr(), client.newQP(t), cm.DialOptions{})
	require.ErrorAs(t, err, &rejection)
	require.Equal(t, cm.ConsumerReject, rejection.Reason)
	require.Equal(t, "no", string(rejection.PrivateData))

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = l.Accept(t.Context()) // which neither accepts nor rejects
		cancel()
	}()
	_, err = client.m.Dial(ctx, l.Addr(), client.newQP(t), cm.DialOptions{})
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, l.Close())
	_, err = client.m.Dial(t.Context(), l.Addr(), client.newQP(t), cm.DialOptions{})
	require.ErrorAs(t, err, &rejection)
	require.Equal(t, cm.InvalidServiceID, rejection.Reason)
	_, err = client.m.Dial(t.Context(), netip.AddrPort{}, client.newQP(t), cm.DialOptions{})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = client.m.Dial(t.Context(), l.Addr(), client.newQP(t), cm.DialOptions{PrivateData: make([]byte, 253)})
	require.ErrorIs(t, err, verbs.ErrInvalid)

	_, err = client.m.ListenUD(0, cm.ListenOptions{})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	_, err = client.m.DialUD(t.Context(), l.Addr(), cm.UDDialOptions{})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	_, err = client.m.DialExternal(t.Context(), l.Addr(), cm.ExternalQP{Num: 17, Type: verbs.RC}, cm.DialOptions{})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
}

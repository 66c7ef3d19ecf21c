package cm_test

import (
	"errors"
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

func TestDatagrams(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	ctx := soon(t)
	mr := b.reg(t, 100)
	served := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil && string(r.PrivateData()[:2]) != "hi" {
			err = errors.New("wrong private data")
		}
		if err == nil {
			err = r.Accept(cm.UDAcceptOptions{PrivateData: []byte("come in"), UDQueuePair: cm.UDQueuePair{
				QP: b.newQP(t, verbs.UD), QKey: 77,
				Prepare: func(qp verbs.QP) error {
					_, err := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, 100)}}})
					return err
				},
			}})
		}
		served <- err
	}()
	qp := a.newQP(t, verbs.UD)
	p, err := a.m.DialUD(ctx, l.Addr(), cm.UDDialOptions{
		UDPPort: b.m.Addr().Port(), PrivateData: []byte("hi"), UDQueuePair: cm.UDQueuePair{QP: qp},
	})
	require.NoError(t, err)
	require.NoError(t, <-served)
	require.EqualValues(t, 77, p.QKey)
	require.Equal(t, "come in", string(p.PrivateData[:7]))

	ah, err := a.pd.CreateAH(p.AH)
	require.NoError(t, err)
	_, err = qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte("datagram"),
		AH: ah, RemoteQPN: p.QPN, RemoteQKey: p.QKey}})
	require.NoError(t, err)
	wc := b.next(t)
	require.EqualValues(t, wire.GRHLen+8, wc.ByteLen)
	require.Equal(t, qp.Num(), wc.SrcQPN)
	require.Equal(t, "datagram", string(mr.Bytes()[wire.GRHLen:wire.GRHLen+8]))
}

func TestDatagramsRejected(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	ctx := soon(t)
	go func() {
		if r, err := l.Accept(ctx); err == nil {
			_ = r.Reject(mad.SIDRNoQP, []byte("go away"))
		}
	}()
	var refused *cm.UDRejectError
	_, err = a.m.DialUD(ctx, l.Addr(), cm.UDDialOptions{UDPPort: b.m.Addr().Port()})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, mad.SIDRNoQP, refused.Status)
	require.Equal(t, "go away", string(refused.PrivateData[:7]))

	require.NoError(t, l.Close())
	_, err = a.m.DialUD(ctx, l.Addr(), cm.UDDialOptions{UDPPort: b.m.Addr().Port()})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, mad.SIDRUnsupported, refused.Status)
	_, err = l.Accept(ctx)
	require.ErrorIs(t, err, cm.ErrClosed)
}

func TestJoin(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("multicast needs Linux")
	}
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	group := netip.MustParseAddr("239.4.7.92")
	mr := b.reg(t, 100)
	qp := b.newQP(t, verbs.UD)
	g, err := b.m.Join(group, cm.UDQueuePair{QP: qp, Prepare: func(qp verbs.QP) error {
		_, err := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, 100)}}})
		return err
	}})
	require.NoError(t, err)
	require.EqualValues(t, cm.UDQKey, g.QKey)

	sender := a.newQP(t, verbs.UD)
	require.NoError(t, verbs.ActivateUD(sender, cm.UDQKey, 1))
	ah, err := a.pd.CreateAH(g.AH)
	require.NoError(t, err)
	_, err = sender.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte("all"),
		AH: ah, RemoteQPN: g.QPN, RemoteQKey: g.QKey}})
	require.NoError(t, err)
	require.Equal(t, sender.Num(), b.next(t).SrcQPN)
	require.NoError(t, g.Close())
	require.NoError(t, g.Close(), "it is closed")
	_, err = b.m.Join(netip.MustParseAddr("192.0.2.1"), cm.UDQueuePair{QP: qp})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = b.m.Join(group, cm.UDQueuePair{QP: b.newQP(t, verbs.RC)})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	_, err = b.m.Join(group, cm.UDQueuePair{})
	require.ErrorIs(t, err, verbs.ErrInvalid)
}

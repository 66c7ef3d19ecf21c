package cm_test

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func TestConnectAndWrite(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	mr := b.reg(t, 64)
	ca, cb := connect(t, a, b, cm.DialOptions{PrivateData: []byte("hello")}, cm.AcceptOptions{
		PrivateData: descriptor(mr),
		Prepare: func(qp verbs.QP) error {
			_, err := qp.PostRecv([]verbs.RecvWR{{WRID: 7}})
			return err
		},
	})
	require.Equal(t, "hello", string(cb.PrivateData()[:5]))
	require.Len(t, cb.PrivateData(), 56)
	require.Equal(t, ca.LocalAddr(), cb.RemoteAddr())
	require.Equal(t, cb.LocalAddr(), ca.RemoteAddr())

	from := a.reg(t, 8)
	copy(from.Bytes(), "by RDMA!")
	_, err := ca.QP().PostSend([]verbs.SendWR{{
		Opcode: verbs.WRRDMAWriteWithImm, SGList: []verbs.SGE{from.SGE(0, 8)}, Imm: 42,
		RemoteAddr: binary.BigEndian.Uint64(ca.PrivateData()), RKey: binary.BigEndian.Uint32(ca.PrivateData()[8:]),
	}})
	require.NoError(t, err)
	require.EqualValues(t, 42, b.next(t).Imm)
	require.Equal(t, "by RDMA!", string(mr.Bytes()[:8]))

	require.NoError(t, ca.Disconnect(soon(t), nil))
	<-cb.Done()
	require.ErrorIs(t, cb.Err(), cm.ErrDisconnected)
	require.ErrorIs(t, ca.Err(), cm.ErrClosed)
	require.Equal(t, verbs.StateErr, ca.QP().State())
	require.Equal(t, verbs.StateErr, cb.QP().State())
}

// watchedQP records the error of its connection at the moment of its failure.
type watchedQP struct {
	verbs.QP
	failing func()
}

func (q *watchedQP) Modify(a verbs.QPAttr, mask verbs.QPAttrMask) error {
	if a.State == verbs.StateErr {
		q.failing()
	}
	return q.QP.Modify(a, mask)
}

// TestErrorBeforeFlush checks that the connection has its error before requests are flushed, so that
// the poller of a flushed completion can query it.
func TestErrorBeforeFlush(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	var ca *cm.Conn
	said := make(chan error, 1)
	qp := &watchedQP{QP: a.newQP(t, verbs.RC), failing: func() { said <- ca.Err() }}
	ca, cb := connectQP(t, a, b, qp, cm.DialOptions{}, cm.AcceptOptions{})
	require.NoError(t, ca.Err())
	require.NoError(t, cb.Disconnect(soon(t), nil))
	require.ErrorIs(t, <-said, cm.ErrDisconnected)
	<-ca.Done()
	require.ErrorIs(t, ca.Err(), cm.ErrDisconnected)
}

// TestDialRefusedBySystem checks that a dial to which the system sends nothing fails with the
// system's error when the second attempt is refused, long before the retransmissions are exhausted.
func TestDialRefusedBySystem(t *testing.T) {
	a := newEnd(t, cm.Options{})
	gone, err := rnic.Open(rnic.Options{Addr: ownaddr.Device(50)}) // stays free
	require.NoError(t, err)
	closed := gone.Addr()
	require.NoError(t, gone.Close())
	for _, test := range []struct {
		adapter netip.AddrPort
		text    string
	}{
		{closed, "connection refused"},
		{netip.MustParseAddrPort("192.0.2.1:4791"), "the system refuses to send to 192.0.2.1:4791"}, // not from a loopback address
	} {
		at := netip.AddrPortFrom(test.adapter.Addr(), 7)
		for _, dial := range []func() error{
			func() error {
				_, err := a.m.Dial(soon(t), at, a.newQP(t, verbs.RC), cm.DialOptions{UDPPort: test.adapter.Port()})
				return err
			},
			func() error {
				_, err := a.m.DialUD(soon(t), at, cm.UDDialOptions{UDPPort: test.adapter.Port()})
				return err
			},
		} {
			before := a.m.Stats().Retransmitted
			err := dial()
			require.ErrorIs(t, err, cm.ErrUnreachable)
			var refused *verbs.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, test.adapter, refused.Peer)
			require.ErrorIs(t, err, refused.Err)
			require.NotEqual(t, syscall.Errno(0), refused.Err)
			require.ErrorContains(t, err, test.text)
			require.EqualValues(t, 1, a.m.Stats().Retransmitted-before, "messages sent again")
			require.Less(t, len(err.Error()), 250)
		}
	}
	require.Zero(t, a.m.Stats().Connections)
}

// TestPortsAreQuarantined checks that the port of a closed listener is not reused while others are free.
func TestPortsAreQuarantined(t *testing.T) {
	e := newEnd(t, cm.Options{})
	seen := map[uint16]bool{}
	for range 2000 {
		l, err := e.m.Listen(0, cm.ListenOptions{})
		require.NoError(t, err)
		require.False(t, seen[l.Addr().Port()], "port %v comes back", l.Addr())
		seen[l.Addr().Port()] = true
		require.NoError(t, l.Close())
	}
}

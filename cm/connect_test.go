package cm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
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

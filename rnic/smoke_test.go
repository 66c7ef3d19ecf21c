package rnic

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func pair(t testing.TB, o Options) (a, b *end) {
	a, b = newEnd(t, o), newEnd(t, o)
	connect(t, a.dev, a.qp, b.dev, b.qp)
	return a, b
}

func connect(t testing.TB, a verbs.Device, qa verbs.QP, b verbs.Device, qb verbs.QP) {
	ea, err := verbs.LocalEndpoint(a, qa, 100)
	require.NoError(t, err)
	eb, err := verbs.LocalEndpoint(b, qb, 0xfffff0)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(qa, ea, eb, verbs.ConnectOptions{}))
	require.NoError(t, verbs.Connect(qb, eb, ea, verbs.ConnectOptions{}))
}

type end struct {
	dev *Device
	pd  verbs.PD
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR
}

func newEnd(t testing.TB, o Options) *end {
	e := &end{}
	var err error
	e.dev, err = Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { e.dev.Close() })
	e.pd, err = e.dev.AllocPD()
	require.NoError(t, err)
	e.cq, err = e.dev.CreateCQ(1024)
	require.NoError(t, err)
	e.qp, err = e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: 128, MaxRecvWR: 128, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}})
	require.NoError(t, err)
	e.mr, err = e.pd.RegMR(make([]byte, 8<<20), verbs.AccessLocalWrite|verbs.AccessRemote)
	require.NoError(t, err)
	return e
}

func (e *end) poll1(t testing.TB) verbs.WC {
	var wc [1]verbs.WC
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	n, err := e.cq.PollWait(ctx, wc[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, wc[0].Err())
	return wc[0]
}

func TestSmokeWrite(t *testing.T) {
	a, b := pair(t, Options{})
	for i := range a.mr.Bytes() {
		a.mr.Bytes()[i] = byte(i * 7)
	}
	for _, n := range []int{0, 1, 8, 4096, 4097, 65536, 1 << 20, 8 << 20} {
		clear(b.mr.Bytes())
		_, err := a.qp.PostSend([]verbs.SendWR{{WRID: uint64(n), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
			SGList: []verbs.SGE{a.mr.SGE(0, n)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
		require.NoError(t, err)
		wc := a.poll1(t)
		require.Equal(t, uint64(n), wc.WRID)
		require.Equal(t, a.mr.Bytes()[:n], b.mr.Bytes()[:n])
	}
	for _, n := range []int{0, 1, 8, 4096, 4097, 65536, 1 << 20, 8 << 20} {
		clear(a.mr.Bytes())
		_, err := a.qp.PostSend([]verbs.SendWR{{WRID: uint64(n), Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled,
			SGList: []verbs.SGE{a.mr.SGE(0, n)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
		require.NoError(t, err)
		a.poll1(t)
		require.Equal(t, b.mr.Bytes()[:n], a.mr.Bytes()[:n])
	}
	for _, n := range []int{0, 1, 8, 4096, 4097, 65536, 1 << 20, 8 << 20} {
		clear(b.mr.Bytes())
		_, err := b.qp.PostRecv([]verbs.RecvWR{{WRID: 7, SGList: []verbs.SGE{b.mr.SGE(0, 8<<20)}}})
		require.NoError(t, err)
		_, err = a.qp.PostSend([]verbs.SendWR{{WRID: uint64(n), Opcode: verbs.WRSend, Flags: verbs.SendSignaled,
			SGList: []verbs.SGE{a.mr.SGE(0, n)}}})
		require.NoError(t, err)
		a.poll1(t)
		b.poll1(t)
		require.Equal(t, a.mr.Bytes()[:n], b.mr.Bytes()[:n])
	}
	t.Logf("%+v", a.dev.Stats())
	t.Logf("%+v", b.dev.Stats())
}

package rnic

import (
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

func TestMulticast(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("multicast needs Linux")
	}
	checkMulticast(t, Options{}, "239.4.7.91")
}

// checkMulticast sends to a group from one of three devices. The two that have joined receive.
func checkMulticast(t *testing.T, o Options, groupAddr string) {
	g := verbs.GIDFromAddr(netip.MustParseAddr(groupAddr))
	open := func() (*end, verbs.QP) {
		e := newEnd(t, o)
		q, err := e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: e.cq, RecvCQ: e.cq,
			Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}})
		require.NoError(t, err)
		require.NoError(t, verbs.ActivateUD(q, 0x1234, 0))
		_, err = q.PostRecv([]verbs.RecvWR{{WRID: 9, SGList: []verbs.SGE{e.mr.SGE(4096, 200)}}})
		require.NoError(t, err)
		return e, q
	}
	a, qa := open()
	b, qb := open()
	c, qc := open()
	require.NoError(t, qb.AttachMcast(g))
	require.NoError(t, qb.AttachMcast(g), "attaching twice is once")
	require.NoError(t, qc.AttachMcast(g))
	require.ErrorIs(t, a.qp.AttachMcast(g), verbs.ErrUnsupported)
	require.ErrorIs(t, qa.DetachMcast(g), verbs.ErrInvalid)

	ah, err := a.pd.CreateAH(verbs.AHAttr{DGID: g})
	require.NoError(t, err)
	copy(a.mr.Bytes(), "to the whole multicast")
	send := func() {
		_, err := qa.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, 22)},
			AH: ah, RemoteQPN: wire.QPNMulticast, RemoteQKey: 0x1234}})
		require.NoError(t, err)
		require.Equal(t, verbs.WCSend, a.poll1(t).Opcode)
	}
	send()
	for _, e := range []*end{b, c} {
		wc := e.poll1(t)
		require.Equal(t, qa.Num(), wc.SrcQPN)
		require.Equal(t, uint32(40+22), wc.ByteLen)
		require.Equal(t, "to the whole multicast", string(e.mr.Bytes()[4096+40:4096+62]))
	}
	require.NoError(t, qb.DetachMcast(g))
	require.NoError(t, qc.Close())
	require.Empty(t, b.dev.groups.list)
	require.Empty(t, c.dev.groups.list)
	require.ErrorIs(t, qa.AttachMcast(verbs.GIDFromAddr(netip.MustParseAddr("ff11::1"))), verbs.ErrUnsupported)
}

// TestMulticastOverrun checks that an overrun of the completion queue by packets of a group fails
// the queue pair like any overrun.
func TestMulticastOverrun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("multicast needs Linux")
	}
	g := verbs.GIDFromAddr(netip.MustParseAddr("239.4.7.92"))
	a, b := pairOf(t, Options{}, verbs.UD)
	small := b.newCQ(t, 1)
	q := b.newQPWith(t, verbs.QPInitAttr{Type: verbs.UD, SendCQ: small, RecvCQ: small})
	require.NoError(t, verbs.ActivateUD(q, qkey, 1))
	require.NoError(t, q.AttachMcast(g))
	for range 2 {
		_, err := q.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{b.mr.SGE(0, 100)}}})
		require.NoError(t, err)
	}
	ah, err := a.pd.CreateAH(verbs.AHAttr{DGID: g})
	require.NoError(t, err)
	for range 2 {
		a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 4)},
			AH: ah, RemoteQPN: wire.QPNMulticast, RemoteQKey: qkey})
		a.poll1(t)
	}
	require.Same(t, small, b.event(t, verbs.EventCQErr).CQ)
	require.Same(t, q, b.event(t, verbs.EventQPFatal).QP)
	require.Equal(t, verbs.StateErr, q.State())
}

// deafConn is a socket that is always readable, and fails.
type deafConn struct {
	link.Conn
	reads atomic.Int32
}

func (c *deafConn) LocalAddr() netip.AddrPort                   { return netip.MustParseAddrPort("127.0.0.1:4791") }
func (c *deafConn) Wait(time.Duration) (readable bool, _ error) { return true, nil }
func (c *deafConn) Close() error                                { return nil }
func (c *deafConn) ReadBatch(*link.Datagrams) (int, error) {
	c.reads.Add(1)
	return 0, errBroken
}

// TestMulticastSocketFails checks that a permanent failure of a group's socket fails the link
// instead of spinning.
func TestMulticastSocketFails(t *testing.T) {
	e := newEnd(t, Options{})
	c := &deafConn{}
	gr := &group{conn: c, done: make(chan struct{})}
	go gr.receiveLoop(e.dev)
	<-gr.done
	require.EqualValues(t, 1, c.reads.Load())
	require.Contains(t, e.event(t, verbs.EventDeviceFatal).Failure.Event, errBroken.Error())
	_, err := e.dev.AllocPD()
	require.ErrorIs(t, err, errBroken)
}

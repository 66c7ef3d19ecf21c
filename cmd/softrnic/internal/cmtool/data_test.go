package cmtool_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/verbs"
)

// TestForeignDatagrams checks that datagrams without the number of their queue pair, with a wrong number,
// or of a second queue pair are not counted.
func TestForeignDatagrams(t *testing.T) {
	o := cmtool.Defaults(ud)
	o.Count, o.Size = 3, 8
	s := serve(t, o)
	p, stranger := newPuppet(t, verbs.UD, o.Count), newPuppet(t, verbs.UD, o.Count)
	peer, err := p.m.DialUD(toolstest.Context(t), s.At, cm.UDDialOptions{UDQueuePair: p.pair()})
	require.NoError(t, err)
	p.towards(peer.AH, peer.QPN)
	require.NoError(t, verbs.ActivateUD(stranger.qp, cm.UDQKey, 0))
	stranger.towards(peer.AH, peer.QPN)

	message := []byte("datagram")
	p.send(message, verbs.WRSend, 0)
	p.send(message, verbs.WRSendWithImm, p.qp.Num()+1)
	p.send(message, verbs.WRSendWithImm, p.qp.Num())
	stranger.send(message, verbs.WRSendWithImm, stranger.qp.Num())
	stranger.send([]byte("long, and of no interest"), verbs.WRSendWithImm, stranger.qp.Num())
	p.send(message, verbs.WRSendWithImm, p.qp.Num())
	p.send(message, verbs.WRSendWithImm, p.qp.Num())
	for range o.Count {
		wc := p.next()
		require.Equal(t, peer.QPN, wc.Imm)
		require.EqualValues(t, 40+8, wc.ByteLen)
	}
	require.NoError(t, (<-s.Ended).err)
}

// TestWrongData has a peer send messages of which the third has wrong data, and checks that the
// receiver reports it.
func TestWrongData(t *testing.T) {
	message := func(i int) []byte {
		b := make([]byte, 8)
		for at := range b {
			b[at] = byte(at) // the data of a server on its first connection
		}
		if i == 2 {
			b[5] ^= 0x40
		}
		return b
	}
	o := cmtool.Defaults(rc)
	o.Size = 8
	want := &cmtool.DataError{Service: rc, Connection: 0, Message: 2, Offset: 5, Got: 0x45, Want: 5}

	s := serve(t, o)
	p := newPuppet(t, verbs.RC, 10)
	conn, err := p.m.Dial(toolstest.Context(t), s.At, p.qp, cm.DialOptions{Prepare: p.postReceives})
	require.NoError(t, err)
	for i := range o.Count {
		p.send(message(i), verbs.WRSend, 0)
	}
	served := <-s.Ended
	var wrong *cmtool.DataError
	require.ErrorAs(t, served.err, &wrong)
	require.Equal(t, want, wrong)
	require.ErrorContains(t, served.err, "connection 0: message 2 has wrong data: byte 5 is 0x45 and should be 0x05")
	<-conn.Done()

	p = newPuppet(t, verbs.RC, 10)
	l, err := p.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	clients := make(chan outcome)
	go func() { clients <- run(toolstest.Context(t), towards(t, l.Addr(), o)) }()
	r, err := l.Accept(toolstest.Context(t))
	require.NoError(t, err)
	_, err = r.Accept(toolstest.Context(t), p.qp, cm.AcceptOptions{Prepare: p.postReceives})
	require.NoError(t, err)
	for i := range o.Count {
		p.send(message(i), verbs.WRSend, 0)
	}
	client := <-clients
	require.ErrorAs(t, client.err, &wrong)
	require.Equal(t, want, wrong)
}

// TestWrongDatagrams does the same with datagrams.
func TestWrongDatagrams(t *testing.T) {
	o := cmtool.Defaults(ud)
	o.Count, o.Size = 3, 50
	message := func(i int) []byte {
		b := make([]byte, o.Size)
		for at := range b[:10] {
			b[40+at] = byte(at) // the data of a client, behind 40 bytes
		}
		if i == 2 {
			b[45] ^= 0x40
		}
		return b
	}
	want := &cmtool.DataError{Service: ud, Connection: 0, Message: 2, Offset: 45, Got: 0x45, Want: 5}
	var wrong *cmtool.DataError

	s := serve(t, o)
	p := newPuppet(t, verbs.UD, o.Count)
	peer, err := p.m.DialUD(toolstest.Context(t), s.At, cm.UDDialOptions{UDQueuePair: p.pair()})
	require.NoError(t, err)
	p.towards(peer.AH, peer.QPN)
	for i := range o.Count {
		p.send(message(i), verbs.WRSendWithImm, p.qp.Num())
	}
	require.ErrorAs(t, (<-s.Ended).err, &wrong)
	require.Equal(t, want, wrong)

	p = newPuppet(t, verbs.UD, o.Count)
	l, err := p.m.ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	clients := make(chan outcome)
	co := towards(t, l.Addr(), o)
	go func() { clients <- run(toolstest.Context(t), co) }()
	r, err := l.Accept(toolstest.Context(t))
	require.NoError(t, err)
	require.NoError(t, r.Accept(cm.UDAcceptOptions{UDQueuePair: p.pair()}))
	p.towards(r.RemoteAH(), p.next().SrcQPN)
	for i := range o.Count {
		p.send(message(i), verbs.WRSendWithImm, p.qp.Num())
	}
	client := <-clients
	require.ErrorAs(t, client.err, &wrong)
	require.Equal(t, want, wrong)
	require.ErrorContains(t, client.err, "connection 0: datagram 2 has wrong data: byte 45 is 0x45 and should be 0x05")
}

// puppet is a peer that the test controls.
type puppet struct {
	t    *testing.T
	m    *cm.Manager
	pd   verbs.PD
	cq   verbs.CQ
	qp   verbs.QP
	mr   verbs.MR
	n    int
	ah   verbs.AH
	dest uint32
}

func newPuppet(t *testing.T, kind verbs.QPType, receives int) *puppet {
	t.Helper()
	dev, m := toolstest.Manager(t)
	p := &puppet{t: t, m: m, n: receives}
	var err error
	p.pd, err = dev.AllocPD()
	require.NoError(t, err)
	p.cq, err = dev.CreateCQ(64)
	require.NoError(t, err)
	p.qp, err = p.pd.CreateQP(verbs.QPInitAttr{Type: kind, SendCQ: p.cq, RecvCQ: p.cq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: receives, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 64}})
	require.NoError(t, err)
	p.mr, err = p.pd.RegMR(make([]byte, 128), verbs.AccessLocalWrite)
	require.NoError(t, err)
	return p
}

// pair returns the queue pair, and posts its receives when it becomes ready.
func (p *puppet) pair() cm.UDQueuePair {
	return cm.UDQueuePair{QP: p.qp, Prepare: p.postReceives}
}

func (p *puppet) postReceives(verbs.QP) error {
	wrs := make([]verbs.RecvWR, p.n)
	for i := range wrs {
		wrs[i].SGList = []verbs.SGE{p.mr.SGE(0, 128)}
	}
	_, err := p.qp.PostRecv(wrs)
	return err
}

// towards sets the destination of datagrams.
func (p *puppet) towards(a verbs.AHAttr, qpn uint32) {
	p.t.Helper()
	var err error
	p.ah, err = p.pd.CreateAH(a)
	require.NoError(p.t, err)
	p.dest = qpn
}

func (p *puppet) send(message []byte, op verbs.WROpcode, imm uint32) {
	p.t.Helper()
	wr := verbs.SendWR{Opcode: op, Imm: imm, Flags: verbs.SendInline, InlineData: message}
	if p.ah != nil {
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = p.ah, p.dest, cm.UDQKey
	}
	_, err := p.qp.PostSend([]verbs.SendWR{wr})
	require.NoError(p.t, err)
}

// next waits for a datagram.
func (p *puppet) next() verbs.WC {
	p.t.Helper()
	var wcs [1]verbs.WC
	_, err := p.cq.PollWait(toolstest.Context(p.t), wcs[:])
	require.NoError(p.t, err)
	require.NoError(p.t, wcs[0].Err())
	return wcs[0]
}

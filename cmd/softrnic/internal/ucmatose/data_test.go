package ucmatose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/ucmatose"
	"github.com/softrnic/softrnic/verbs"
)

// TestWrongData is found by who receives it: a peer sends messages of which the
// third is not what it should be.
func TestWrongData(t *testing.T) {
	message := func(i int) []byte {
		b := make([]byte, 8)
		for at := range b {
			b[at] = byte(at) // what a server sends on its first connection
		}
		if i == 2 {
			b[5] ^= 0x40
		}
		return b
	}
	o := ucmatose.Defaults()
	o.Size = 8
	want := &ucmatose.DataError{Connection: 0, Message: 2, Offset: 5, Got: 0x45, Want: 5}

	s := serve(t, o)
	p := newPuppet(t, 10)
	conn, err := p.m.Dial(toolstest.Context(t), s.At, p.qp, cm.DialOptions{Prepare: p.receives})
	require.NoError(t, err)
	for i := range o.Count {
		p.send(message(i))
	}
	served := <-s.Ended
	var wrong *ucmatose.DataError
	require.ErrorAs(t, served.err, &wrong)
	require.Equal(t, want, wrong)
	require.ErrorContains(t, served.err, "connection 0: message 2 has wrong data: byte 5 is 0x45 and should be 0x05")
	<-conn.Done()

	p = newPuppet(t, 10)
	l, err := p.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	clients := make(chan outcome)
	go func() { clients <- run(toolstest.Context(t), towards(t, l.Addr(), o)) }()
	r, err := l.Accept(toolstest.Context(t))
	require.NoError(t, err)
	_, err = r.Accept(toolstest.Context(t), p.qp, cm.AcceptOptions{Prepare: p.receives})
	require.NoError(t, err)
	for i := range o.Count {
		p.send(message(i))
	}
	client := <-clients
	require.ErrorAs(t, client.err, &wrong)
	require.Equal(t, want, wrong)
}

// puppet is a peer that does what it likes.
type puppet struct {
	t  *testing.T
	m  *cm.Manager
	qp verbs.QP
	mr verbs.MR
	n  int
}

func newPuppet(t *testing.T, receives int) *puppet {
	t.Helper()
	dev, m := toolstest.Manager(t)
	p := &puppet{t: t, m: m, n: receives}
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	cq, err := dev.CreateCQ(2 * receives)
	require.NoError(t, err)
	p.qp, err = pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq,
		Cap: verbs.QPCap{MaxSendWR: receives, MaxRecvWR: receives, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 64}})
	require.NoError(t, err)
	p.mr, err = pd.RegMR(make([]byte, 64), verbs.AccessLocalWrite)
	require.NoError(t, err)
	return p
}

func (p *puppet) receives(verbs.QP) error {
	wrs := make([]verbs.RecvWR, p.n)
	for i := range wrs {
		wrs[i].SGList = []verbs.SGE{p.mr.SGE(0, 64)}
	}
	_, err := p.qp.PostRecv(wrs)
	return err
}

func (p *puppet) send(message []byte) {
	_, err := p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: message}})
	require.NoError(p.t, err)
}

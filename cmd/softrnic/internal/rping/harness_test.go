package rping_test

import (
	"bytes"
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rping"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is the result of a run.
type outcome struct {
	out, log string
	err      error
}

func run(ctx context.Context, o rping.Options) outcome {
	var out, log bytes.Buffer
	o.Out, o.Log = &out, &log
	err := rping.Run(ctx, o)
	return outcome{out.String(), log.String(), err}
}

// server is a server that waits for a client.
type server struct {
	*toolstest.Server[netip.AddrPort, outcome]
	*toolstest.DroppedClients
}

// serve starts a server on a device of its own.
func serve(t *testing.T, o rping.Options) server {
	t.Helper()
	drops := toolstest.NewDroppedClients()
	if o.Device == nil {
		o.Device = toolstest.Device(t, rnic.Options{})
	}
	return server{toolstest.Serve(t, func(ctx context.Context, listening func(netip.AddrPort)) outcome {
		o.Port, o.Listening, o.Dropped = 0, func(list []netip.AddrPort) { listening(list[0]) }, drops.Add
		return run(ctx, o)
	}), drops}
}

// towards returns options for a client of the server at an address.
func towards(t *testing.T, at netip.AddrPort, o rping.Options) rping.Options {
	o.Client, o.Addr, o.Port = true, at.Addr().String(), int(at.Port())
	if o.Device == nil {
		o.Device = toolstest.Device(t, rnic.Options{})
	}
	return o
}

// puppet is a peer that the test controls.
type puppet struct {
	t    *testing.T
	m    *cm.Manager
	cq   verbs.CQ
	qp   verbs.QP
	mr   verbs.MR // 4 KiB, all access
	conn *cm.Conn
}

func newPuppet(t *testing.T) *puppet {
	t.Helper()
	dev, m := toolstest.Manager(t)
	p := &puppet{t: t, m: m}
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	p.cq, err = dev.CreateCQ(64)
	require.NoError(t, err)
	p.qp, err = pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: p.cq, RecvCQ: p.cq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 64}})
	require.NoError(t, err)
	p.mr, err = pd.RegMR(make([]byte, 4096), verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite)
	require.NoError(t, err)
	return p
}

// receives posts receives at the end of the memory.
func (p *puppet) receives(verbs.QP) error {
	wrs := make([]verbs.RecvWR, 8)
	for i := range wrs {
		wrs[i].SGList = []verbs.SGE{p.mr.SGE(4096-rping.InfoLen, rping.InfoLen)}
	}
	_, err := p.qp.PostRecv(wrs)
	return err
}

func (p *puppet) dial(to netip.AddrPort, private []byte) {
	p.t.Helper()
	var err error
	p.conn, err = p.m.Dial(toolstest.Context(p.t), to, p.qp, cm.DialOptions{Prepare: p.receives, PrivateData: private})
	require.NoError(p.t, err)
}

// listen accepts one connection, in the background.
func (p *puppet) listen(then func()) (at netip.AddrPort, done chan struct{}) {
	p.t.Helper()
	l, err := p.m.Listen(0, cm.ListenOptions{})
	require.NoError(p.t, err)
	done = make(chan struct{})
	ctx := toolstest.Context(p.t)
	go func() {
		defer close(done)
		r, err := l.Accept(ctx)
		if err == nil {
			p.conn, err = r.Accept(ctx, p.qp, cm.AcceptOptions{Prepare: p.receives})
		}
		if err == nil {
			then()
		}
	}()
	return l.Addr(), done
}

func (p *puppet) send(message []byte) {
	_, err := p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: message}})
	if err != nil {
		p.t.Error(err)
	}
}

// advertise sends the address of size bytes at off.
func (p *puppet) advertise(off int, size uint32) {
	p.send(rping.Info{Addr: p.mr.Addr() + uint64(off), RKey: p.mr.RKey(), Size: size}.Append(nil))
}

// receive waits for a message and returns it.
func (p *puppet) receive() rping.Info {
	var wcs [1]verbs.WC
	_, err := p.cq.PollWait(toolstest.Context(p.t), wcs[:])
	if err != nil || wcs[0].Err() != nil {
		p.t.Error(err, wcs[0].Err())
		return rping.Info{}
	}
	info, err := rping.ParseInfo(p.mr.Bytes()[4096-rping.InfoLen:])
	if err != nil {
		p.t.Error(err)
	}
	return info
}

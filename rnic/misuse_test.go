package rnic

import (
	"context"
	"net/netip"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
)

// misuse is a call that must be refused, with its error and its text.
type misuse struct {
	call func() error
	is   error
	says string
}

func (m misuse) check(t *testing.T, name string) {
	t.Helper()
	err := m.call()
	require.ErrorIs(t, err, m.is, name)
	require.ErrorContains(t, err, m.says, name)
	require.True(t, typed(err), "%s: %T", name, err)
}

// err1 adapts a call with a result to one with an error only.
func err1[T any](f func() (T, error)) func() error {
	return func() error { _, err := f(); return err }
}

func TestOpenMisuse(t *testing.T) {
	here := newEnd(t, Options{})
	conn, err := memory.NewLive().Attach(netip.MustParseAddrPort("10.0.0.1:4791"), memory.Options{})
	require.NoError(t, err)
	addr := netip.MustParseAddrPort
	const linux = true
	for name, c := range map[string]struct {
		o     Options
		is    error
		says  string
		linux bool
	}{
		"shards":        {Options{Shards: 257}, verbs.ErrInvalid, "Options.Shards: 257 out of range [0, 256]", false},
		"no shards":     {Options{Shards: -1}, verbs.ErrInvalid, "Options.Shards: -1 out of range", false},
		"nobody serves": {Options{Shards: 2, NoService: true}, verbs.ErrInvalid, "clear NoService", false},
		"one link":      {Options{Shards: 2, hooks: rnichook.Hooks{Conn: conn}}, verbs.ErrInvalid, "Conn is one link", false},
		"portable":      {Options{Shards: 2, Portable: true}, verbs.ErrInvalid, "clear Portable", false},
		"any address":   {Options{Addr: addr("0.0.0.0:4791")}, verbs.ErrInvalid, "Options.Addr: 0.0.0.0 is not a single unicast address", false},
		"any address 6": {Options{Addr: addr("[::]:4791")}, verbs.ErrInvalid, "Options.Addr: :: is not a single unicast address", false},
		"group":         {Options{Addr: addr("224.0.0.1:4791")}, verbs.ErrInvalid, "Options.Addr: 224.0.0.1 is not a single unicast address", false},
		"port only":     {Options{Addr: netip.AddrPortFrom(netip.Addr{}, 5000)}, verbs.ErrInvalid, "Options.Addr: port 5000 without an address", false},
		"buffer":        {Options{RecvBuffer: -2}, verbs.ErrInvalid, "Options.RecvBuffer: -2 out of range [-1, 2147483647]", false},
		"other buffer":  {Options{SendBuffer: -7}, verbs.ErrInvalid, "Options.SendBuffer: -7 out of range", false},
		"list":          {Options{Addrs: "here"}, verbs.ErrInvalid, `Options.Addrs: "here" is not an address`, false},
		"both":          {Options{Addr: addr("127.0.0.1:4791"), Addrs: "127.0.0.1"}, verbs.ErrInvalid, `Options.Addr: 127.0.0.1:4791, and Options.Addrs: "127.0.0.1"`, false},
		"faults":        {Options{Impair: "loss 101%"}, verbs.ErrInvalid, "set faults", false},
		"words":         {Options{Impair: "drop everything"}, verbs.ErrInvalid, `"everything" at byte 5`, false},
		"in use":        {Options{Addr: here.dev.Addr()}, nil, here.dev.Name() + ", a device of this process, has this address and port", false},
		"shards in use": {Options{Addr: here.dev.Addr(), Shards: 2}, nil, "give each device an address or a port of its own", linux},
		"elsewhere":     {Options{Addr: addr("203.0.113.77:4791")}, nil, "no interface of this machine has that address", false},
		"capture":       {Options{Capture: filepath.Join(t.TempDir(), "no", "c.pcapng")}, nil, "start capture", false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.linux {
				needShards(t)
			}
			dev, err := Open(c.o)
			require.Nil(t, dev)
			require.ErrorContains(t, err, "open device")
			require.ErrorContains(t, err, c.says)
			require.True(t, typed(err))
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
		})
	}
	_, err = Open(Options{Addr: here.dev.Addr()})
	require.True(t, link.IsAddrInUse(err))
}

// TestOpenEnvironment checks that values of the environment are checked like options, and that the
// error names the variable.
func TestOpenEnvironment(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{EnvAddr, "localhost", `SOFTRNIC_ADDR: "localhost" is not an address: want for example`},
		{EnvAddr, "10.0.0.1:70000", "SOFTRNIC_ADDR"},
		{EnvAddr, "0.0.0.0", "is not a single unicast address"},
		{EnvImpair, "lose 1%", `"lose" at byte 0`},
		{EnvDebug, "0.0.0.0:80", "SOFTRNIC_DEBUG: debug endpoint \"0.0.0.0:80\": 0.0.0.0 is not a loopback address"},
		{EnvLog, "loud", `SOFTRNIC_LOG: "loud": want off, error, warn, info or debug`},
		{EnvLink, "nogsx", `SOFTRNIC_LINK="nogsx": unknown word "nogsx"`},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			_, err := Open(Options{})
			require.ErrorContains(t, err, c.says)
			require.True(t, typed(err))
		})
	}
	if runtime.GOOS != "linux" {
		return // there is one loopback address
	}
	ours, program := ownaddr.Host(47).String()+":5001", netip.AddrPortFrom(ownaddr.Host(48), 5002)
	t.Setenv(EnvAddr, ours)
	t.Setenv(EnvImpair, "drop 3rd ACK")
	dev, err := Open(Options{})
	require.NoError(t, err)
	require.Equal(t, ours, dev.Addr().String())
	require.Equal(t, "drop 3rd ACK", dev.Impair())
	require.NoError(t, dev.Close())
	dev, err = Open(Options{Addr: program, Impair: "loss 1%"})
	require.NoError(t, err)
	require.Equal(t, program, dev.Addr(), "what the program says goes first")
	require.Equal(t, "loss 1%", dev.Impair())
	require.NoError(t, dev.Close())
}

// TestForeignObjects passes objects of one device or domain to another.
func TestForeignObjects(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	other, err := a.dev.AllocPD()
	require.NoError(t, err)
	srq, err := other.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1})
	require.NoError(t, err)
	theirSRQ, err := b.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1})
	require.NoError(t, err)
	ud := a.newQPInState(t, verbs.UD, verbs.StateRTS)
	foreign, err := other.CreateAH(verbs.AHAttr{DGID: gid("127.0.0.1")})
	require.NoError(t, err)
	gone := a.handle(t, b.dev)
	require.NoError(t, gone.Close())
	create := func(init verbs.QPInitAttr) func() error {
		return err1(func() (verbs.QP, error) { return a.pd.CreateQP(init) })
	}
	send := func(ah verbs.AH) func() error {
		return err1(func() (int, error) {
			return ud.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, AH: ah, RemoteQPN: 5}})
		})
	}
	for name, m := range map[string]misuse{
		"send CQ of another device":    {create(verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: a.cq}), verbs.ErrInvalid, "SendCQ must be a completion queue of this device"},
		"receive CQ of another device": {create(verbs.QPInitAttr{Type: verbs.RC, SendCQ: a.cq, RecvCQ: b.cq}), verbs.ErrInvalid, "RecvCQ must be a completion queue of this device"},
		"no CQ":                        {create(verbs.QPInitAttr{Type: verbs.RC}), verbs.ErrInvalid, "SendCQ must be"},
		"both kinds of signaling":      {create(verbs.QPInitAttr{Type: verbs.RC, SendCQ: a.cq, RecvCQ: a.cq, SelectiveSignaling: true, SignalAll: true}), verbs.ErrInvalid, "exclude each other"},
		"no type":                      {create(verbs.QPInitAttr{SendCQ: a.cq, RecvCQ: a.cq}), verbs.ErrUnsupported, "queue pair type QPType(0)"},
		"SRQ of another domain":        {create(verbs.QPInitAttr{Type: verbs.RC, SendCQ: a.cq, RecvCQ: a.cq, SRQ: srq}), verbs.ErrDomain, "create both in one protection domain"},
		"SRQ of another device":        {create(verbs.QPInitAttr{Type: verbs.RC, SendCQ: a.cq, RecvCQ: a.cq, SRQ: theirSRQ}), verbs.ErrDomain, "create both in one protection domain"},
		"negative size":                {create(verbs.QPInitAttr{Type: verbs.RC, SendCQ: a.cq, RecvCQ: a.cq, Cap: verbs.QPCap{MaxSendWR: -1}}), verbs.ErrLimit, "MaxSendWR is -1: want 0 to 32768"},
		"AH of another domain":         {send(foreign), verbs.ErrDomain, "the address handle belongs to another protection domain"},
		"AH of another device":         {send(b.handle(t, a.dev)), verbs.ErrDomain, "the address handle belongs to another protection domain"},
		"AH that is gone":              {send(gone), verbs.ErrClosed, "the address handle is closed"},
		"no AH":                        {send(nil), verbs.ErrInvalid, "a datagram requires an AH of this adapter"},
		"no QPN": {func() error {
			_, err := ud.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, AH: a.handle(t, b.dev)}})
			return err
		}, verbs.ErrInvalid, "remote QPN 0x0: want 1 to 0xffffff"},
	} {
		m.check(t, name)
	}
	require.Equal(t, 2, a.dev.Stats().QPs, "what was refused left nothing behind")
	require.NoError(t, srq.Close())

	good := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, AH: a.handle(t, b.dev), RemoteQPN: 5}
	bad := good
	bad.AH = gone
	n, err := ud.PostSend([]verbs.SendWR{good, good, bad, good})
	require.ErrorIs(t, err, verbs.ErrClosed)
	require.Equal(t, 2, n, "those before the bad one are accepted")
	a.poll1(t)
	a.poll1(t)
}

// TestAfterDestroy calls every method of closed objects.
func TestAfterDestroy(t *testing.T) {
	e := newEnd(t, Options{})
	c, q := e.newCQ(t, 4), e.newQPInState(t, verbs.RC, verbs.StateRTS)
	ch, told := e.newChannel(t, 1, 4)
	require.NoError(t, told[0].Close())
	require.NoError(t, ch.Close())
	require.NoError(t, c.Close())
	require.NoError(t, q.Close())
	pd, err := e.dev.AllocPD()
	require.NoError(t, err)
	require.NoError(t, pd.Close())
	ctx := context.Background()
	wc := make([]verbs.WC, 1)
	for name, call := range map[string]func() error{
		"Poll":                       err1(func() (int, error) { return c.Poll(wc) }),
		"PollWait":                   err1(func() (int, error) { return c.PollWait(ctx, wc) }),
		"Wait":                       func() error { return c.Wait(ctx) },
		"ReqNotify":                  func() error { return c.ReqNotify(false) },
		"CQ with channel, Wait":      func() error { return told[0].Wait(ctx) },
		"CQ with channel, ReqNotify": func() error { return told[0].ReqNotify(false) },
		"CompChannel.Wait":           err1(func() (verbs.CQ, error) { return ch.Wait(ctx) }),
		"CompChannel.CreateCQ":       err1(func() (verbs.CQ, error) { return ch.CreateCQ(1) }),
		"Resize":                     func() error { return c.Resize(2) },
		"CreateQP": err1(func() (verbs.QP, error) {
			return e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: c})
		}),
		"PostSend":  err1(func() (int, error) { return q.PostSend(empty) }),
		"PostRecv":  err1(func() (int, error) { return q.PostRecv(recv0) }),
		"Modify":    func() error { return q.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) },
		"RegMR":     err1(func() (verbs.MR, error) { return pd.RegMR(make([]byte, 1), 0) }),
		"AllocMW":   err1(pd.AllocMW),
		"CreateAH":  err1(func() (verbs.AH, error) { return pd.CreateAH(verbs.AHAttr{DGID: gid("127.0.0.1")}) }),
		"CreateSRQ": err1(func() (verbs.SRQ, error) { return pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1}) }),
	} {
		misuse{call, verbs.ErrClosed, "object is closed"}.check(t, name)
	}
	require.Equal(t, verbs.StateRTS, q.State(), "it is remembered")
	require.NoError(t, c.Close())
	require.NoError(t, q.Close())
}

// TestAfterClose calls every method after the device is closed.
func TestAfterClose(t *testing.T) {
	e := newEnd(t, Options{})
	srq, err := e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1})
	require.NoError(t, err)
	ud := e.newQPInState(t, verbs.UD, verbs.StateRTS)
	ch, _ := e.newChannel(t, 1, 4)
	require.NoError(t, e.dev.Close())
	ctx := context.Background()
	wc := make([]verbs.WC, 1)
	for name, call := range map[string]func() error{
		"AllocPD":              err1(e.dev.AllocPD),
		"CreateCQ":             err1(func() (verbs.CQ, error) { return e.dev.CreateCQ(1) }),
		"CreateCompChannel":    err1(e.dev.CreateCompChannel),
		"CompChannel.Wait":     err1(func() (verbs.CQ, error) { return ch.Wait(ctx) }),
		"CompChannel.CreateCQ": err1(func() (verbs.CQ, error) { return ch.CreateCQ(1) }),
		"AsyncEvent":           err1(func() (verbs.AsyncEvent, error) { return e.dev.AsyncEvent(ctx) }),
		"SetImpair":            func() error { return e.dev.SetImpair("loss 1%") },
		"StartCapture":         func() error { return e.dev.StartCapture(filepath.Join(t.TempDir(), "c.pcapng")) },
		"RegMR":                err1(func() (verbs.MR, error) { return e.pd.RegMR(make([]byte, 1), 0) }),
		"AllocMW":              err1(e.pd.AllocMW),
		"CreateAH":             err1(func() (verbs.AH, error) { return e.pd.CreateAH(verbs.AHAttr{DGID: gid("127.0.0.1")}) }),
		"CreateSRQ":            err1(func() (verbs.SRQ, error) { return e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1}) }),
		"CreateQP": err1(func() (verbs.QP, error) {
			return e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq})
		}),
		"PostSend":     err1(func() (int, error) { return e.qp.PostSend(empty) }),
		"PostRecv":     err1(func() (int, error) { return e.qp.PostRecv(recv0) }),
		"Modify":       func() error { return verbs.ToInit(e.qp, 0) },
		"AttachMcast":  func() error { return ud.AttachMcast(gid("239.0.0.1")) },
		"Poll":         err1(func() (int, error) { return e.cq.Poll(wc) }),
		"PollWait":     err1(func() (int, error) { return e.cq.PollWait(ctx, wc) }),
		"Wait":         func() error { return e.cq.Wait(ctx) },
		"ReqNotify":    func() error { return e.cq.ReqNotify(true) },
		"Resize":       func() error { return e.cq.Resize(9) },
		"SRQ.PostRecv": err1(func() (int, error) { return srq.PostRecv(recv0) }),
		"SRQ.Modify":   func() error { return srq.Modify(verbs.SRQAttr{MaxWR: 2}, verbs.SRQMaxWR) },
		"SRQ.Query":    err1(srq.Query),
	} {
		misuse{call, verbs.ErrClosed, "object is closed"}.check(t, name)
	}
	require.Zero(t, e.dev.Progress())
	require.NoError(t, e.dev.StopCapture())
	require.Equal(t, "PORT_DOWN", e.dev.Inspect().Device.State)
	require.Zero(t, e.dev.nextDeadline())
	e.dev.QueryDevice()
	e.dev.Stats()
	e.qp.Query()
}

package cm_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// inNamespace runs the test that calls it in a process of its own with an empty network
// namespace, where the loopback interface is up, and reports whether this is that process.
func inNamespace(t *testing.T) bool {
	const env = "CM_TEST_NAMESPACE"
	if os.Getenv(env) != "" {
		ip(t, "link set lo up")
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip (Debian: package iproute2)")
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	link := strings.TrimPrefix(os.Getenv("SOFTRNIC_LINK")+",noshm", ",") // the tests are of paths of packets
	c.Env = append(os.Environ(), env+"=1", "SOFTRNIC_LINK="+link)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := c.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skip("needs a network namespace: ", err)
	}
	require.NoError(t, err, "%s", out)
	return false
}

// ip runs ip(8) with the words of args.
func ip(t *testing.T, args string) {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", args, out)
}

func endAt(t *testing.T, addr string) *end {
	return newEndOn(t, rnic.Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(addr), 0)}, cm.Options{})
}

// dialTo dials b's manager from a and returns the error, and the connection's MTU at the
// peer.
func dialTo(t *testing.T, a, b *end, o cm.DialOptions) (verbs.MTU, error) {
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan *cm.Conn, 1)
	go func() {
		defer close(accepted)
		if r, err := l.Accept(soon(t)); err == nil {
			if c, err := r.Accept(soon(t), b.newQP(t, verbs.RC), cm.AcceptOptions{}); err == nil {
				accepted <- c
			}
		}
	}()
	c, err := a.m.Dial(soon(t), l.Addr(), a.newQP(t, verbs.RC), o)
	if err != nil {
		l.Close()
		<-accepted
		return 0, err
	}
	peer := <-accepted
	mtu := peer.Params().MTU
	require.Equal(t, mtu, c.Params().MTU)
	require.NoError(t, c.Disconnect(soon(t), nil))
	return mtu, nil
}

// TestPathMTU checks that, if the MTU of both ports exceeds that of the path and this is known, the
// dialing side selects a smaller one, or refuses the requested one.
func TestPathMTU(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	wide, narrow := endAt(t, "127.1.0.1"), endAt(t, "127.1.0.2")
	mtu, err := dialTo(t, wide, narrow, cm.DialOptions{})
	require.NoError(t, err)
	require.Equal(t, verbs.MTU4096, mtu)

	there, back := endAt(t, "127.1.0.3"), endAt(t, "127.1.0.4")
	ip(t, "route add local 127.1.0.4 dev lo mtu 1500") // from that side only
	for _, dial := range []func() (verbs.MTU, error){
		func() (verbs.MTU, error) { return dialTo(t, there, back, cm.DialOptions{}) },
		func() (verbs.MTU, error) { return dialTo(t, back, there, cm.DialOptions{}) }, // the listener knows
	} {
		mtu, err = dial()
		require.NoError(t, err)
		require.Equal(t, verbs.MTU1024, mtu)
	}
	_, err = dialTo(t, there, back, cm.DialOptions{ConnectOptions: verbs.ConnectOptions{MTU: verbs.MTU2048}})
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.ErrorContains(t, err, "path MTU 2048 to 127.1.0.4, which carries IP packets of 1500 bytes: use MTU 1024 at both ends")

	local, remote := endpointOf(t, there), endpointOf(t, back)
	qp := there.newQP(t, verbs.RC)
	local.QPN = qp.Num()
	require.NoError(t, verbs.Connect(qp, local, remote, verbs.ConnectOptions{}))
	attr, _ := qp.Query()
	require.Equal(t, verbs.MTU1024, attr.PathMTU)
	qp = there.newQP(t, verbs.RC)
	local.QPN = qp.Num()
	require.ErrorIs(t, verbs.Connect(qp, local, remote, verbs.ConnectOptions{MTU: verbs.MTU4096}), verbs.ErrLimit)
}

// TestPathChanges checks that the error of a path that becomes narrower than the queue pair's MTU
// has both sizes, and that a lost path is named.
func TestPathChanges(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, test := range []struct {
		addr, route string
		errno       syscall.Errno
		text        string
	}{
		{"127.1.1.2", "route add local 127.1.1.2 dev lo mtu 1500", syscall.EMSGSIZE,
			"the IP packet has 4140 bytes, the path carries 1500; use a smaller MTU"},
		{"127.1.1.3", "route add unreachable 127.1.1.3 table local", syscall.EHOSTUNREACH, "no route leads there"},
		{"127.1.1.4", "route add blackhole 127.1.1.4 table local", syscall.EINVAL, "blackhole"},
		{"127.1.1.5", "route add prohibit 127.1.1.5 table local", syscall.EACCES, "a firewall or a route forbids it"},
	} {
		a, b := newEnd(t, cm.Options{}), endAt(t, test.addr)
		qp := a.newQP(t, verbs.RC)
		local := endpointOf(t, a)
		local.QPN = qp.Num()
		require.NoError(t, verbs.Connect(qp, local, endpointOf(t, b), verbs.ConnectOptions{}))
		ip(t, test.route)
		mr := a.reg(t, 4096)
		_, err := qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{mr.SGE(0, 4096)}}})
		require.NoError(t, err)
		var wc [1]verbs.WC
		_, err = a.cq.PollWait(soon(t), wc[:])
		require.NoError(t, err)
		require.Equal(t, verbs.WCRetryExcErr, wc[0].Status)
		require.ErrorIs(t, wc[0].Err(), test.errno)
		require.ErrorContains(t, wc[0].Err(), test.text)
		require.Less(t, len(wc[0].Err().Error()), 250)
	}
	a := newEnd(t, cm.Options{})
	_, err := a.m.Dial(soon(t), netip.MustParseAddrPort("192.0.2.1:7"), a.newQP(t, verbs.RC), cm.DialOptions{})
	require.ErrorIs(t, err, syscall.ENETUNREACH)
}

func endpointOf(t *testing.T, e *end) verbs.Endpoint {
	ep, err := verbs.LocalEndpoint(e.dev, e.newQP(t, verbs.RC), 1)
	require.NoError(t, err)
	return ep
}

// TestPathBackChanges checks that refused responses are reported: by a NAK and an event if they
// exceed the path MTU, in the responder's log if nothing can be sent.
func TestPathBackChanges(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, test := range []struct {
		addr   string
		change []string
		status verbs.WCStatus
		text   string
	}{
		{"127.1.2.1", []string{"route add local 127.1.2.1 dev lo mtu 1500"}, verbs.WCRemOpErr, "the path from the peer does not support the MTU"},
		{"127.1.2.2", []string{"rule add pref 2 lookup local", "rule del pref 0", "rule add pref 1 to 127.1.2.2 prohibit"}, verbs.WCRetryExcErr, "its system does not send the replies"},
	} {
		var log bytes.Buffer // written with a lock of the device held, which Close needs
		a := endAt(t, test.addr)
		b := newEndOn(t, rnic.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, cm.Options{})
		qa, qb := a.newQP(t, verbs.RC), b.newQP(t, verbs.RC)
		at, to := endpointOf(t, a), endpointOf(t, b)
		at.QPN, to.QPN = qa.Num(), qb.Num()
		o := verbs.ConnectOptions{Retries: 1, AckTimeout: verbs.AckTimeout(12)}
		require.NoError(t, verbs.Connect(qa, at, to, o))
		require.NoError(t, verbs.Connect(qb, to, at, o))
		mine, theirs := a.reg(t, 8192), b.reg(t, 8192)
		read := func(n int) verbs.WC {
			_, err := qa.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{mine.SGE(0, n)}, RemoteAddr: theirs.Addr(), RKey: theirs.RKey()}})
			require.NoError(t, err)
			var wc [1]verbs.WC
			_, err = a.cq.PollWait(soon(t), wc[:])
			require.NoError(t, err)
			return wc[0]
		}
		before := read(8)
		require.NoError(t, before.Err())
		for _, args := range test.change {
			ip(t, args)
		}
		wc := read(8192)
		require.Equal(t, test.status, wc.Status, wc.Err())
		require.ErrorContains(t, wc.Err(), test.text)
		if test.status == verbs.WCRemOpErr {
			ev, err := b.dev.AsyncEvent(soon(t))
			for err == nil && ev.Type != verbs.EventQPReqErr {
				ev, err = b.dev.AsyncEvent(soon(t))
			}
			require.NoError(t, err)
			require.ErrorIs(t, ev.Failure.Err, syscall.EMSGSIZE)
			require.Equal(t, verbs.StateErr, qb.State())
		}
		require.NoError(t, b.m.Close())
		require.NoError(t, b.dev.Close())
		require.Equal(t, test.status == verbs.WCRetryExcErr, strings.Contains(log.String(), "responses refused by the system"), log.String())
	}
}

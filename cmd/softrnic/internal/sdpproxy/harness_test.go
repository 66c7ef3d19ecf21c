package sdpproxy_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpproxy"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/sdp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a running proxy.
type running struct {
	at    sockets.Addr
	stop  context.CancelFunc
	ended chan struct{}

	totals sdpproxy.Totals // when it has ended
	err    error
	log    toolstest.Buffer
}

// start starts a proxy.
func start(t *testing.T, listen, to sockets.Addr, o sdpproxy.Options) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &running{stop: cancel, ended: make(chan struct{})}
	ready := make(chan net.Addr, 1)
	o.DeviceSource, o.Listen, o.To, o.Log = toolstest.Anywhere, listen, to, &p.log
	o.Listening = func(a net.Addr) { ready <- a }
	go func() {
		defer close(p.ended)
		p.totals, p.err = sdpproxy.Run(ctx, o)
	}()
	t.Cleanup(func() { p.stopAndWait(t) })
	select {
	case a := <-ready:
		at, err := sockets.ParseAddr(sockets.FormatAddr(a))
		require.NoError(t, err)
		p.at = at
	case <-p.ended:
		t.Fatal(p.err)
	}
	return p
}

// stopAndWait ends a proxy.
func (p *running) stopAndWait(t *testing.T) {
	p.stop()
	select {
	case <-p.ended:
		require.NoError(t, p.err)
	case <-time.After(toolstest.HangTimeout):
		t.Error("the proxy does not end")
	}
}

// between starts two proxies between a client, which dials near.at, and a server.
func between(t *testing.T, server net.Addr, o sdp.Options) (near, far *running) {
	t.Helper()
	return betweenPatient(t, server, o, toolstest.HangTimeout)
}

// betweenPatient is between with a dial timeout.
func betweenPatient(t *testing.T, server net.Addr, o sdp.Options, patience time.Duration) (near, far *running) {
	t.Helper()
	to, err := sockets.ParseAddr(sockets.FormatAddr(server))
	require.NoError(t, err)
	each := sdpproxy.Options{SDP: o, DialTimeout: patience}
	far = start(t, sockets.Addr{Network: "sdp"}, to, each)
	near = start(t, sockets.Addr{Network: "tcp", Host: "127.0.0.1"}, far.at, each)
	return near, far
}

// serve accepts connections and handles each.
func serve(t *testing.T, handle func(c *net.TCPConn)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				handle(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr()
}

// dial connects to a proxy.
func (p *running) dial(t testing.TB) *net.TCPConn {
	c, err := net.Dial("tcp", net.JoinHostPort(p.at.Host, portText(p.at)))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(toolstest.HangTimeout)))
	return c.(*net.TCPConn)
}

// requireReset requires that the proxy resets a connection, which may happen before the dial
// returns.
func (p *running) requireReset(t testing.TB) {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort(p.at.Host, portText(p.at)))
	if err == nil {
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(toolstest.HangTimeout)))
		_, err = c.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func portText(p sockets.Addr) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(p.String(), p.Network+":"))
	return port
}

func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

package sdp_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/wiretest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// hang is the time after which a test has failed.
const hang = time.Minute

// soon returns a context that ends after hang.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

// device opens an adapter on the loopback interface.
func device(t testing.TB, o rnic.Options) verbs.Device {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler) // tests cause failures
	dev, err := rnic.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// stack returns a stack on an adapter of its own.
func stack(t testing.TB, ro rnic.Options, o sdp.Options) *sdp.Stack {
	t.Helper()
	s, err := sdp.New(device(t, ro), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// ends are two stacks and a listener at b.
type ends struct {
	a, b *sdp.Stack
	l    *sdp.Listener
	dev  *rnic.Device // b's adapter
	port uint16       // of the listener
}

func newEnds(t testing.TB, ro rnic.Options, o sdp.Options) *ends {
	t.Helper()
	e := &ends{a: stack(t, ro, o)}
	dev := device(t, ro)
	var err error
	e.b, err = sdp.New(dev, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.b.Close()) })
	e.dev = dev.(*rnic.Device)
	port, err := dev.QueryPort(1)
	require.NoError(t, err)
	e.port = port.UDPPort
	e.l, err = e.b.ListenPort(0, 0)
	require.NoError(t, err)
	t.Cleanup(func() { e.l.Close() })
	return e
}

// dial connects a to b until the end of the test.
func (e *ends) dial(t testing.TB) (a, b *sdp.Conn) {
	t.Helper()
	a, b = e.pair(t)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// pair connects a to b.
func (e *ends) pair(t testing.TB) (a, b *sdp.Conn) {
	t.Helper()
	type result struct {
		c   *sdp.Conn
		err error
	}
	accepted := make(chan result, 1)
	go func() {
		c, err := e.l.AcceptSDP()
		accepted <- result{c, err}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	a, err := e.a.DialAddr(ctx, e.addr(), sdp.Dialer{UDPPort: e.port})
	require.NoError(t, err)
	r := <-accepted
	require.NoError(t, r.err)
	return a, r.c
}

func (e *ends) addr() netip.AddrPort { return e.l.Addr().(sdp.Addr).AddrPort }

var _ net.Conn = (*sdp.Conn)(nil)

// designs are all flow controls.
var designs = []sdp.FlowControl{sdp.NIC, sdp.RDMA, sdp.Credit}

// eachFlowControl runs a test with every flow control.
func eachFlowControl(t *testing.T, f func(t *testing.T, o sdp.Options)) {
	for _, d := range designs {
		t.Run(d.String(), func(t *testing.T) { f(t, sdp.Options{FlowControl: d}) })
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		peerProcess()
	}
	wiretest.SkipExceptions("sdp")
	goleak.VerifyTestMain(m)
}

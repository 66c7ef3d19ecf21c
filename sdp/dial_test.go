package sdp_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// TestDialErrors compares the errors of dials with those of package net.
func TestDialErrors(t *testing.T) {
	s := stack(t, rnic.Options{}, sdp.Options{})
	is := func(err error, timeout bool, causes ...error) {
		t.Helper()
		var e *net.OpError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "dial", e.Op)
		require.Equal(t, timeout, e.Timeout(), "%v", err)
		require.NotContains(t, err.Error(), "\n")
		for _, cause := range causes {
			require.ErrorIs(t, err, cause)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.DialContext(ctx, "sdp", silent().String())
	is(err, true, context.DeadlineExceeded)
	require.Regexp(t, "dial sdp "+silent().String()+": (no reply from the adapter at 127.91.91.90:4791 within |no request sent to the adapter at 127.91.91.90:4791: )", err.Error())
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = s.DialContext(ctx, "sdp", silent().String())
	is(err, false, context.Canceled)
	require.ErrorContains(t, err, "no request sent to the adapter at 127.91.91.90:4791: context canceled")
	_, err = s.Dial("sdp", ":7471")
	is(err, false)
	require.ErrorContains(t, err, "missing host; give the peer's adapter, for example 192.0.2.1:7471")
	_, err = s.Dial("sdp", "127.0.0.1")
	is(err, false)
	_, err = s.Dial("udp", "127.0.0.1:1")
	is(err, false, net.UnknownNetworkError("udp"))
	nowhere := sdp.FlowControl(7)
	_, err = s.DialAddr(t.Context(), silent(), sdp.Dialer{FlowControl: &nowhere})
	is(err, false)
	require.ErrorContains(t, err, "FlowControl: FlowControl(7) is none of nic, rdma and credit")

	l, err := s.ListenPort(0, 0)
	require.NoError(t, err)
	to := l.Addr().(sdp.Addr).AddrPort
	require.NoError(t, l.Close())
	_, err = s.DialAddr(t.Context(), to, sdp.Dialer{UDPPort: s.UDPPort()})
	is(err, false, syscall.ECONNREFUSED)
}

// TestDialNamesSilentSide checks that the error names the side without a reply: the adapter, or the program
// behind it.
func TestDialNamesSilentSide(t *testing.T) {
	t.Parallel()
	manager := func(dev verbs.Device, o cm.Options) *cm.Manager {
		m, err := cm.New(dev, o)
		require.NoError(t, err)
		t.Cleanup(func() { m.Close() })
		return m
	}
	dialer := func(o cm.Options) (*sdp.Stack, *cm.Manager) {
		dev := device(t, rnic.Options{})
		m := manager(dev, o)
		s, err := sdp.New(dev, sdp.Options{Manager: m})
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		return s, m
	}
	idle := func(o cm.Options) (at netip.AddrPort, d sdp.Dialer) { // never accepts
		m := manager(device(t, rnic.Options{}), o)
		l, err := m.Listen(0, cm.ListenOptions{PortSpace: cm.SDP})
		require.NoError(t, err)
		return l.Addr(), sdp.Dialer{UDPPort: m.Addr().Port()}
	}
	// until dials, and cancels as soon as an event has happened.
	until := func(s *sdp.Stack, m *cm.Manager, to netip.AddrPort, d sdp.Dialer, happened func(cm.Stats) bool) error {
		ctx, cancel := context.WithCancel(soon(t))
		ended := make(chan error, 1)
		go func() {
			_, err := s.DialAddr(ctx, to, d)
			ended <- err
		}()
		for !happened(m.Stats()) {
			require.NoError(t, ctx.Err())
			runtime.Gosched()
		}
		cancel()
		return <-ended
	}
	s, m := dialer(cm.Options{})
	err := until(s, m, silent(), sdp.Dialer{}, func(s cm.Stats) bool { return s.Sent.REQ > 0 }) // the REQ
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, ": no reply from the adapter at 127.91.91.90:4791 within ")

	s, m = dialer(cm.Options{ResponseTimeout: 67 * time.Millisecond}) // and 15 retransmissions
	to, behind := idle(cm.Options{})
	err = until(s, m, to, behind, func(s cm.Stats) bool { return s.Received.MRA > 0 })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cm.ErrPending)
	require.ErrorContains(t, err, fmt.Sprintf(": no reply from the application behind the adapter at %v:%d within ", to.Addr(), behind.UDPPort))

	to, behind = idle(cm.Options{ServiceTimeout: 4 * time.Millisecond}) // more than expected
	_, err = s.DialAddr(soon(t), to, behind)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	var rejected *cm.RejectError
	require.ErrorAs(t, err, &rejected)
}

// TestDialUnreachable takes the time of all retransmissions.
func TestDialUnreachable(t *testing.T) {
	t.Parallel()
	dev := device(t, rnic.Options{})
	m, err := cm.New(dev, cm.Options{ResponseTimeout: 4 * time.Millisecond, Retries: 1})
	require.NoError(t, err)
	defer m.Close()
	s, err := sdp.New(dev, sdp.Options{Manager: m})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.DialAddr(t.Context(), silent(), sdp.Dialer{})
	require.ErrorIs(t, err, cm.ErrUnreachable)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	var e net.Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Timeout())
	require.NotContains(t, err.Error(), "\n")
}

// TestListenErrors compares the errors of Listen with those of package net, and checks that they
// have a remedy.
func TestListenErrors(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	port := e.l.Addr().(sdp.Addr).Port()
	_, err := e.b.ListenPort(port, 0)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, strconv.Itoa(int(port)))
	p, err := e.b.ListenPacketPort(777)
	require.NoError(t, err)
	defer p.Close()
	_, err = e.b.ListenPacketPort(777)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = e.b.Listen("sdp", "192.0.2.77:80")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.ErrorContains(t, err, "SOFTRNIC_ADDR")
}

// TestDialRefusedBySystem checks that a dial to which the system sends nothing fails at once, with
// a *net.OpError with the system's error, and is not a timeout.
func TestDialRefusedBySystem(t *testing.T) {
	s := stack(t, rnic.Options{}, sdp.Options{})
	for _, to := range []netip.AddrPort{
		netip.MustParseAddrPort("127.91.91.96:7471"), // no adapter
		netip.MustParseAddrPort("192.0.2.1:7471"),    // not from a loopback address
	} {
		_, err := s.DialAddr(t.Context(), to, sdp.Dialer{})
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "dial", op.Op)
		require.False(t, op.Timeout())
		var refused *verbs.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, refused.Err)
		require.ErrorIs(t, err, cm.ErrUnreachable)
		if to.Addr().IsLoopback() {
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		require.Less(t, len(err.Error()), 250)
	}
}

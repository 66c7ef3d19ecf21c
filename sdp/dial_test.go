package sdp_test

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestDialErrors are those of package net.
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
	_, err := s.DialContext(ctx, "sdp", silent.String())
	is(err, true, context.DeadlineExceeded)
	require.ErrorContains(t, err, "dial sdp "+silent.String()+": no answer from the adapter at 127.91.91.90:4791 within ")
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = s.DialContext(ctx, "sdp", silent.String())
	is(err, false, context.Canceled)
	require.ErrorContains(t, err, "the adapter at 127.91.91.90:4791 was not asked: context canceled")
	_, err = s.Dial("sdp", ":7471")
	is(err, false)
	require.ErrorContains(t, err, "no host: say the peer's adapter, for example 192.0.2.1:7471")
	_, err = s.Dial("sdp", "127.0.0.1")
	is(err, false)
	_, err = s.Dial("udp", "127.0.0.1:1")
	is(err, false, net.UnknownNetworkError("udp"))
	nowhere := sdp.Design(7)
	_, err = s.DialAddr(t.Context(), silent, sdp.Dialer{Design: &nowhere})
	is(err, false)
	require.ErrorContains(t, err, "flow control Design(7): it is nic, rdma or credit")

	l, err := s.ListenPort(0, 0)
	require.NoError(t, err)
	to := l.Addr().(sdp.Addr).AddrPort
	require.NoError(t, l.Close())
	_, err = s.DialAddr(t.Context(), to, sdp.Dialer{UDPPort: s.UDPPort()})
	is(err, false, syscall.ECONNREFUSED)
}

// TestDialUnreachable takes the time of all repetitions.
func TestDialUnreachable(t *testing.T) {
	t.Parallel()
	dev := device(t, rnic.Options{})
	m, err := cm.New(dev, cm.Options{ResponseTimeout: 10, Retries: 1}) // 4 ms, once more
	require.NoError(t, err)
	defer m.Close()
	s, err := sdp.New(dev, m, sdp.Options{})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.DialAddr(t.Context(), silent, sdp.Dialer{})
	require.ErrorIs(t, err, cm.ErrUnreachable)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	var e net.Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Timeout())
	require.NotContains(t, err.Error(), "\n")
}

// TestListenErrors are those of package net, and say what to do.
func TestListenErrors(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	port := e.l.Addr().(sdp.Addr).Port()
	_, err := e.b.ListenPort(port, 0)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, strconv.Itoa(int(port)))
	p, err := e.b.ListenPacket(777)
	require.NoError(t, err)
	defer p.Close()
	_, err = e.b.ListenPacket(777)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = e.b.Listen("sdp", "192.0.2.77:80")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.ErrorContains(t, err, "SOFTRNIC_ADDR")
}

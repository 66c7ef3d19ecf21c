package cm_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestUnusable calls every exported function and method with nil, zero and closed handles and with
// arguments out of range: each returns, with an error if it has one.
func TestUnusable(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	closed := func() *cm.Manager {
		dev, err := rnic.Open(rnic.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		m, err := cm.New(dev, cm.Options{})
		require.NoError(t, err)
		require.NoError(t, m.Close())
		return m
	}()
	conn, _ := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
	gone, goneToo := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
	require.NoError(t, gone.Disconnect(soon(t), nil))
	<-goneToo.Done()
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	closedListener, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	require.NoError(t, closedListener.Close())
	ul, err := b.m.ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	closedUD, err := b.m.ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	require.NoError(t, closedUD.Close())

	request, datagrams := answeredRequest(t, a, b, l), answeredDatagrams(t, a, b, ul)
	live := func(v any) misuse.Receiver {
		return misuse.Receiver{Name: "live", Usable: true, Make: func() any { return v }}
	}
	dead := func(name string, v any) misuse.Receiver {
		return misuse.Receiver{Name: name, Make: func() any { return v }}
	}
	s := &misuse.Surface{
		Dir:   ".",
		Funcs: map[string]any{"New": cm.New},
		Types: map[string][]misuse.Receiver{
			"Conn":          {live(conn), dead("ended", gone)},
			"Error":         {live(&cm.Error{Err: cm.ErrClosed})},
			"Listener":      {live(l), dead("closed", closedListener)},
			"Manager":       {live(a.m), dead("closed", closed)},
			"Multicast":     {dead("empty", &cm.Multicast{})},
			"RejectError":   {live(&cm.RejectError{})},
			"Request":       {dead("answered", request)},
			"Stats":         {live(cm.Stats{})},
			"UDListener":    {live(ul), dead("closed", closedUD)},
			"UDRejectError": {live(&cm.UDRejectError{})},
			"UDRequest":     {dead("answered", datagrams)},
		},
		Values: []any{netip.AddrPort{}, netip.MustParseAddrPort("0.0.0.0:0"), netip.MustParseAddr("192.0.2.1"),
			make([]byte, 4096), cm.ListenOptions{Backlog: -1}, cm.ListenOptions{PortSpace: 77}, cm.AcceptOptions{}, cm.DialOptions{}, cm.UDDialOptions{}, cm.UDQueuePair{},
			(*rnic.Device)(nil), cm.Options{Retries: 99}},
		Except: map[string]string{
			"Manager.Close on live":    "ends the manager of this test",
			"Conn.Disconnect on live":  "ends the connection of this test",
			"Conn.Close on live":       "ends the connection of this test",
			"Listener.Close on live":   "ends the listener of this test",
			"UDListener.Close on live": "ends the listener of this test",
		},
		Quiet: map[string]string{
			"Conn.Disconnect": "what has ended is disconnected", "Conn.Close": "what has ended is disconnected",
			"Multicast.Close": "what has ended has left",
			"Listener.Close":  "may be called again", "UDListener.Close": "may be called again", "Manager.Close": "may be called again",
		},
		Errors: []error{cm.ErrClosed, cm.ErrDisconnected, cm.ErrAnswered, cm.ErrWithdrawn, verbs.ErrInvalid},
	}
	s.Check(t)
}

// answeredRequest returns a request that has been rejected.
func answeredRequest(t *testing.T, a, b *end, l *cm.Listener) *cm.Request {
	dialed := make(chan error, 1)
	go func() {
		_, err := a.dial(t, b, l.Addr(), cm.DialOptions{})
		dialed <- err
	}()
	r, err := l.Accept(soon(t))
	require.NoError(t, err)
	require.NoError(t, r.Reject(0, nil))
	require.Error(t, <-dialed)
	return r
}

// answeredDatagrams returns a request for datagrams that has been rejected.
func answeredDatagrams(t *testing.T, a, b *end, l *cm.UDListener) *cm.UDRequest {
	dialed := make(chan error, 1)
	go func() {
		_, err := a.m.DialUD(soon(t), l.Addr(), cm.UDDialOptions{UDPPort: b.m.Addr().Port()})
		dialed <- err
	}()
	r, err := l.Accept(soon(t))
	require.NoError(t, err)
	require.NoError(t, r.Reject(0, nil))
	require.Error(t, <-dialed)
	return r
}

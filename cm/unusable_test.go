package cm_test

import (
	"net/netip"
	"testing"
	"time"

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
			make([]byte, 4096), cm.ListenOptions{Backlog: -1}, cm.ListenOptions{PortSpace: 77}, cm.AcceptOptions{}, cm.DialOptions{}, cm.UDDialOptions{}, cm.UDQueuePair{}, cm.ExternalQP{},
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

// TestUnusedOptions checks that options that do not apply to the type of queue pair, or to the
// accepting side, have no effect.
func TestUnusedOptions(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	unused := verbs.ConnectOptions{AckTimeout: 9 * time.Hour, Retries: 99, RNRRetries: 99, RNRDelay: -1, MaxRdAtomic: 999, MaxDestRdAtomic: -9}
	for name, c := range map[string]struct {
		typ              verbs.QPType
		dialing, accepts verbs.ConnectOptions
	}{
		"plain UC":          {typ: verbs.UC},
		"RC's to UC":        {verbs.UC, unused, unused},
		"an acceptor's MTU": {typ: verbs.RC, accepts: verbs.ConnectOptions{MTU: 99}},
	} {
		t.Run(name, func(t *testing.T) {
			accepted := make(chan error, 1)
			qb := b.newQP(t, c.typ)
			go func() {
				r, err := l.Accept(soon(t))
				if err == nil {
					_, err = r.Accept(soon(t), qb, cm.AcceptOptions{ConnectOptions: c.accepts})
				}
				accepted <- err
			}()
			qa := a.newQP(t, c.typ)
			_, err := a.m.Dial(soon(t), l.Addr(), qa, cm.DialOptions{ConnectOptions: c.dialing, UDPPort: b.dev.Addr().Port()})
			require.NoError(t, err)
			require.NoError(t, <-accepted)
			if c.typ == verbs.UC {
				for _, q := range []verbs.QP{qa, qb} {
					got, _ := q.Query()
					require.Equal(t, verbs.AccessRemoteWrite, got.AccessFlags)
					require.Zero(t, got.MaxRdAtomic)
				}
			}
		})
	}
}

package rdm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

// manager opens a connection manager for a device.
func manager(t *testing.T, dev verbs.Device) *cm.Manager {
	m, err := cm.New(dev, cm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

// TestServeAddr passes the address of an endpoint by SIDR, and messages by that address.
func TestServeAddr(t *testing.T) {
	ctx := guarded(t)
	here, there := device(t, ""), device(t, "")
	e, peer := endpointOn(t, here, rdm.Options{}), endpointOn(t, there, rdm.Options{})
	l, err := manager(t, there).ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- peer.ServeAddr(serving, l) }()

	m := manager(t, here)
	to := cm.UDDialOptions{UDPPort: there.Addr().Port()}
	for range 2 { // Serve replies to any number of requests
		addr, err := rdm.Resolve(ctx, m, l.Addr(), to)
		require.NoError(t, err)
		require.Equal(t, peer.Addr(), addr)
	}
	addr, err := rdm.Resolve(ctx, m, l.Addr(), to)
	require.NoError(t, err)
	p, err := e.Dial(ctx, addr)
	require.NoError(t, err)
	require.NoError(t, p.Send(ctx, []byte("hello")))
	buf := make([]byte, peer.MaxMessage())
	n, _, err := peer.Recv(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "hello", string(buf[:n]))

	stop()
	require.ErrorIs(t, <-served, context.Canceled)
	require.NoError(t, l.Close())
	_, err = rdm.Resolve(ctx, m, l.Addr(), to)
	var refused *cm.UDRejectError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, peer.ServeAddr(ctx, l), cm.ErrClosed)
}

// TestResolveForeign refuses a queue pair that belongs to no endpoint.
func TestResolveForeign(t *testing.T) {
	ctx := guarded(t)
	here, there := device(t, ""), device(t, "")
	l, err := manager(t, there).ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	pd, err := there.AllocPD()
	require.NoError(t, err)
	cq, err := there.CreateCQ(1)
	require.NoError(t, err)
	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1}})
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QP: qp}, PrivateData: []byte("no endpoint")})
		}
		accepted <- err
	}()
	_, err = rdm.Resolve(ctx, manager(t, here), l.Addr(), cm.UDDialOptions{UDPPort: there.Addr().Port()})
	require.NoError(t, <-accepted)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "responder is not an rdm endpoint")
}

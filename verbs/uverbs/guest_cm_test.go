//go:build interop && linux

package uverbs

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// newManager returns the connection manager of an end.
func (e *end) newManager(t *testing.T) *cm.Manager {
	t.Helper()
	m, err := cm.New(e.dev, cm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// connectByCM connects two ends by RDMA-CM with private data in both directions.
func connectByCM(t *testing.T, a, b *end) (dialed, accepted *cm.Conn) {
	t.Helper()
	server, client := b.newManager(t), a.newManager(t)
	l, err := server.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		r, err := l.Accept(soon(t))
		if err == nil {
			accepted, err = r.Accept(soon(t), b.qp, cm.AcceptOptions{PrivateData: append([]byte("reply to "), r.PrivateData()[:7]...)})
		}
		done <- err
	}()
	dialed, err = client.Dial(soon(t), l.Addr(), a.qp, cm.DialOptions{PrivateData: []byte("request")})
	require.NoError(t, err)
	require.NoError(t, <-done)
	return dialed, accepted
}

// TestConnections connects queue pairs by the kernel's connection manager, and ends connections from
// either side.
func TestConnections(t *testing.T) {
	for _, server := range []bool{false, true} {
		a, b := newEnd(t, verbs.RC), newEnd(t, verbs.RC)
		dialed, accepted := connectByCM(t, a, b)
		require.Equal(t, "reply to request", string(dialed.PrivateData()[:16]))
		require.Equal(t, b.qp.Num(), dialed.Params().QPN)
		require.Equal(t, a.qp.Num(), accepted.Params().QPN)
		require.Equal(t, dialed.RemoteAddr(), accepted.LocalAddr())
		require.Equal(t, dialed.LocalAddr(), accepted.RemoteAddr())
		require.Positive(t, dialed.Params().ResponderResources)

		b.recv(t, 1, 0, 100)
		copy(a.mr.Bytes(), "through a connection of the kernel")
		a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 34)}})
		require.NoError(t, wcErr(a.next(t)))
		require.EqualValues(t, 34, b.next(t).ByteLen)
		require.Equal(t, a.mr.Bytes()[:34], b.mr.Bytes()[:34])
		b.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{b.mr.SGE(200, 34)}, RemoteAddr: a.mr.Addr(), RKey: a.mr.RKey()})
		require.NoError(t, wcErr(b.next(t)))

		b.recv(t, 2, 0, 100) // flushed by the end
		first, second := dialed, accepted
		if server {
			first, second = accepted, dialed
		}
		require.NoError(t, first.Disconnect(soon(t), nil))
		require.ErrorIs(t, first.Err(), cm.ErrClosed)
		select {
		case <-second.Done():
		case <-soon(t).Done():
			t.Fatal("the peer's end has not come")
		}
		require.ErrorIs(t, second.Err(), cm.ErrDisconnected)
		require.Equal(t, verbs.WCWRFlushErr, b.next(t).Status)
		require.NoError(t, second.Close())
		require.NoError(t, first.Close(), "twice is safe")
	}
}

func wcErr(wc verbs.WC) error { return wc.Err() }

// TestConnectionRefusals dials listeners that reject, ports without one, and addresses without a host.
func TestConnectionRefusals(t *testing.T) {
	a, b := newEnd(t, verbs.RC), newEnd(t, verbs.RC)
	server, client := b.newManager(t), a.newManager(t)
	l, err := server.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	_, err = server.Listen(l.Addr().Port(), cm.ListenOptions{})
	require.ErrorIs(t, err, cm.ErrInUse)

	rejected := make(chan error, 1)
	go func() {
		r, err := l.Accept(soon(t))
		if err == nil {
			err = r.Reject(0, []byte("not today"))
		}
		rejected <- err
	}()
	_, err = client.Dial(soon(t), l.Addr(), a.qp, cm.DialOptions{})
	require.NoError(t, <-rejected)
	var rejection *cm.RejectError
	require.ErrorAs(t, err, &rejection)
	require.Equal(t, cm.ConsumerReject, rejection.Reason)
	require.Equal(t, "not today", string(rejection.PrivateData[:9]))

	require.NoError(t, l.Close())
	_, err = l.Accept(soon(t))
	require.ErrorIs(t, err, cm.ErrClosed)
	_, err = client.Dial(soon(t), l.Addr(), newEnd(t, verbs.RC).qp, cm.DialOptions{})
	require.ErrorAs(t, err, &rejection)
	require.Equal(t, cm.InvalidServiceID, rejection.Reason)

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = client.Dial(ctx, netip.MustParseAddrPort("192.0.2.77:4791"), newEnd(t, verbs.RC).qp, cm.DialOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	for says, o := range map[string]cm.DialOptions{
		"limit 56":      {PrivateData: make([]byte, 57)},
		"UDP port 4792": {UDPPort: 4792},
	} {
		_, err = client.Dial(soon(t), l.Addr(), a.qp, o)
		require.ErrorContains(t, err, says)
	}
	_, err = server.ListenUD(0, cm.ListenOptions{})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	_, err = client.DialExternal(soon(t), l.Addr(), cm.ExternalQP{Num: 5, Type: verbs.RC}, cm.DialOptions{})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	ended, err := cm.New(newEnd(t, verbs.RC).dev, cm.Options{})
	require.NoError(t, err)
	require.NoError(t, ended.Close())
	_, err = ended.Dial(soon(t), l.Addr(), a.qp, cm.DialOptions{})
	require.ErrorIs(t, err, cm.ErrClosed)
}

// TestConnectionOfClosedManager closes a manager with a waiting Accept, a queued request and a
// connection.
func TestConnectionOfClosedManager(t *testing.T) {
	a, b, c := newEnd(t, verbs.RC), newEnd(t, verbs.RC), newEnd(t, verbs.RC)
	server, err := cm.New(b.dev, cm.Options{})
	require.NoError(t, err)
	l, err := server.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	client := a.newManager(t)
	accepted := make(chan *cm.Conn, 1)
	go func() {
		r, err := l.Accept(soon(t))
		if err == nil {
			conn, _ := r.Accept(soon(t), b.qp, cm.AcceptOptions{})
			accepted <- conn
		}
	}()
	conn, err := client.Dial(soon(t), l.Addr(), a.qp, cm.DialOptions{})
	require.NoError(t, err)
	theirs := <-accepted
	waiting := make(chan error, 1)
	go func() {
		other, err := cm.New(c.dev, cm.Options{})
		if err == nil {
			defer other.Close()
			_, err = other.Dial(soon(t), l.Addr(), c.qp, cm.DialOptions{}) // never accepted
		}
		waiting <- err
	}()
	r, err := l.Accept(soon(t))
	require.NoError(t, err)
	require.NoError(t, server.Close())
	require.ErrorIs(t, theirs.Err(), cm.ErrClosed)
	require.Error(t, <-waiting)
	select {
	case <-conn.Done():
	case <-soon(t).Done():
		t.Fatal("the end has not come")
	}
	_, err = r.Accept(soon(t), newEnd(t, verbs.RC).qp, cm.AcceptOptions{})
	require.ErrorIs(t, err, cm.ErrClosed)
	_, err = l.Accept(soon(t))
	require.ErrorIs(t, err, cm.ErrClosed)
}

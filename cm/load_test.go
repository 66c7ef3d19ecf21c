package cm_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// serve accepts requests until the listener is closed, each in its own goroutine, and returns the
// connections.
func (e *end) serve(t testing.TB, l *cm.Listener, each func(*cm.Conn)) (stop func()) {
	t.Helper()
	ctx := soon(t)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			r, err := l.Accept(ctx)
			if err != nil {
				return
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				qp, err := e.pd.CreateQP(smallQP(e, r.Transport))
				if err != nil {
					_ = r.Reject(cm.NoResources, nil)
					return
				}
				c, err := r.Accept(ctx, qp, cm.AcceptOptions{})
				if err != nil {
					_ = qp.Close()
					return
				}
				each(c)
			}()
		}
	}()
	return func() {
		require.NoError(t, l.Close())
		wg.Wait()
	}
}

func smallQP(e *end, typ verbs.QPType) verbs.QPInitAttr {
	return verbs.QPInitAttr{Type: typ, SendCQ: e.cq, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}}
}

// TestThousandAtOnce establishes and closes a thousand connections at once.
func TestThousandAtOnce(t *testing.T) {
	const many = 1000
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	var accepted, ended atomic.Int32
	stop := b.serve(t, l, func(c *cm.Conn) {
		accepted.Add(1)
		<-c.Done()
		if errors.Is(c.Err(), cm.ErrDisconnected) {
			ended.Add(1)
		}
		_ = c.QP().Close()
	})
	ctx := soon(t)
	conns := make([]*cm.Conn, many)
	var wg sync.WaitGroup
	for i := range conns {
		qp, err := a.pd.CreateQP(smallQP(a, verbs.RC))
		require.NoError(t, err)
		wg.Go(func() {
			c, err := a.m.Dial(ctx, l.Addr(), qp, cm.DialOptions{UDPPort: b.m.Addr().Port()})
			if err != nil {
				t.Error(err)
				return
			}
			conns[i] = c
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	require.EqualValues(t, many, a.m.Stats().Connected)
	require.EqualValues(t, many, a.m.Stats().Connections)
	for _, c := range conns {
		wg.Go(func() {
			if err := c.Disconnect(ctx, nil); err != nil {
				t.Error(err)
			}
			_ = c.QP().Close()
		})
	}
	wg.Wait()
	stop()
	require.EqualValues(t, many, accepted.Load())
	require.EqualValues(t, many, ended.Load())
	for _, m := range []*cm.Manager{a.m, b.m} {
		s := m.Stats()
		require.Equal(t, s.TimeWait, s.Connections, "the others are gone")
		require.Zero(t, s.HalfOpen)
	}
}

// TestOneAfterTheOther establishes and closes hundreds of connections sequentially. It checks their
// number and logs the rate.
func TestOneAfterTheOther(t *testing.T) {
	const many = 300
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	stop := b.serve(t, l, func(c *cm.Conn) {
		<-c.Done()
		_ = c.QP().Close()
	})
	ctx := soon(t)
	for range many {
		dialAndClose(t, ctx, a, b, l)
	}
	stop()
	require.EqualValues(t, many, a.m.Stats().Connected)
	require.EqualValues(t, many, b.m.Stats().Connected)
}

// dialAndClose establishes and closes one connection.
func dialAndClose(t testing.TB, ctx context.Context, a, b *end, l *cm.Listener) {
	qp, err := a.pd.CreateQP(smallQP(a, verbs.RC))
	require.NoError(t, err)
	c, err := a.m.Dial(ctx, l.Addr(), qp, cm.DialOptions{UDPPort: b.m.Addr().Port()})
	require.NoError(t, err)
	require.NoError(t, c.Disconnect(ctx, nil))
	require.NoError(t, qp.Close())
}

// BenchmarkConnect establishes and closes connections sequentially.
func BenchmarkConnect(b *testing.B) {
	x, y := newEnd(b, cm.Options{}), newEnd(b, cm.Options{})
	l, err := y.m.Listen(0, cm.ListenOptions{})
	require.NoError(b, err)
	stop := y.serve(b, l, func(c *cm.Conn) {
		<-c.Done()
		_ = c.QP().Close()
	})
	ctx := soon(b)
	for b.Loop() {
		dialAndClose(b, ctx, x, y, l)
	}
	stop()
}

package rnic

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
)

func TestEventCQErr(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	c := b.newCQ(t, 2)
	b.qp = b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: c})
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{Retries: 1})
	for i := range 5 {
		b.recv(t, uint64(i), 0, 0)
	}
	for range 3 {
		a.post(t, empty[0])
		a.poll1(t)
	}
	ev := b.event(t, verbs.EventCQErr)
	require.Same(t, c, ev.CQ)
	require.Contains(t, ev.Failure.String(), "completion queue of 2 overran")
	ev = b.event(t, verbs.EventQPFatal)
	require.Same(t, b.qp, ev.QP)
	require.Contains(t, ev.Failure.String(), "create one with the depth of all queues")
	require.Equal(t, verbs.StateErr, b.qp.State())

	for id := range uint64(2) {
		require.Equal(t, id, nextOf(t, c).WRID, "completions before the overrun are kept")
	}
	_, err := c.Poll(make([]verbs.WC, 1))
	require.ErrorIs(t, err, verbs.ErrCQOverrun)
	_, err = c.PollWait(context.Background(), make([]verbs.WC, 1))
	require.ErrorIs(t, err, verbs.ErrCQOverrun)
	require.ErrorIs(t, c.Wait(context.Background()), verbs.ErrCQOverrun)
	require.ErrorIs(t, c.Resize(100), verbs.ErrCQOverrun, "what is lost stays lost")
	_, err = b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c})
	require.ErrorIs(t, err, verbs.ErrCQOverrun, "it would lose all of its completions")
	require.ErrorContains(t, err, "create a deeper one")

	a.post(t, empty[0])
	require.Equal(t, verbs.WCRetryExcErr, a.next(t).Status)
	require.NoError(t, b.qp.Close())
	require.NoError(t, c.Close())
}

// TestEventCQErrOfRequester checks that a requester fails if its own completions are lost.
func TestEventCQErrOfRequester(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	c := a.newCQ(t, 1)
	a.qp = a.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: a.cq})
	connect(t, a.dev, a.qp, b.dev, b.qp)
	for range 2 {
		a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite})
	}
	require.Same(t, c, a.event(t, verbs.EventCQErr).CQ)
	require.Same(t, a.qp, a.event(t, verbs.EventQPFatal).QP)
	require.Equal(t, verbs.StateErr, a.qp.State())
}

func TestEventQPReqErr(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{Access: verbs.AccessRemoteRead})
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	require.Equal(t, verbs.WCRemInvReqErr, a.next(t).Status)
	ev := b.event(t, verbs.EventQPReqErr)
	require.Same(t, b.qp, ev.QP)
	require.Contains(t, ev.Failure.String(), "does not permit remote writes")
	require.Equal(t, verbs.StateErr, b.qp.State())
}

func TestEventQPAccessErr(t *testing.T) {
	a, b := pair(t, Options{})
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey() ^ 1})
	require.Equal(t, verbs.WCRemAccessErr, a.next(t).Status)
	ev := b.event(t, verbs.EventQPAccessErr)
	require.Same(t, b.qp, ev.QP)
	require.Equal(t, b.mr.RKey()^1, ev.Failure.Key)
	require.Equal(t, verbs.StateErr, b.qp.State())
}

func TestEventCommEst(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	ea, err := verbs.LocalEndpoint(a.dev, a.qp, 1)
	require.NoError(t, err)
	eb, err := verbs.LocalEndpoint(b.dev, b.qp, 2)
	require.NoError(t, err)
	require.NoError(t, verbs.ToInit(b.qp, 0))
	require.NoError(t, b.qp.Modify(verbs.QPAttr{State: verbs.StateRTR, PathMTU: verbs.MTU1024, RQPSN: 1, DestQPN: a.qp.Num(),
		AV: verbs.AHAttr{DGID: ea.GID, UDPPort: ea.UDPPort}, MaxDestRdAtomic: 1, MinRNRTimer: 1},
		verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN|verbs.AttrMaxDestRdAtomic|verbs.AttrMinRNRTimer))
	b.recv(t, 1, 0, 0)
	require.NoError(t, verbs.Connect(a.qp, ea, eb, verbs.ConnectOptions{MTU: verbs.MTU1024}))
	a.post(t, empty[0])
	require.Same(t, b.qp, b.event(t, verbs.EventCommEst).QP)
	require.EqualValues(t, 1, b.poll1(t).WRID, "messages are received before RTS")
	a.poll1(t)
}

func TestEventSQDrained(t *testing.T) {
	a, b := pair(t, Options{})
	a.post(t, verbs.SendWR{WRID: 1, Opcode: verbs.WRSend}) // waits until the peer posts a receive
	require.NoError(t, a.qp.Modify(verbs.QPAttr{State: verbs.StateSQD}, verbs.AttrState))
	a.post(t, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend})
	attr, _ := a.qp.Query()
	require.True(t, attr.SQDraining)
	err := a.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState)
	require.ErrorIs(t, err, verbs.ErrState)
	require.ErrorContains(t, err, "wait for EventSQDrained")

	b.recv(t, 1, 0, 0)
	b.recv(t, 2, 0, 0)
	require.Same(t, a.qp, a.event(t, verbs.EventSQDrained).QP)
	require.EqualValues(t, 1, a.poll1(t).WRID)
	attr, _ = a.qp.Query()
	require.False(t, attr.SQDraining)
	require.NoError(t, a.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState))
	require.EqualValues(t, 2, a.poll1(t).WRID)

	require.NoError(t, a.qp.Modify(verbs.QPAttr{State: verbs.StateSQD}, verbs.AttrState))
	require.Same(t, a.qp, a.event(t, verbs.EventSQDrained).QP, "of an idle queue at once, and once more")
}

func TestEventLastWQEReached(t *testing.T) {
	e := newEnd(t, Options{})
	srq, err := e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
	require.NoError(t, err)
	q := e.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SRQ: srq})
	require.NoError(t, verbs.ToInit(q, 0))
	_, err = srq.PostRecv(recv0)
	require.NoError(t, err)
	require.NoError(t, q.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState))
	require.Same(t, q, e.event(t, verbs.EventQPLastWQEReached).QP)
	n, err := e.cq.Poll(make([]verbs.WC, 1))
	require.NoError(t, err)
	require.Zero(t, n, "shared receives are not flushed")
}

// fragileConn is a link that fails on request.
type fragileConn struct {
	link.Conn
	broken atomic.Bool
}

var errBroken = errors.New("the wire is cut")

func (c *fragileConn) breakLink() {
	c.broken.Store(true)
	c.Conn.Wake()
}

func (c *fragileConn) err() error {
	if c.broken.Load() {
		return errBroken
	}
	return nil
}

func (c *fragileConn) ReadBatch(r *link.Datagrams) (int, error) {
	if err := c.err(); err != nil {
		return 0, err
	}
	return c.Conn.ReadBatch(r)
}

func (c *fragileConn) WriteBatch(b *link.Batch) error {
	if err := c.err(); err != nil {
		return err
	}
	return c.Conn.WriteBatch(b)
}

func (c *fragileConn) Wait(timeout time.Duration) (bool, error) {
	if err := c.err(); err != nil {
		return false, err
	}
	return c.Conn.Wait(timeout)
}

// TestEventDeviceFatal fails the link of a device: one event is raised, every waiter returns, no
// goroutine spins, and only Close succeeds afterwards.
func TestEventDeviceFatal(t *testing.T) {
	for name, o := range engines {
		for _, by := range []string{"reader", "writer"} {
			t.Run(name+" "+by, func(t *testing.T) {
				conn, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
				require.NoError(t, err)
				wire := &fragileConn{Conn: conn}
				o := o
				o.hooks.Conn = wire
				a, b := newEnd(t, o), newEnd(t, Options{})
				connect(t, a.dev, a.qp, b.dev, b.qp)

				var wg sync.WaitGroup
				for range 3 {
					c := a.newCQ(t, 4)
					wg.Go(func() { assert.ErrorIs(t, c.Wait(context.Background()), errBroken) })
					wg.Go(func() {
						_, err := a.cq.PollWait(context.Background(), make([]verbs.WC, 1))
						assert.ErrorIs(t, err, errBroken)
					})
				}
				for !a.dev.shards[0].token.isAsleep() {
					b.dev.Progress()
				}
				if by == "reader" {
					wire.breakLink()
				} else {
					wire.broken.Store(true)
					a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend}})
				}
				wg.Wait()
				ev := a.event(t, verbs.EventDeviceFatal)
				require.Equal(t, 1, ev.Port)
				require.Contains(t, ev.Failure.String(), errBroken.Error())
				_, err = a.cq.Poll(make([]verbs.WC, 1))
				require.ErrorIs(t, err, errBroken)
				require.ErrorContains(t, err, "close the device and open it again")
				_, err = a.qp.PostSend(empty)
				require.ErrorIs(t, err, errBroken)
				_, err = a.qp.PostRecv(recv0)
				require.ErrorIs(t, err, errBroken)
				_, err = a.dev.AllocPD()
				require.ErrorIs(t, err, errBroken)
				require.ErrorIs(t, a.cq.ReqNotify(false), errBroken)
				port, err := a.dev.QueryPort(1)
				require.NoError(t, err)
				require.Equal(t, verbs.PortDown, port.State)
				require.EqualValues(t, 1, a.dev.Inspect().Counters.LinkDowned)
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				_, err = a.dev.AsyncEvent(ctx)
				require.ErrorIs(t, err, context.Canceled, "one event is enough")
				require.NoError(t, a.dev.Close())
				_, err = a.qp.PostSend(empty)
				require.ErrorIs(t, err, verbs.ErrClosed)
			})
		}
	}
}

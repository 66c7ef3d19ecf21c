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

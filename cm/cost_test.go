package cm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// BenchmarkBlockedPingPong measures half a round trip between two sleeping waiters, with managers
// on both devices and without.
func BenchmarkBlockedPingPong(b *testing.B) {
	for name, managed := range map[string]bool{"managed": true, "bare": false} {
		b.Run(name, func(b *testing.B) {
			x, y := newEndOn(b, rnic.Options{Spin: -1}, cm.Options{}), newEndOn(b, rnic.Options{Spin: -1}, cm.Options{})
			cx, cy := connect(b, x, y, cm.DialOptions{}, cm.AcceptOptions{})
			if !managed {
				require.NoError(b, x.m.Close())
				require.NoError(b, y.m.Close())
				reconnect(b, cx, cy)
			}
			done := make(chan error, 1)
			go func() { done <- bounce(y, cy.QP(), b.N, false) }()
			b.ResetTimer()
			require.NoError(b, bounce(x, cx.QP(), b.N, true))
			require.NoError(b, <-done)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/half")
		})
	}
}

// reconnect connects two queue pairs again without a manager.
func reconnect(t testing.TB, a, b *cm.Conn) {
	pa, pb := a.Params(), b.Params()
	for _, s := range []struct {
		c     *cm.Conn
		qpn   uint32
		other *cm.Conn
	}{{a, pa.QPN, b}, {b, pb.QPN, a}} {
		require.NoError(t, s.c.QP().Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState))
	}
	for _, s := range []struct{ c, other *cm.Conn }{{a, b}, {b, a}} {
		here := verbs.Endpoint{GID: verbs.GIDFromAddr(s.c.LocalAddr().Addr()), QPN: s.c.QP().Num(), PSN: 1, MTU: verbs.MTU1024}
		there := verbs.Endpoint{GID: verbs.GIDFromAddr(s.other.LocalAddr().Addr()), QPN: s.other.QP().Num(), PSN: 1, MTU: verbs.MTU1024,
			UDPPort: s.c.RemoteAdapter().Port()}
		require.NoError(t, verbs.Connect(s.c.QP(), here, there, verbs.ConnectOptions{}))
	}
}

// bounce exchanges messages with blocking waits.
func bounce(e *end, qp verbs.QP, n int, first bool) error {
	ctx := context.Background()
	var wc [4]verbs.WC
	for i := range n {
		if _, err := qp.PostRecv([]verbs.RecvWR{{}}); err != nil {
			return err
		}
		if !first || i > 0 {
			for got := false; !got; {
				k, err := e.cq.PollWait(ctx, wc[:])
				if err != nil {
					return err
				}
				for _, w := range wc[:k] {
					if err := w.Err(); err != nil {
						return err
					}
					got = got || w.Opcode.IsRecv()
				}
			}
		}
		if _, err := qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend}}); err != nil {
			return err
		}
	}
	return nil
}

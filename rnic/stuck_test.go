package rnic

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestStuckWaiterIsReported checks that a waiter on a queue into which nothing can complete is
// reported once, in the log, in the flight recorder and in the description of the queue, and that
// other waiters are not.
func TestStuckWaiterIsReported(t *testing.T) {
	for _, c := range []struct {
		name string
		want string // of the hint; "": none
		warn bool   // the log entry is a warning
		make func(t *testing.T, a, b *end) verbs.CQ
	}{
		{"unsignaled request done", "1 requests have succeeded without a completion", true, func(t *testing.T, a, b *end) verbs.CQ {
			wr := writeTo(a, b.mr, 8)
			wr.Flags &^= verbs.SendSignaled
			_, err := a.qp.PostSend([]verbs.SendWR{wr})
			require.NoError(t, err)
			for a.qp.(*queuePair).counters().Unsignaled == 0 {
				pollTimes(a, 1)
			}
			return a.cq
		}},
		{"no queue pair", "no queue pair uses the queue", false, func(t *testing.T, a, _ *end) verbs.CQ { return a.newCQ(t, 1) }},
		{"nothing posted", "no request is outstanding and no receive is posted", true, func(_ *testing.T, a, _ *end) verbs.CQ { return a.cq }},
		{"send queue", "no request is outstanding", false, func(t *testing.T, a, _ *end) verbs.CQ {
			cq := a.newCQ(t, 1)
			a.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq})
			return cq
		}},
		{"receive queue", "no receive is posted", true, func(t *testing.T, a, _ *end) verbs.CQ {
			cq := a.newCQ(t, 1)
			a.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, RecvCQ: cq})
			return cq
		}},
		{"idle after work", "no request is outstanding and no receive is posted", false, func(t *testing.T, a, b *end) verbs.CQ {
			wr := writeTo(a, b.mr, 8)
			wr.Flags = verbs.SendSignaled
			_, err := a.qp.PostSend([]verbs.SendWR{wr})
			require.NoError(t, err)
			a.poll1(t)
			return a.cq
		}},
		{"receive posted", "", false, func(t *testing.T, a, _ *end) verbs.CQ {
			_, err := a.qp.PostRecv([]verbs.RecvWR{{}})
			require.NoError(t, err)
			return a.cq
		}},
		{"shared receive posted", "", false, func(t *testing.T, a, _ *end) verbs.CQ {
			srq, err := a.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1})
			require.NoError(t, err)
			_, err = srq.PostRecv([]verbs.RecvWR{{}})
			require.NoError(t, err)
			cq := a.newCQ(t, 1)
			a.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, RecvCQ: cq, SRQ: srq})
			return cq
		}},
		{"request outstanding", "", false, func(t *testing.T, a, b *end) verbs.CQ {
			require.NoError(t, b.dev.SetImpair("loss 100%"))
			wr := writeTo(a, b.mr, 8)
			wr.Flags &^= verbs.SendSignaled // it may fail
			_, err := a.qp.PostSend([]verbs.SendWR{wr})
			require.NoError(t, err)
			return a.cq
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text logBuffer
			a, b := newEnd(t, Options{Logger: slog.New(slog.NewTextHandler(&text, nil))}), newEnd(t, Options{})
			connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{AckTimeout: 4 * time.Second})
			cq := c.make(t, a, b)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = cq.PollWait(ctx, make([]verbs.WC, 1))
			}()
			for cq.(*completionQueue).blockedCalls.Load() == 0 {
				runtime.Gosched()
			}
			for range 4 {
				a.dev.checkWaiters()
			}
			cancel()
			<-ended
			lines := strings.Count(text.String(), "waits on a completion queue")
			hint := cq.(*completionQueue).info().Hint
			if c.want == "" {
				require.Empty(t, hint)
				require.Zero(t, lines)
				return
			}
			require.Contains(t, hint, c.want)
			require.Equal(t, 1, lines)
			require.Equal(t, c.warn, strings.Contains(text.String(), "WARN"))
			if cq == a.cq {
				info, _ := a.dev.InspectQP(a.qp.Num())
				records := info.History
				require.Contains(t, records[len(records)-1].Text, "a goroutine waits on a completion queue")
			}
		})
	}
}

// TestWaiterWatchEnds checks that the watch runs while there are waiters, and ends afterwards.
func TestWaiterWatchEnds(t *testing.T) {
	e := newEnd(t, Options{})
	cq := e.newCQ(t, 1).(*completionQueue)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = cq.PollWait(ctx, make([]verbs.WC, 1))
	}()
	for !e.dev.waitWatch.Load() {
		runtime.Gosched()
	}
	cancel()
	<-ended
	e.dev.checkWaiters()
	require.False(t, e.dev.waitWatch.Load())
}

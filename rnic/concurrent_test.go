package rnic

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// typed reports whether an error of a call is one of the verbs.
func typed(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return true
	}
	var op *verbs.OpError
	var transition *verbs.TransitionError
	return errors.As(err, &op) || errors.As(err, &transition)
}

// TestEverythingAtOnce calls every method of every object concurrently while messages flow, until
// the device is closed. It checks for races, panics, calls that do not return, and untyped errors.
func TestEverythingAtOnce(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	for name, o := range map[string]Options{"service": {}, "no service": {NoService: true}, "faults": {Impair: "loss 1% seed 3; drop every 7th ACK"}} {
		t.Run(name, func(t *testing.T) { everythingAtOnce(t, o, rounds) })
	}
}

func everythingAtOnce(t *testing.T, o Options, rounds int) {
	a, b := newEnd(t, o), newEnd(t, o)
	b.cq = b.newCQ(t, 1<<16)
	b.qp = b.newQP(t, verbs.RC)
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{AckTimeout: time.Millisecond})
	ls := lines(t, a, b, 2)
	srq, err := b.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 64, MaxSGE: 1, Limit: 3})
	require.NoError(t, err)
	ud := b.newQP(t, verbs.UD)
	require.NoError(t, verbs.ActivateUD(ud, qkey, 0))
	ah := b.handle(t, a.dev)
	capture := filepath.Join(t.TempDir(), "c.pcapng")

	var wg sync.WaitGroup
	var calls atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := func(err error) {
		calls.Add(1)
		assert.True(t, typed(err), "%v", err)
	}
	// always calls f until the device is closed.
	always := func(f func()) {
		wg.Go(func() {
			for !b.dev.isClosed() {
				f()
			}
		})
	}
	poll := func(c verbs.CQ) func() {
		return func() {
			_, err := c.Poll(make([]verbs.WC, 8))
			done(err)
		}
	}
	write := verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 30_000)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
		Flags: verbs.SendSignaled}
	post := func(q verbs.QP, wrs ...verbs.SendWR) func() {
		return func() {
			_, err := q.PostSend(wrs)
			done(err)
		}
	}
	always(post(a.qp, write, write))
	always(post(ls[0].qp[0], empty[0]))
	always(post(b.qp, empty[0]))
	always(post(ud, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: 77, RemoteQKey: qkey}))
	always(func() {
		_, err := ls[0].qp[1].PostRecv(recv0)
		done(err)
		_, err = srq.PostRecv(recv0)
		done(err)
	})
	always(poll(a.cq))
	always(poll(ls[0].cq[0]))
	always(poll(b.cq))
	for range 2 {
		always(func() {
			_, err := ls[0].cq[1].PollWait(ctx, make([]verbs.WC, 4))
			done(err)
			done(ls[1].cq[1].ReqNotify(true))
		})
		wg.Go(func() { done(ls[1].cq[1].Wait(ctx)) })
	}
	always(func() {
		_, err := b.dev.AsyncEvent(ctx)
		done(err)
	})
	ch, told := b.newChannel(t, 1, 64)
	always(func() {
		c, err := ch.Wait(ctx)
		if done(err); err == nil {
			done(c.ReqNotify(false))
			_, err = c.Poll(make([]verbs.WC, c.Len()))
			done(err)
		}
	})
	always(func() { // queues of a channel
		done(told[0].ReqNotify(false))
		q, err := b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: told[0], RecvCQ: told[0], Cap: sizes})
		if done(err); err == nil {
			done(verbs.ToInit(q, verbs.AccessRemote))
			_, err = q.PostRecv(recv0)
			done(err)
			done(q.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState))
			done(q.Close())
		}
		c, err := ch.CreateCQ(10)
		if done(err); err == nil {
			done(c.ReqNotify(true))
			done(ch.Close())
			done(c.Close())
		}
	})
	always(func() { // objects that are created and closed
		mr, err := b.pd.RegMR(make([]byte, 100), allAccess)
		if done(err); err == nil {
			done(mr.Close())
		}
		c, err := b.dev.CreateCQ(10)
		if done(err); err != nil {
			return
		}
		q, err := b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: srq, Cap: sizes})
		if done(err); err == nil {
			done(c.Close())
			done(verbs.ToInit(q, verbs.AccessRemote))
			done(q.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState))
			done(q.Close())
		}
		done(c.Close())
	})
	always(func() { // a connection that is closed and created again
		q := ls[1].qp[1]
		done(q.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState))
		_, err := q.PostRecv(recv0)
		done(err)
		done(q.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState))
		local, err := verbs.LocalEndpoint(b.dev, q, 1)
		done(err)
		remote, err := verbs.LocalEndpoint(a.dev, ls[1].qp[0], 1)
		done(err)
		verbs.Connect(q, local, remote, verbs.ConnectOptions{})
	})
	always(func() {
		b.dev.Inspect()
		b.dev.Stats()
		b.dev.Progress()
		ls[1].qp[1].Query()
		_, err := srq.Query()
		done(err)
		done(srq.Modify(verbs.SRQAttr{Limit: 5}, verbs.SRQLimit))
		done(ls[0].cq[1].Resize(256))
	})
	wg.Go(func() { // controls the sequence
		for i := range rounds {
			switch i % 20 {
			case 3:
				assert.NoError(t, b.dev.SetImpair("duplicate 5% seed 1"))
			case 8:
				assert.NoError(t, b.dev.StartCapture(capture))
			case 12:
				assert.NoError(t, b.dev.SetImpair(""))
			case 15:
				assert.NoError(t, b.dev.StopCapture())
			}
			for before := calls.Load(); calls.Load() < before+100; {
				b.dev.Progress()
			}
		}
		done(b.qp.Close())
		assert.NoError(t, b.dev.Close())
	})
	wg.Wait()
}

// TestJoinWhileDestroyed closes a queue pair that joins a multicast group concurrently. The group
// is empty afterwards.
func TestJoinWhileDestroyed(t *testing.T) {
	e := newEnd(t, Options{})
	group := verbs.GIDFromAddr(netip.MustParseAddr("239.4.7.92"))
	for range 100 {
		q := e.newQP(t, verbs.UD)
		var both sync.WaitGroup
		both.Go(func() { assert.True(t, typed(q.AttachMcast(group))) })
		both.Go(func() { assert.NoError(t, q.Close()) })
		both.Wait()
		require.ErrorIs(t, q.DetachMcast(group), verbs.ErrInvalid)
	}
	require.Empty(t, e.dev.groups.list)
}

// TestLinkChangesDuringWait wraps the link of a device whose waiter sleeps in it.
func TestLinkChangesDuringWait(t *testing.T) {
	eachEngine(t, func(t *testing.T, o Options) {
		a, b := pair(t, o)
		b.recv(t, 1, 0, 8)
		got := make(chan verbs.WC)
		go func() { got <- b.poll1(t) }()
		for !b.dev.shards[0].token.isAsleep() {
			a.dev.Progress()
		}
		require.NoError(t, b.dev.SetImpair("duplicate 50% seed 1"))
		for !b.dev.shards[0].token.isAsleep() {
			a.dev.Progress()
		}
		require.NoError(t, b.dev.StartCapture(filepath.Join(t.TempDir(), "c.pcapng")))
		a.post(t, verbs.SendWR{Opcode: verbs.WRSend})
		require.EqualValues(t, 1, (<-got).WRID)
	})
}

// A process with one processor can do something else while the adapter waits in a
// system call, unless its user has said otherwise.
func TestSetMaxProcs(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	open := func() int {
		d, err := Open(Options{})
		require.NoError(t, err)
		defer d.Close()
		return runtime.GOMAXPROCS(0)
	}
	t.Setenv("GOMAXPROCS", "1")
	require.Equal(t, 1, open())
	t.Setenv("GOMAXPROCS", "")
	require.Equal(t, 2, open())
	runtime.GOMAXPROCS(3)
	require.Equal(t, 3, open(), "enough")
}

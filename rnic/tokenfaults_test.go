package rnic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
)

var (
	errBoom = errors.New("boom")      // value of the panics of a test
	errCut  = errors.New("cable cut") // failure of a link
)

// A gate is a link that holds the holder of the token in a read, or a sleep, in one state of the
// token, and may fail.
type gate struct {
	link.Conn
	token   *token
	state   atomic.Uint32 // tokenState to hold, 0 for none
	entered chan struct{}
	leave   chan struct{} // closed to let it go on
	once    sync.Once
	cut     atomic.Bool
}

func (g *gate) open() { g.once.Do(func() { close(g.leave) }) }

func (g *gate) hold() error {
	if want := tokenState(g.state.Load()); want != tokenFree && g.token.state() == want && g.state.CompareAndSwap(uint32(want), 0) {
		g.entered <- struct{}{}
		<-g.leave
	}
	if g.cut.Load() {
		return errCut
	}
	return nil
}

// ReadBatch implements link.Conn.
func (g *gate) ReadBatch(r *link.Datagrams) (int, error) {
	if err := g.hold(); err != nil {
		return 0, err
	}
	return g.Conn.ReadBatch(r)
}

// Wait implements link.Conn.
func (g *gate) Wait(timeout time.Duration) (bool, error) {
	if err := g.hold(); err != nil {
		return false, err
	}
	return g.Conn.Wait(timeout)
}

// Close implements link.Conn.
func (g *gate) Close() error {
	g.open()
	return g.Conn.Close()
}

// A boomHandler is a program's log handler that panics once it is armed.
type boomHandler struct {
	slog.Handler
	armed atomic.Bool
}

func (h *boomHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *boomHandler) Handle(context.Context, slog.Record) error {
	if h.armed.CompareAndSwap(true, false) {
		panic(errBoom)
	}
	return nil
}

// A boomContext is a program's context, whose Err panics once it is armed.
type boomContext struct {
	context.Context
	armed atomic.Bool
}

func (c *boomContext) Err() error {
	if c.armed.Load() {
		panic(errBoom)
	}
	return c.Context.Err()
}

// A call is a call of the program in another goroutine.
type call struct {
	name string
	end  chan error // its error, or the value of its panic
}

func startCall(name string, f func() error) *call {
	c := &call{name, make(chan error, 1)}
	go func() {
		defer func() {
			if v := recover(); v != nil {
				c.end <- v.(error)
			}
		}()
		c.end <- f()
	}()
	return c
}

func (c *call) result(t *testing.T) error {
	select {
	case err := <-c.end:
		return err
	case <-time.After(patience):
		t.Fatalf("%s does not return", c.name)
		return nil
	}
}

// A tokenWorld is a device whose token is in one state.
type tokenWorld struct {
	t       *testing.T
	a, b    *end // the device, and a peer that sends to it
	gate    *gate
	s       *shard
	log     *boomHandler
	holds   line // of the call that holds the token
	follows line // of the call that follows

	holderCtx *boomContext
	cancel    [2]context.CancelFunc // of holder and follower
	holder    *call                 // nil: the service, the test, or nobody
	follower  *call                 // nil: a follower would change the state
	release   func()                // ends the state
}

func newTokenWorld(t *testing.T, o Options) *tokenWorld {
	network := memory.NewLive()
	w := &tokenWorld{t: t, log: &boomHandler{}, gate: &gate{entered: make(chan struct{}, 1), leave: make(chan struct{})}}
	open := func(addr string, o Options, wrap func(link.Conn) link.Conn) *end {
		conn, err := network.Attach(netip.MustParseAddrPort(addr), memory.Options{})
		require.NoError(t, err)
		return newEnd(t, rnichook.WithHooks(o, rnichook.Hooks{Conn: wrap(conn)}))
	}
	o.Logger = slog.New(w.log)
	w.a = open("192.0.2.1:4791", o, func(c link.Conn) link.Conn { w.gate.Conn, w.gate.token = c, &token{}; return w.gate })
	w.b = open("192.0.2.2:4791", Options{NoService: true}, func(c link.Conn) link.Conn { return c })
	w.s = w.a.dev.shards[0]
	ls := lines(t, w.a, w.b, 2)
	w.holds, w.follows = ls[0], ls[1]
	return w
}

// hold arms the gate. The device's token is known only after Open.
func (w *tokenWorld) hold(state tokenState) {
	w.gate.token = &w.s.token
	w.gate.state.Store(uint32(state))
}

// wait starts a call of Wait, armed for the next completion.
func (w *tokenWorld) wait(c verbs.CQ, ctx context.Context) *call {
	require.NoError(w.t, c.ReqNotify(false))
	return startCall("Wait", func() error { return c.Wait(ctx) })
}

// startFollower starts a waiter while the token is taken.
func (w *tokenWorld) startFollower() {
	var ctx context.Context
	ctx, w.cancel[1] = context.WithCancel(w.t.Context())
	w.s.skipHandovers.Store(1000) // it parks, and does not recall the token
	w.follower = w.wait(w.follows.cq[0], ctx)
	for w.follows.cq[0].(*completionQueue).parkedCount.Load() == 0 {
		runtime.Gosched()
	}
}

// leadIn makes a waiter lead, and holds it in a state.
func (w *tokenWorld) leadIn(state tokenState) {
	w.hold(state)
	w.holderCtx = &boomContext{}
	w.holderCtx.Context, w.cancel[0] = context.WithCancel(w.t.Context())
	w.holder = w.wait(w.holds.cq[0], w.holderCtx)
	<-w.gate.entered
	w.release = w.gate.open
	w.startFollower()
}

// serveIn holds the service in a state.
func (w *tokenWorld) serveIn(state tokenState) {
	w.hold(state)
	w.s.socket.Wake() // perhaps it sleeps since before
	<-w.gate.entered
	w.release = w.gate.open
}

// tokenStates bring the token into each state of the table.
var tokenStates = map[tokenState]struct {
	o     Options
	enter func(w *tokenWorld)
}{
	tokenFree: {Options{NoService: true}, func(w *tokenWorld) { w.release = func() {} }},
	tokenPolling: {Options{NoService: true}, func(w *tokenWorld) {
		w.hold(tokenPolling)
		w.holder = startCall("Poll", func() error {
			_, err := w.holds.cq[0].Poll(make([]verbs.WC, 1))
			return err
		})
		<-w.gate.entered
		w.release = w.gate.open
		w.startFollower()
	}},
	tokenLeading:       {Options{NoService: true}, func(w *tokenWorld) { w.leadIn(tokenLeading) }},
	tokenLeadingAsleep: {Options{NoService: true, Spin: -1}, func(w *tokenWorld) { w.leadIn(tokenLeadingAsleep) }},
	tokenLeadingDisplaced: {Options{Spin: -1}, func(w *tokenWorld) {
		w.leadIn(tokenLeadingAsleep)
		w.s.wakeHolder(w.s.token.displace())
	}},
	tokenServing: {Options{}, func(w *tokenWorld) {
		w.serveIn(tokenServing)
		w.startFollower()
	}},
	tokenServingAsleep: {Options{}, func(w *tokenWorld) { w.serveIn(tokenServingAsleep) }},
	tokenServingRecalled: {Options{}, func(w *tokenWorld) {
		w.serveIn(tokenServingAsleep)
		w.startFollower() // recalls it
	}},
	tokenSeized: {Options{}, func(w *tokenWorld) {
		w.s.seizeToken()
		w.release = w.s.releaseToken
		w.startFollower()
	}},
}

// A tokenFault happens in a state. It returns what becomes of holder and follower: nil if they
// wait on.
type tokenFault struct {
	inject func(w *tokenWorld) (holder, follower error)
	needs  func(w *tokenWorld) bool // nil: always possible
	dead   bool                     // the device cannot be used afterwards
}

func hasFollower(w *tokenWorld) bool { return w.follower != nil }
func hasLeader(w *tokenWorld) bool   { return w.holderCtx != nil }

var tokenFaults = map[string]tokenFault{
	"the holder's context ends": {needs: hasLeader, inject: func(w *tokenWorld) (error, error) {
		w.cancel[0]()
		return context.Canceled, nil
	}},
	"the follower's context ends": {needs: hasFollower, inject: func(w *tokenWorld) (error, error) {
		w.cancel[1]()
		require.ErrorIs(w.t, w.follower.result(w.t), context.Canceled) // while the token is held
		w.follower = nil
		return nil, nil
	}},
	"the holder's context panics": {needs: hasLeader, inject: func(w *tokenWorld) (error, error) {
		w.holderCtx.armed.Store(true)
		w.s.socket.Wake()
		return errBoom, nil
	}},
	"the log handler panics": {
		needs: func(w *tokenWorld) bool { return w.holder != nil && w.s.token.state() != tokenLeadingDisplaced },
		inject: func(w *tokenWorld) (error, error) {
			w.sendTo(w.follows) // the holder handles the packet, releases the lock and logs
			w.log.armed.Store(true)
			w.a.dev.raiseEvent(verbs.AsyncEvent{Type: verbs.EventPortActive})
			return errBoom, nil
		},
	},
	"the holder's queue closes": {needs: hasLeader, inject: func(w *tokenWorld) (error, error) {
		require.NoError(w.t, w.holds.qp[0].Close())
		require.NoError(w.t, w.holds.cq[0].Close())
		return verbs.ErrClosed, nil
	}},
	"the follower's queue closes": {needs: hasFollower, inject: func(w *tokenWorld) (error, error) {
		require.NoError(w.t, w.follows.qp[0].Close())
		require.NoError(w.t, w.follows.cq[0].Close())
		require.ErrorIs(w.t, w.follower.result(w.t), verbs.ErrClosed) // while the token is held
		w.follower = nil
		return nil, nil
	}},
	"the device closes": {dead: true, inject: func(w *tokenWorld) (error, error) {
		require.NoError(w.t, startCall("Close", w.a.dev.Close).result(w.t))
		return verbs.ErrClosed, verbs.ErrClosed
	}},
	"the link fails": {dead: true, inject: func(w *tokenWorld) (error, error) {
		w.gate.cut.Store(true)
		return errCut, errCut
	}},
}

// sendTo makes the peer send a message to the device.
func (w *tokenWorld) sendTo(l line) {
	_, err := l.qp[0].PostRecv(recv0)
	require.NoError(w.t, err)
	_, err = l.qp[1].PostSend(empty)
	require.NoError(w.t, err)
}

// TestFaultInEachState injects each fault in each state of the token. Calls that it ends return
// its error, the others are served, by a newcomer or a packet, and the token is not lost.
func TestFaultInEachState(t *testing.T) {
	for state, how := range tokenStates {
		for name, fault := range tokenFaults {
			t.Run(fmt.Sprintf("%v/%s", state, name), func(t *testing.T) {
				w := newTokenWorld(t, how.o)
				how.enter(w)
				require.Equal(t, state, w.s.token.state())
				defer w.gate.open()
				if fault.needs != nil && !fault.needs(w) {
					w.release()
					return
				}
				w.check(fault)
			})
		}
	}
}

func (w *tokenWorld) check(fault tokenFault) {
	var others []*call
	if fault.dead {
		others = w.startOtherCalls()
	}
	holder, follower := fault.inject(w)
	w.release()
	if fault.dead {
		w.checkDead(append(others, w.holder, w.follower), follower)
		return
	}
	if w.holder != nil {
		if holder == nil && hasLeader(w) {
			w.sendTo(w.holds)
		}
		require.ErrorIs(w.t, w.holder.result(w.t), holder)
	}
	if w.follower != nil {
		w.sendTo(w.follows)
		require.NoError(w.t, w.follower.result(w.t))
	}
	// A newcomer is served.
	cq := w.a.newCQ(w.t, 4)
	l := line{cq: [2]verbs.CQ{cq, w.b.cq}}
	l.qp[0], l.qp[1] = w.a.newQPWith(w.t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq}), w.b.newQP(w.t, verbs.RC)
	connect(w.t, w.a.dev, l.qp[0], w.b.dev, l.qp[1])
	newcomer := w.wait(cq, w.t.Context())
	w.sendTo(l)
	require.NoError(w.t, newcomer.result(w.t))
	if w.a.dev.options.NoService {
		require.Equal(w.t, tokenFree, w.s.token.state())
	}
	require.Zero(w.t, w.s.followers.Load())
	require.Nil(w.t, w.s.leader.Load())
}

// startOtherCalls starts one call of each other kind that blocks.
func (w *tokenWorld) startOtherCalls() []*call {
	ch, cqs := w.a.newChannel(w.t, 1, 4)
	require.NoError(w.t, cqs[0].ReqNotify(false))
	ctx, leads := w.t.Context(), w.s.token.isFree()
	list := []*call{
		startCall("CompChannel.Wait", func() error { _, err := ch.Wait(ctx); return err }),
		startCall("PollWait", func() error { _, err := w.a.cq.PollWait(ctx, make([]verbs.WC, 1)); return err }),
	}
	for !leads && w.a.cq.(*completionQueue).parkedCount.Load() == 0 || leads && !w.s.token.isAsleep() {
		runtime.Gosched()
	}
	return list
}

// checkDead checks that the calls in progress and later ones of each kind return the error of
// the device that is closed or has failed.
func (w *tokenWorld) checkDead(pending []*call, want error) {
	w.s.socket.Wake() // as the failure of a socket does
	for _, c := range pending {
		if c != nil {
			require.ErrorIs(w.t, c.result(w.t), want, c.name)
		}
	}
	ctx, wc := w.t.Context(), make([]verbs.WC, 1)
	for name, f := range map[string]func() error{
		"Poll":      func() error { _, err := w.a.cq.Poll(wc); return err },
		"Wait":      func() error { return w.a.cq.Wait(ctx) },
		"PollWait":  func() error { _, err := w.a.cq.PollWait(ctx, wc); return err },
		"ReqNotify": func() error { return w.a.cq.ReqNotify(false) },
		"PostSend":  func() error { _, err := w.a.qp.PostSend(empty); return err },
		"PostRecv":  func() error { _, err := w.a.qp.PostRecv(recv0); return err },
		"SetImpair": func() error { return w.a.dev.SetImpair("loss 1%") },
		"CreateCQ":  func() error { _, err := w.a.dev.CreateCQ(1); return err },
	} {
		require.ErrorIs(w.t, startCall(name, f).result(w.t), want, name)
	}
	for _, f := range []func() error{w.a.qp.Close, w.a.cq.Close, w.a.dev.Close, w.a.dev.Close} {
		require.NoError(w.t, startCall("Close", f).result(w.t))
	}
	require.Zero(w.t, w.s.followers.Load())
	require.Nil(w.t, w.s.leader.Load())
}

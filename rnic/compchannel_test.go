package rnic

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
)

// newChannel returns a channel with n queues.
func (e *end) newChannel(t testing.TB, n, depth int) (verbs.CompChannel, []verbs.CQ) {
	t.Helper()
	ch, err := e.dev.CreateCompChannel()
	require.NoError(t, err)
	cqs := make([]verbs.CQ, n)
	for i := range cqs {
		cqs[i], err = ch.CreateCQ(depth)
		require.NoError(t, err)
	}
	return ch, cqs
}

// eventOf returns a pending event, or nil.
func eventOf(ch verbs.CompChannel) (verbs.CQ, error) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	c, err := ch.Wait(over)
	if err == context.Canceled {
		return nil, nil
	}
	return c, err
}

func TestCreateCQWithCompChannel(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	ch, cqs := b.newChannel(t, 2, 16)
	b.cq, b.qp = cqs[0], b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: cqs[1], RecvCQ: cqs[0]})
	connect(t, a.dev, a.qp, b.dev, b.qp)
	ctx := soon(t)
	for i := range uint64(100) {
		b.recv(t, i, 0, 64)
		require.NoError(t, b.cq.ReqNotify(false))
		require.Zero(t, b.cq.Len())
		a.post(t, empty[0])
		c, err := ch.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, b.cq, c)
		require.Equal(t, 1, c.Len())
		require.Equal(t, i, b.poll1(t).WRID)
		a.poll1(t)
	}
	err := b.cq.Wait(ctx)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "CQ 2: wait for CQ: invalid argument: its events are reported by completion channel 1; wait there")

	b.recv(t, 7, 0, 64)
	a.post(t, empty[0])
	require.EqualValues(t, 7, nextOf(t, b.cq).WRID, "PollWait needs no channel")
	c, err := eventOf(ch)
	require.NoError(t, err)
	require.Nil(t, c, "and takes no event from it")

	_, err = ch.CreateCQ(0)
	require.ErrorIs(t, err, verbs.ErrLimit)
	err = ch.Close()
	require.ErrorIs(t, err, verbs.ErrBusy)
	require.ErrorContains(t, err, "2 completion queues use the channel")
	require.NoError(t, b.qp.Close())
	for _, c := range cqs {
		require.NoError(t, c.Close())
		require.NoError(t, c.Close(), "twice is safe")
	}
	require.NoError(t, ch.Close())
	require.NoError(t, ch.Close(), "twice is safe")
	_, err = ch.CreateCQ(16)
	require.ErrorIs(t, err, verbs.ErrClosed)
	_, err = ch.Wait(ctx)
	require.ErrorIs(t, err, verbs.ErrClosed)
	require.Equal(t, 1, b.dev.quota.inUse(kindCQ))
}

// slowChannel is a simple model of a channel.
type slowChannel struct {
	armed   [8]armState
	queued  [8]int // completions
	overrun [8]bool
	gone    [8]bool
	list    []int
}

func (s *slowChannel) event(i int) {
	s.armed[i] = disarmed
	if !slices.Contains(s.list, i) {
		s.list = append(s.list, i)
	}
}

// TestCompChannelOrder checks that events are in order, once each, and none is of a destroyed
// queue, for any order of calls.
func TestCompChannelOrder(t *testing.T) {
	const depth = 3
	e := newEnd(t, Options{})
	rapid.Check(t, func(t *rapid.T) {
		var slow slowChannel
		ch, err := e.dev.CreateCompChannel()
		require.NoError(t, err)
		var cqs [len(slow.gone)]verbs.CQ
		for i := range cqs {
			cqs[i], err = ch.CreateCQ(depth)
			require.NoError(t, err)
		}
		which := func(t *rapid.T) int { return rapid.IntRange(0, len(cqs)-1).Draw(t, "queue") }
		t.Repeat(map[string]func(*rapid.T){
			"arm": func(t *rapid.T) {
				i, solicited := which(t), rapid.Bool().Draw(t, "solicited")
				err := cqs[i].ReqNotify(solicited)
				switch {
				case slow.gone[i]:
					require.ErrorIs(t, err, verbs.ErrClosed)
					return
				case slow.overrun[i]:
					slow.event(i)
				case solicited:
					slow.armed[i] = max(slow.armed[i], armedSolicited)
				default:
					slow.armed[i] = armedAny
				}
				require.NoError(t, err)
			},
			"disarm": func(t *rapid.T) {
				i := which(t)
				cqs[i].Disarm()
				slow.armed[i] = disarmed
			},
			"complete": func(t *rapid.T) {
				i, solicited := which(t), rapid.Bool().Draw(t, "solicited")
				if slow.gone[i] {
					return
				}
				cqs[i].(*completionQueue).pushCompletion(&verbs.WC{}, solicited)
				switch {
				case slow.overrun[i]:
				case slow.queued[i] == depth:
					slow.overrun[i] = true
					if slow.armed[i] != disarmed {
						slow.event(i)
					}
				default:
					slow.queued[i]++
					if slow.armed[i] == armedAny || slow.armed[i] == armedSolicited && solicited {
						slow.event(i)
					}
				}
			},
			"poll": func(t *rapid.T) {
				i := which(t)
				if slow.queued[i] > 0 {
					n, err := cqs[i].Poll(make([]verbs.WC, depth))
					require.NoError(t, err)
					require.Equal(t, slow.queued[i], n)
					slow.queued[i] = 0
				}
			},
			"wait": func(t *rapid.T) {
				// A pending event is returned regardless of the context.
				c, err := eventOf(ch)
				if len(slow.list) == 0 {
					require.NoError(t, err)
					require.Nil(t, c)
					return
				}
				i := slow.list[0]
				slow.list = slow.list[1:]
				require.Equal(t, cqs[i], c)
				if slow.overrun[i] {
					require.ErrorIs(t, err, verbs.ErrCQOverrun)
				} else {
					require.NoError(t, err)
				}
			},
			"destroy": func(t *rapid.T) {
				i := which(t)
				require.NoError(t, cqs[i].Close())
				slow.gone[i] = true
				slow.list = slices.DeleteFunc(slow.list, func(k int) bool { return k == i })
			},
			"": func(t *rapid.T) {
				for i, c := range cqs {
					require.Equal(t, slow.queued[i], c.Len())
				}
			},
		})
		for _, c := range cqs {
			require.NoError(t, c.Close())
		}
		require.NoError(t, ch.Close())
		for { // the overruns
			over, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := e.dev.AsyncEvent(over); err != nil {
				return
			}
		}
	})
}

// echo is a server of many connections that replies to each message.
type echo struct {
	qps  map[verbs.CQ]verbs.QP
	left atomic.Int64 // messages to reply to, and replies to be acknowledged
	over func()       // called when none remains, if not nil
}

// serve handles the event of a queue.
func (e *echo) serve(c verbs.CQ) error {
	var wc [4]verbs.WC
	if err := c.ReqNotify(false); err != nil {
		return err
	}
	for c.Len() > 0 {
		n, err := c.Poll(wc[:])
		if err != nil {
			return err
		}
		for i := range n {
			if err := wc[i].Err(); err != nil {
				return err
			}
			if !wc[i].Opcode.IsRecv() {
				continue
			}
			if _, err := e.qps[c].PostRecv(recv0); err != nil {
				return err
			}
			if _, err := e.qps[c].PostSend(empty); err != nil {
				return err
			}
		}
		if e.left.Add(-int64(n)) == 0 && e.over != nil {
			e.over()
		}
	}
	return nil
}

// run serves all connections in one goroutine, from their channel. The queues are armed.
func (e *echo) run(ctx context.Context, ch verbs.CompChannel) error {
	for e.left.Load() > 0 {
		c, err := ch.Wait(ctx)
		switch left := e.left.Load(); {
		case err != nil && left > 0:
			return fmt.Errorf("%d completions are missing: %w", left, err)
		case err != nil:
			return nil
		}
		if err := e.serve(c); err != nil {
			return err
		}
	}
	return nil
}

// TestNoEventIsLost serves many connections in one goroutine by their channel, while the peers
// poll, wait, and arm explicitly. A lost event would block a ping-pong. The server never polls its
// own device.
func TestNoEventIsLost(t *testing.T) {
	rounds, n := 800, 16
	if testing.Short() {
		rounds = 160
	}
	eachEngine(t, func(t *testing.T, o Options) {
		for _, company := range []string{"alone", "poller", "waiter", "handler"} {
			t.Run(company, func(t *testing.T) {
				a, b := newEnd(t, o), newEnd(t, o)
				ctx, cancel := context.WithCancel(soon(t))
				defer cancel()
				ch, cqs := b.newChannel(t, n, 64)
				server := echo{qps: map[verbs.CQ]verbs.QP{}}
				server.left.Store(int64(2 * (rounds / n * n)))
				var players sync.WaitGroup
				stop := driveEngines(o, a, b)
				for i, c := range cqs {
					ours, theirs := b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c}), a.newCQ(t, 64)
					qp := a.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: theirs, RecvCQ: theirs})
					connect(t, a.dev, qp, b.dev, ours)
					_, err := ours.PostRecv(recv0)
					require.NoError(t, err)
					_, err = qp.PostRecv(recv0)
					require.NoError(t, err)
					require.NoError(t, c.ReqNotify(false))
					server.qps[c] = ours
					next := []func([]verbs.WC) (int, error){waiting(ctx, theirs), newArmedPoll(ctx, theirs), polling(theirs)}[i%3]
					players.Go(func() { assert.NoError(t, player{qp, next}.playRounds(rounds/n, true)) })
				}
				var guest sync.WaitGroup
				served, over := context.WithCancel(ctx)
				switch company {
				case "poller":
					guest.Go(func() {
						for ctx.Err() == nil {
							b.cq.Poll(make([]verbs.WC, 1))
							runtime.Gosched()
						}
					})
				case "waiter":
					guest.Go(func() { b.cq.PollWait(ctx, make([]verbs.WC, 1)) })
				case "handler": // polls every other one
					server.over = over
					var offers atomic.Int64
					require.NoError(t, ch.Handle(func(c verbs.CQ) bool {
						return offers.Add(1)%2 == 0 && assert.NoError(t, server.serve(c))
					}))
				}
				require.NoError(t, server.run(served, ch))
				over()
				players.Wait()
				cancel()
				guest.Wait()
				stop()
			})
		}
	})
}

// TestChannelWaiterNeverLeads waits on a channel with a packet in the socket of a device without
// service: the packet stays there.
func TestChannelWaiterNeverLeads(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{NoService: true})
	ch, cqs := b.newChannel(t, 1, 16)
	b.qp = b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: cqs[0], RecvCQ: cqs[0]})
	connect(t, a.dev, a.qp, b.dev, b.qp)
	b.recv(t, 3, 0, 64)
	require.NoError(t, cqs[0].ReqNotify(false))
	a.post(t, empty[0])
	short, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	_, err := ch.Wait(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, b.dev.shards[0].polls.Load(), "nobody else reads the socket")

	for cqs[0].Len() == 0 {
		b.dev.Progress()
	}
	c, err := ch.Wait(soon(t))
	require.NoError(t, err)
	require.Equal(t, cqs[0], c)
}

// TestTakersOfOneChannel shares a channel among goroutines: each event wakes one of them, and all
// return when the channel is closed.
func TestTakersOfOneChannel(t *testing.T) {
	const takers, queues, rounds = 5, 16, 300
	e := newEnd(t, Options{})
	ch, cqs := e.newChannel(t, queues, 4)
	taken := make(chan verbs.CQ, queues)
	var wg sync.WaitGroup
	for range takers {
		wg.Go(func() {
			for {
				c, err := ch.Wait(context.Background())
				if err != nil {
					assert.ErrorIs(t, err, verbs.ErrClosed)
					return
				}
				taken <- c
			}
		})
	}
	for range rounds {
		for _, c := range cqs {
			require.NoError(t, c.ReqNotify(false))
		}
		for _, c := range cqs {
			c.(*completionQueue).pushCompletion(&verbs.WC{}, false)
		}
		got := map[verbs.CQ]bool{}
		for range cqs {
			c := <-taken
			require.False(t, got[c], "taken twice")
			got[c] = true
			n, err := c.Poll(make([]verbs.WC, 2))
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	}
	for _, c := range cqs {
		require.NoError(t, c.Close())
	}
	require.NoError(t, ch.Close())
	wg.Wait()
	require.Empty(t, taken)
}

// TestChannelOfClosedDevice closes a device with waiters: they get the events of flushed requests
// first, then ErrClosed.
func TestChannelOfClosedDevice(t *testing.T) {
	eachEngine(t, func(t *testing.T, o Options) {
		e := newEnd(t, o)
		idle, _ := e.newChannel(t, 3, 16)
		ended := make(chan error, 4)
		for range cap(ended) {
			go func() { _, err := idle.Wait(context.Background()); ended <- err }()
		}
		ch, cqs := e.newChannel(t, 3, 16)
		q := e.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, RecvCQ: cqs[1]})
		connect(t, e.dev, e.qp, e.dev, q)
		_, err := q.PostRecv(recv0)
		require.NoError(t, err)
		for _, c := range cqs {
			require.NoError(t, c.ReqNotify(false))
		}
		require.NoError(t, e.dev.Close())
		for range cap(ended) {
			require.ErrorIs(t, <-ended, verbs.ErrClosed)
		}
		c, err := ch.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, cqs[1], c)
		require.Equal(t, verbs.WCWRFlushErr, nextOf(t, c).Status)
		for range 2 {
			_, err = ch.Wait(context.Background())
			require.ErrorIs(t, err, verbs.ErrClosed)
		}
		_, err = ch.CreateCQ(4)
		require.ErrorIs(t, err, verbs.ErrClosed)
		require.ErrorIs(t, cqs[0].Wait(context.Background()), verbs.ErrClosed)
		require.NoError(t, ch.Close(), "its queues went with the device")
		require.NoError(t, idle.Close())
	})
}

func TestChannelOfFailedDevice(t *testing.T) {
	conn, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
	require.NoError(t, err)
	wire := &fragileConn{Conn: conn}
	e := newEnd(t, Options{hooks: rnichook.Hooks{Conn: wire}})
	ch, cqs := e.newChannel(t, 1, 16)
	require.NoError(t, cqs[0].ReqNotify(false))
	ended := make(chan error, 3)
	for range cap(ended) {
		go func() { _, err := ch.Wait(context.Background()); ended <- err }()
	}
	wire.breakLink()
	for range cap(ended) {
		require.ErrorIs(t, <-ended, errBroken)
	}
	_, err = ch.Wait(context.Background())
	require.ErrorContains(t, err, "close the device and open it again")
	_, err = e.dev.CreateCompChannel()
	require.ErrorIs(t, err, errBroken)
}

// TestChannelOfOverrunQueue checks that a waiter gets an error that names an overrun queue, and
// another one after arming it again.
func TestChannelOfOverrunQueue(t *testing.T) {
	e := newEnd(t, Options{})
	ch, cqs := e.newChannel(t, 2, 1)
	c := cqs[1].(*completionQueue)
	c.pushCompletion(&verbs.WC{}, false)
	require.NoError(t, c.ReqNotify(false))
	c.pushCompletion(&verbs.WC{}, false)
	for range 3 {
		got, err := ch.Wait(soon(t))
		require.Equal(t, cqs[1], got)
		require.ErrorIs(t, err, verbs.ErrCQOverrun)
		require.ErrorContains(t, err, "CQ 3")
		none, err := eventOf(ch)
		require.NoError(t, err)
		require.Nil(t, none)
		require.NoError(t, c.ReqNotify(true))
	}
	require.Equal(t, 1, c.Len())
	require.NoError(t, c.Close())
	none, err := eventOf(ch)
	require.NoError(t, err)
	require.Nil(t, none, "its event went with it")
}

// TestChannelsComeAndGo creates, arms, completes, waits for and closes queues and channels
// concurrently.
func TestChannelsComeAndGo(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	e := newEnd(t, Options{})
	var wg sync.WaitGroup
	for range 3 {
		ch, err := e.dev.CreateCompChannel()
		require.NoError(t, err)
		var makers sync.WaitGroup
		for range 3 {
			makers.Go(func() {
				for range rounds {
					c, err := ch.CreateCQ(4)
					if !assert.NoError(t, err) {
						return
					}
					var both sync.WaitGroup
					both.Go(func() { c.(*completionQueue).pushCompletion(&verbs.WC{}, false) })
					both.Go(func() { assert.NoError(t, c.ReqNotify(false)) })
					both.Wait()
					c.(*completionQueue).pushCompletion(&verbs.WC{}, false)
					assert.NoError(t, c.Close())
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				for {
					c, err := ch.Wait(context.Background())
					if err != nil {
						assert.ErrorIs(t, err, verbs.ErrClosed)
						return
					}
					if err := c.ReqNotify(false); err != nil {
						assert.ErrorIs(t, err, verbs.ErrClosed, "it was destroyed meanwhile")
					}
				}
			})
		}
		wg.Go(func() {
			makers.Wait()
			none, err := eventOf(ch)
			assert.NoError(t, err)
			assert.Nil(t, none)
			assert.NoError(t, ch.Close())
		})
	}
	wg.Wait()
	require.Equal(t, 1, e.dev.quota.inUse(kindCQ))
}

// TestNoAllocationByEvents checks that arming, events and waits do not allocate.
func TestNoAllocationByEvents(t *testing.T) {
	if racesync.Enabled {
		t.Skip("the race detector allocates")
	}
	e := newEnd(t, Options{})
	ch, cqs := e.newChannel(t, 100, 4)
	round := eventRound(t, ch)
	i := 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		round(cqs[i%len(cqs)].(*completionQueue))
		i++
	}))
}

// eventRound arms a queue, completes a request on it, waits and polls.
func eventRound(t testing.TB, ch verbs.CompChannel) func(c *completionQueue) {
	var wc verbs.WC
	got := make([]verbs.WC, 1)
	ctx := soon(t)
	return func(c *completionQueue) {
		if err := c.ReqNotify(false); err != nil {
			t.Fatal(err)
		}
		c.pushCompletion(&wc, false)
		if found, err := ch.Wait(ctx); found != c || err != nil {
			t.Fatal(found, err)
		}
		if n, err := c.Poll(got); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// BenchmarkReqNotify arms a queue of a channel.
func BenchmarkReqNotify(b *testing.B) {
	e := newEnd(b, Options{NoService: true})
	_, cqs := e.newChannel(b, 1, 4)
	b.ReportAllocs()
	for b.Loop() {
		cqs[0].ReqNotify(false)
	}
}

// BenchmarkCompChannel measures arming, completion, event, Wait and Poll in one goroutine, on one
// channel with more and more armed queues; and the same with the waiter asleep in another
// goroutine.
func BenchmarkCompChannel(b *testing.B) {
	for _, queues := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(queues), func(b *testing.B) {
			e := newEnd(b, Options{NoService: true})
			ch, cqs := e.newChannel(b, queues, 4)
			round := eventRound(b, ch)
			for _, c := range cqs {
				require.NoError(b, c.ReqNotify(false))
				round(c.(*completionQueue)) // the queue allocates its memory
				require.NoError(b, c.ReqNotify(false))
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				c := cqs[i].(*completionQueue)
				round(c)
				c.ReqNotify(false)
				if i++; i == len(cqs) {
					i = 0
				}
			}
		})
	}
	b.Run("asleep", func(b *testing.B) {
		e := newEnd(b, Options{NoService: true})
		ch, cqs := e.newChannel(b, 1, 4)
		c := cqs[0].(*completionQueue)
		answered := make(chan struct{})
		go func() {
			got := make([]verbs.WC, 1)
			for {
				if _, err := ch.Wait(context.Background()); err != nil {
					close(answered)
					return
				}
				c.Poll(got)
				c.ReqNotify(false)
				answered <- struct{}{}
			}
		}()
		require.NoError(b, c.ReqNotify(false))
		b.ReportAllocs()
		for b.Loop() {
			c.pushCompletion(&verbs.WC{}, false)
			<-answered
		}
		e.dev.Close()
		<-answered
	})
}

package rnic

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// engines are the configurations of a device that differ in who reads the socket.
var engines = map[string]Options{
	"service":         {},
	"no service":      {NoService: true},
	"no spin":         {Spin: -1},
	"bare":            {NoService: true, Spin: -1},
	"impatient peers": {Spin: time.Millisecond},
}

// driveEngines drives devices without a service until the returned function is called, so that
// acknowledgements of a waiter are sent.
func driveEngines(o Options, ends ...*end) (stop func()) {
	if !o.NoService {
		return func() {}
	}
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
			}
			for _, e := range ends {
				e.dev.Progress()
			}
			runtime.Gosched()
		}
	})
	return func() { close(quit); wg.Wait() }
}

func eachEngine(t *testing.T, f func(t *testing.T, o Options)) {
	for name, o := range engines {
		t.Run(name, func(t *testing.T) { f(t, o) })
	}
}

// line is n connections between two devices, each with completion queues of its own.
type line struct {
	qp [2]verbs.QP
	cq [2]verbs.CQ
}

func lines(t testing.TB, a, b *end, n int) []line {
	t.Helper()
	list := make([]line, n)
	for i := range list {
		for k, e := range []*end{a, b} {
			l := &list[i]
			l.cq[k] = e.newCQ(t, 256)
			l.qp[k] = e.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: l.cq[k], RecvCQ: l.cq[k]})
		}
		connect(t, a.dev, list[i].qp[0], b.dev, list[i].qp[1])
	}
	return list
}

// player is one side of a ping-pong: it gets completions from its queue by next, and posts.
type player struct {
	qp   verbs.QP
	next func(wc []verbs.WC) (int, error)
}

// empty and recv0 are a message without data and a receive for it.
var (
	empty = []verbs.SendWR{{WRID: 7, Opcode: verbs.WRSend, Flags: verbs.SendSignaled}}
	recv0 = []verbs.RecvWR{{WRID: 8}}
)

// playRounds plays n rounds; the server sends first.
func (p player) playRounds(n int, serves bool) error {
	var wc [4]verbs.WC
	sent, got, acked := 0, 0, 0
	if serves {
		if _, err := p.qp.PostSend(empty); err != nil {
			return err
		}
		sent++
	}
	for got < n || acked < n {
		k, err := p.next(wc[:])
		if err != nil {
			return fmt.Errorf("after %d sent, %d acknowledged, %d received: %w", sent, acked, got, err)
		}
		for i := range wc[:k] {
			if err := wc[i].Err(); err != nil {
				return err
			}
			if !wc[i].Opcode.IsRecv() {
				acked++
				continue
			}
			got++
			if _, err := p.qp.PostRecv(recv0); err != nil {
				return err
			}
			if sent < n {
				if _, err := p.qp.PostSend(empty); err != nil {
					return err
				}
				sent++
			}
		}
	}
	return nil
}

// ways to get completions.
func waiting(ctx context.Context, c verbs.CQ) func([]verbs.WC) (int, error) {
	return func(wc []verbs.WC) (int, error) { return c.PollWait(ctx, wc) }
}

func polling(c verbs.CQ) func([]verbs.WC) (int, error) {
	return func(wc []verbs.WC) (int, error) {
		for {
			if n, err := c.Poll(wc); n != 0 || err != nil {
				return n, err
			}
			runtime.Gosched()
		}
	}
}

// newArmedPoll is the loop of the manual page of ibv_get_cq_event.
func newArmedPoll(ctx context.Context, c verbs.CQ) func([]verbs.WC) (int, error) {
	return func(wc []verbs.WC) (int, error) {
		for {
			if err := c.ReqNotify(false); err != nil {
				return 0, err
			}
			if n, err := c.Poll(wc); n != 0 || err != nil {
				return n, err
			}
			if err := c.Wait(ctx); err != nil {
				return 0, err
			}
		}
	}
}

// TestNoWakeUpIsLost runs many ping-pongs at once over two devices, with players that wait, poll,
// and arm explicitly in every combination. A lost wake-up would block a ping-pong.
func TestNoWakeUpIsLost(t *testing.T) {
	rounds := 1500
	if testing.Short() {
		rounds = 120
	}
	ways := map[string][2]string{
		"wait-wait": {"wait", "wait"}, "wait-poll": {"wait", "poll"}, "arm-wait": {"arm", "wait"}, "arm-poll": {"arm", "poll"},
	}
	eachEngine(t, func(t *testing.T, o Options) {
		for name, way := range ways {
			for _, n := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s x%d", name, n), func(t *testing.T) {
					a, b := newEnd(t, o), newEnd(t, o)
					ctx := soon(t)
					var playing atomic.Int32
					playing.Store(int32(2 * n))
					var wg sync.WaitGroup
					for _, l := range lines(t, a, b, n) {
						for k := range 2 {
							next := map[string]func([]verbs.WC) (int, error){
								"wait": waiting(ctx, l.cq[k]), "arm": newArmedPoll(ctx, l.cq[k]), "poll": polling(l.cq[k]),
							}[way[k]]
							_, err := l.qp[k].PostRecv(recv0)
							require.NoError(t, err)
							wg.Go(func() {
								assert.NoError(t, player{l.qp[k], next}.playRounds(rounds/n, k == 0))
								playing.Add(-1)
								for o.NoService && playing.Load() > 0 { // the peer may still need an acknowledgement
									[]*end{a, b}[k].dev.Progress()
									runtime.Gosched()
								}
							})
						}
					}
					wg.Wait()
				})
			}
		}
	})
}

// TestManyTakersOfOneQueue shares a completion queue among waiting goroutines and a polling one:
// each completion is returned once, and when the device closes, all return.
func TestManyTakersOfOneQueue(t *testing.T) {
	const waiters, messages = 6, 300
	eachEngine(t, func(t *testing.T, o Options) {
		for _, poller := range []bool{false, true} {
			a, b := pair(t, o)
			next := make([]func([]verbs.WC) (int, error), waiters)
			for i := range next {
				next[i] = waiting(context.Background(), b.cq)
			}
			if poller {
				next[0] = polling(b.cq)
			}
			var got atomic.Int32
			var wg sync.WaitGroup
			all := make(chan struct{})
			for i := range next {
				wg.Go(func() {
					var wc [2]verbs.WC
					for {
						n, err := next[i](wc[:])
						if err != nil {
							assert.ErrorIs(t, err, verbs.ErrClosed)
							return
						}
						for i := range n {
							if wc[i].Status == verbs.WCWRFlushErr {
								continue // the device is closing
							}
							_, err := b.qp.PostRecv(recv0)
							assert.NoError(t, err)
							if got.Add(1) == messages {
								close(all)
							}
						}
					}
				})
			}
			for range 100 {
				_, err := b.qp.PostRecv(recv0)
				require.NoError(t, err)
			}
			for range messages {
				a.post(t, empty[0])
				a.poll1(t)
			}
			<-all
			require.NoError(t, b.dev.Close())
			wg.Wait()
		}
	})
}

// TestEachCompletionWakesOne has as many waiters on one queue as there are completions; each gets
// one and returns.
func TestEachCompletionWakesOne(t *testing.T) {
	const waiters = 8
	eachEngine(t, func(t *testing.T, o Options) {
		a, b := pair(t, o)
		ctx := soon(t)
		var wg sync.WaitGroup
		for i := range waiters {
			b.recv(t, uint64(i), 0, 0)
			wg.Go(func() {
				var wc [1]verbs.WC
				n, err := b.cq.PollWait(ctx, wc[:])
				assert.NoError(t, err)
				assert.Equal(t, 1, n)
			})
		}
		list := slices.Repeat(empty, waiters)
		_, err := a.qp.PostSend(list)
		require.NoError(t, err)
		stop := driveEngines(o, a) // the first message brings the credits for the others
		wg.Wait()
		stop()
		defer driveEngines(o, b)()
		for range list {
			a.poll1(t)
		}
	})
}

// TestWaitEndsWithItsContext ends the contexts of waiters one by one; the last one still gets its
// completion, whichever was the leader.
func TestWaitEndsWithItsContext(t *testing.T) {
	const n = 5
	eachEngine(t, func(t *testing.T, o Options) {
		for last := range n {
			a, b := newEnd(t, o), newEnd(t, o)
			var cancel [n]context.CancelFunc
			var ended [n]chan error
			ls := lines(t, a, b, n)
			for i, l := range ls {
				ctx := context.Background()
				ctx, cancel[i] = context.WithCancel(ctx)
				defer cancel[i]()
				ended[i] = make(chan error, 1)
				_, err := l.qp[1].PostRecv(recv0)
				require.NoError(t, err)
				require.NoError(t, l.cq[1].ReqNotify(false))
				go func() { ended[i] <- l.cq[1].Wait(ctx) }()
			}
			for i := range n {
				if i != last {
					cancel[i]()
					require.ErrorIs(t, <-ended[i], context.Canceled)
				}
			}
			_, err := ls[last].qp[0].PostSend(empty)
			require.NoError(t, err)
			require.NoError(t, <-ended[last])
			defer driveEngines(o, b)()
			wc := nextOf(t, ls[last].cq[0])
			require.NoError(t, wc.Err())
		}
	})
}

func TestWaitEndsWithItsDeadline(t *testing.T) {
	eachEngine(t, func(t *testing.T, o Options) {
		e := newEnd(t, o)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
				defer cancel()
				_, err := e.cq.PollWait(ctx, make([]verbs.WC, 1))
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		wg.Wait()
	})
}

// TestCompletionFromAnotherGoroutineWakes posts a request that completes while it is posted, with
// the waiter asleep in the socket.
func TestCompletionFromAnotherGoroutineWakes(t *testing.T) {
	eachEngine(t, func(t *testing.T, o Options) {
		e := newEndOf(t, o, verbs.UD)
		require.NoError(t, verbs.ActivateUD(e.qp, qkey, 0))
		ah := e.handle(t, e.dev)
		ctx := soon(t)
		for range 200 {
			took := make(chan error, 2)
			for range cap(took) {
				go func() {
					var wc [1]verbs.WC
					_, err := e.cq.PollWait(ctx, wc[:])
					took <- err
				}()
			}
			for range cap(took) {
				e.post(t, verbs.SendWR{Opcode: verbs.WRSend, AH: ah, RemoteQPN: 0xabcdef, RemoteQKey: qkey})
				require.NoError(t, <-took)
			}
		}
	})
}

// TestWaitOfClosedQueue closes a queue, or its device, under several waiters; they and all later
// ones get an error.
func TestWaitOfClosedQueue(t *testing.T) {
	for _, what := range []string{"queue", "device"} {
		eachEngine(t, func(t *testing.T, o Options) {
			e := newEnd(t, o)
			c := e.newCQ(t, 16)
			ended := make(chan error, 6)
			wait := func() { ended <- c.Wait(context.Background()) }
			pollWait := func() {
				_, err := c.PollWait(context.Background(), make([]verbs.WC, 1))
				ended <- err
			}
			for range cap(ended) / 2 {
				go wait()
				go pollWait()
			}
			runtime.Gosched()
			if what == "queue" {
				require.NoError(t, c.Close())
			} else {
				require.NoError(t, e.dev.Close())
			}
			for range cap(ended) {
				require.ErrorIs(t, <-ended, verbs.ErrClosed)
			}
			wait()
			pollWait()
			require.ErrorIs(t, <-ended, verbs.ErrClosed)
			require.ErrorIs(t, <-ended, verbs.ErrClosed)
			require.ErrorIs(t, c.ReqNotify(false), verbs.ErrClosed)
			_, err := c.Poll(make([]verbs.WC, 1))
			require.ErrorIs(t, err, verbs.ErrClosed)
			require.NoError(t, c.Close(), "twice is safe")
		})
	}
}

// TestQueueGetsQueuePairsWhileWaitedFor creates and closes queue pairs of a queue with a waiter, on
// a device with several shards.
func TestQueueGetsQueuePairsWhileWaitedFor(t *testing.T) {
	needShards(t)
	a, b := newEnd(t, Options{Shards: 3}), newEnd(t, Options{Shards: 2})
	c := b.newCQ(t, 64)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	got := make(chan verbs.WC)
	for range 3 {
		wg.Go(func() {
			var wc [1]verbs.WC
			for {
				if _, err := c.PollWait(ctx, wc[:]); err != nil {
					assert.ErrorIs(t, err, context.Canceled)
					return
				}
				got <- wc[0]
			}
		})
	}
	for i := range 60 {
		qa := a.newQP(t, verbs.RC)
		qb := b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: c})
		connect(t, a.dev, qa, b.dev, qb)
		_, err := qb.PostRecv([]verbs.RecvWR{{WRID: uint64(i)}})
		require.NoError(t, err)
		_, err = qa.PostSend(empty)
		require.NoError(t, err)
		wc := <-got
		require.NoError(t, wc.Err())
		require.EqualValues(t, i, wc.WRID)
		a.poll1(t)
		require.NoError(t, qa.Close())
		require.NoError(t, qb.Close())
	}
	cancel()
	wg.Wait()
}

// TestWaitUntil plays ping-pong by writes that cause no completion at the receiver: a waiter ends with
// the word that the peer has written, also while other goroutines wait for completions and handle the
// packets. There is no timer that would hide a lost wake-up.
func TestWaitUntil(t *testing.T) {
	for _, shards := range []int{1, 2} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			if shards > 1 {
				needShards(t)
			}
			eachEngine(t, func(t *testing.T, o Options) {
				if o.Shards = shards; !o.NoService || shards == 1 {
					testWaitUntil(t, o)
				}
			})
		})
	}
	t.Run("iWARP", func(t *testing.T) { testWaitUntil(t, Options{Wire: IWARP}) })
}

func testWaitUntil(t *testing.T, o Options) {
	a, b := pair(t, o)
	defer driveEngines(o, a, b)()
	const rounds = 200
	play := func(e, peer *end, first uint64) error {
		out, in := 0, 8
		cq := e.cq.(*completionQueue)
		var wc [1]verbs.WC
		for v := first; v < 2*rounds; v += 2 {
			if v > 0 {
				if err := cq.WaitUntil(soon(t), func() bool { return e.mr.LoadUint64(in) == v }); err != nil {
					return fmt.Errorf("round %d: %w", v, err)
				}
			}
			binary.NativeEndian.PutUint64(e.mr.Bytes()[out:], v+1)
			if _, err := e.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
				SGList: []verbs.SGE{e.mr.SGE(out, 8)}, RemoteAddr: peer.mr.Addr() + uint64(in), RKey: peer.mr.RKey()}}); err != nil {
				return err
			}
			if _, err := cq.PollWait(soon(t), wc[:]); err != nil || wc[0].Status != verbs.WCSuccess {
				return fmt.Errorf("write of round %d: %v, %w", v, wc[0].Status, err)
			}
		}
		return nil
	}
	ended, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for _, e := range []*end{a, b} {
		other := e.newCQ(t, 16)
		e.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: other, RecvCQ: other})
		others.Go(func() {
			_, err := other.PollWait(ended, make([]verbs.WC, 1))
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	failed := make(chan error)
	go func() { failed <- play(b, a, 1) }()
	require.NoError(t, play(a, b, 0))
	require.NoError(t, <-failed)
	cancel()
	others.Wait()
	never := func() bool { return false }
	require.ErrorIs(t, a.cq.(*completionQueue).WaitUntil(ended, never), context.Canceled)
	require.NoError(t, a.dev.Close())
	require.ErrorIs(t, a.cq.(*completionQueue).WaitUntil(t.Context(), never), verbs.ErrClosed)
}

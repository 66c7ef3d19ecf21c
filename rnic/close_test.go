package rnic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/verbs"
)

// openEverything opens a device with one object of each kind, which use each other, and returns the
// functions that close them.
func openEverything(t testing.TB, o Options) map[string]func() error {
	t.Helper()
	e := newEnd(t, o)
	mw, err := e.pd.AllocMW()
	require.NoError(t, err)
	ah := e.handle(t, e.dev)
	srq, err := e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
	require.NoError(t, err)
	ch, told := e.newChannel(t, 1, 4)
	require.NoError(t, told[0].ReqNotify(false))
	shared := e.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SRQ: srq, RecvCQ: told[0]})
	connect(t, e.dev, e.qp, e.dev, shared) // to itself
	_, err = srq.PostRecv(recv0)
	require.NoError(t, err)
	e.recv(t, 1, 0, 8)
	e.post(t, verbs.SendWR{Opcode: verbs.WRBindMW, Bind: verbs.BindMW{MW: mw, MR: e.mr, RKey: verbs.IncRKey(mw.RKey()),
		Addr: e.mr.Addr(), Length: 100, Access: verbs.AccessRemoteRead}})
	e.poll1(t)
	e.post(t, empty[0])
	return map[string]func() error{
		"device": e.dev.Close, "PD": e.pd.Close, "CQ": e.cq.Close, "channel": ch.Close, "CQ with channel": told[0].Close, "QP": e.qp.Close, "QP with SRQ": shared.Close,
		"SRQ": srq.Close, "MR": e.mr.Close, "MW": mw.Close, "AH": ah.Close,
	}
}

// TestCloseInAnyOrder closes all objects of a device, and the device, in random orders and twice.
// Objects in use return ErrBusy, and nothing else fails.
func TestCloseInAnyOrder(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		ends := openEverything(t, Options{NoService: random.IntN(2) == 0})
		var names []string
		for name := range ends {
			names = append(names, name, name)
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			if err := ends[name](); err != nil {
				require.ErrorIs(t, err, verbs.ErrBusy, "%s of %v, seed %d", name, names, seed)
			}
		}
	}
}

// TestCloseInOrder closes objects before those that they are created from: none is in use, and none
// remains.
func TestCloseInOrder(t *testing.T) {
	e := newEnd(t, Options{})
	require.ErrorIs(t, e.cq.Close(), verbs.ErrBusy)
	require.ErrorIs(t, e.pd.Close(), verbs.ErrBusy)
	require.NoError(t, e.qp.Close())
	require.NoError(t, e.qp.Close(), "twice is safe")
	require.NoError(t, e.cq.Close())
	require.NoError(t, e.cq.Close(), "twice is safe")
	require.NoError(t, e.mr.Close())
	require.NoError(t, e.pd.Close())
	for _, o := range e.dev.Inspect().Objects {
		require.Zero(t, o.InUse, o.Kind)
	}
	require.NoError(t, e.dev.Close())
	require.NoError(t, e.dev.Close(), "twice is safe")
}

// TestCloseAtOnce closes a device from several goroutines: each returns when the device is closed.
func TestCloseAtOnce(t *testing.T) {
	ours := "" // used by no other test, so that the address stays free
	if runtime.GOOS == "linux" {
		ours = ownaddr.Host(46).String() + "/32"
	}
	for range 20 {
		e := newEnd(t, Options{Addrs: ours})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				assert.NoError(t, e.dev.Close())
				again, err := Open(Options{Addr: e.dev.Addr()})
				if err == nil { // one of the two gets the free address
					again.Close()
				}
			})
		}
		wg.Wait()
		again, err := Open(Options{Addr: e.dev.Addr()})
		require.NoError(t, err)
		require.NoError(t, again.Close())
	}
}

// TestCloseFlushes checks that outstanding requests complete as flushed.
func TestCloseFlushes(t *testing.T) {
	a, b := pair(t, Options{})
	require.NoError(t, b.dev.Close()) // so that a's request stays outstanding
	a.recv(t, 1, 0, 8)
	a.post(t, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend})
	require.NoError(t, a.dev.Close())
	status := map[uint64]verbs.WCStatus{}
	var wc [4]verbs.WC
	for range 2 {
		n, err := a.cq.Poll(wc[:1])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		status[wc[0].WRID] = wc[0].Status
	}
	require.Equal(t, map[uint64]verbs.WCStatus{1: verbs.WCWRFlushErr, 2: verbs.WCWRFlushErr}, status)
	_, err := a.cq.Poll(wc[:])
	require.ErrorIs(t, err, verbs.ErrClosed)
}

// TestNothingLeaks opens and closes devices of every kind with traffic and waiters, and counts file
// descriptors. TestMain counts goroutines.
func TestNothingLeaks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/fd")
	}
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(list)
	}
	cycle := func(o Options) {
		a, b := pair(t, o)
		var wg sync.WaitGroup
		for _, e := range []*end{a, b} {
			c := e.newCQ(t, 1)
			wg.Go(func() {
				_, err := c.PollWait(context.Background(), make([]verbs.WC, 1))
				assert.ErrorIs(t, err, verbs.ErrClosed)
			})
			wg.Go(func() {
				for err := error(nil); err == nil; {
					_, err = e.dev.AsyncEvent(context.Background())
				}
			})
		}
		b.recv(t, 1, 0, 1000)
		a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 1000)}})
		b.poll1(t)
		require.NoError(t, a.dev.Close())
		require.NoError(t, b.dev.Close())
		wg.Wait()
	}
	kinds := map[string]Options{
		"plain": {}, "no service": {NoService: true}, "portable": {Portable: true},
		"faults": {Impair: "delay 1ms; drop every 5th ACK"}, "capture": {Capture: t.TempDir() + "/c.pcapng.gz"},
	}
	if os.Getenv(EnvLink) == "" {
		kinds["shards"] = Options{Shards: 3}
	}
	for _, o := range kinds {
		cycle(o) // files that are opened once per process
	}
	before := files()
	for range 5 {
		for _, o := range kinds {
			cycle(o)
		}
	}
	_, err := Open(Options{Impair: "nonsense"})
	require.Error(t, err)
	_, err = Open(Options{Capture: t.TempDir() + "/no/such/folder/c.pcapng"})
	require.Error(t, err)
	require.LessOrEqual(t, files(), before)
}

// streams are the kinds of requests that access memory.
var streams = []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRSend, verbs.WRRDMARead, verbs.WRAtomicFetchAdd}

// stream posts requests from a to b until one fails, and returns its completion. It calls started
// after the first completion.
func stream(t *testing.T, a, b *end, op verbs.WROpcode, started func()) verbs.WC {
	const size, depth = 60_000, 32
	wr := verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, size)},
		RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(), CompareAdd: 1}
	if op == verbs.WRAtomicFetchAdd {
		wr.SGList = []verbs.SGE{a.mr.SGE(0, 8)}
	}
	recv := []verbs.RecvWR{{SGList: []verbs.SGE{b.mr.SGE(0, size)}}}
	var wc [1]verbs.WC
	for i := 0; ; i++ {
		if op == verbs.WRSend {
			_, err := b.qp.PostRecv(recv)
			if err != nil {
				assert.ErrorIs(t, err, verbs.ErrClosed)
			}
			b.cq.Poll(make([]verbs.WC, 8)) // wait for free space
		}
		if i == 2*depth {
			started()
		}
		if _, err := a.qp.PostSend([]verbs.SendWR{wr}); err != nil {
			assert.ErrorIs(t, err, verbs.ErrClosed)
			return wc[0]
		}
		if i < depth {
			continue
		}
		if _, err := a.cq.PollWait(context.Background(), wc[:]); err != nil || wc[0].Status != verbs.WCSuccess {
			return wc[0]
		}
	}
}

// TestNoAccessAfterEnd ends the access to memory in several ways while requests use it. When the
// call has returned, the adapter does not access the memory: under the race detector, the
// comparison itself would be a race.
func TestNoAccessAfterEnd(t *testing.T) {
	hasty := verbs.ConnectOptions{Retries: 3}
	run := func(t *testing.T, op verbs.WROpcode, mem func(a, b *end) verbs.MR, stop func(a, b *end) error) verbs.WC {
		t.Parallel()
		a, b := newEnd(t, Options{}), newEnd(t, Options{})
		connectWith(t, a.dev, a.qp, b.dev, b.qp, hasty)
		flows := make(chan struct{})
		last := make(chan verbs.WC, 1)
		go func() { last <- stream(t, a, b, op, func() { close(flows) }) }()
		select {
		case <-flows:
		case wc := <-last:
			require.NoError(t, wc.Err(), "too early")
		}
		require.NoError(t, stop(a, b))
		got := mem(a, b).Bytes()
		before := append([]byte(nil), got...)
		for i := range got {
			got[i] ^= 0xff
			before[i] ^= 0xff
		}
		wc := <-last
		require.Equal(t, before, got)
		return wc
	}
	near := func(a, b *end) verbs.MR { return a.mr }
	far := func(a, b *end) verbs.MR { return b.mr }
	for _, op := range streams {
		t.Run(fmt.Sprint(op), func(t *testing.T) {
			t.Run("deregister at the target", func(t *testing.T) {
				wc := run(t, op, far, func(a, b *end) error { return b.mr.Close() })
				want := verbs.WCRemAccessErr
				if op == verbs.WRSend {
					want = verbs.WCRemOpErr
				}
				require.Equal(t, want, wc.Status, wc.Err())
				require.NotEmpty(t, wc.Failure.Cause)
			})
			t.Run("deregister at the source", func(t *testing.T) {
				wc := run(t, op, near, func(a, b *end) error { return a.mr.Close() })
				require.Equal(t, verbs.WCLocProtErr, wc.Status, wc.Err())
				require.NotEmpty(t, wc.Failure.Cause)
			})
			t.Run("destroy the target's queue pair", func(t *testing.T) {
				wc := run(t, op, far, func(a, b *end) error { return b.qp.Close() })
				require.Equal(t, verbs.WCRetryExcErr, wc.Status, wc.Err())
			})
			t.Run("close the target", func(t *testing.T) {
				wc := run(t, op, far, func(a, b *end) error { return b.dev.Close() })
				require.Equal(t, verbs.WCRetryExcErr, wc.Status, wc.Err())
			})
			t.Run("close the source", func(t *testing.T) {
				run(t, op, near, func(a, b *end) error { return a.dev.Close() })
			})
		})
	}
}

// TestCloseSendsPendingAck closes a receiver as soon as it has its message: the sender's request
// must succeed.
func TestCloseSendsPendingAck(t *testing.T) {
	for name, part := range map[string]func(b *end) error{
		"destroy": func(b *end) error { return b.qp.Close() },
		"close":   func(b *end) error { return b.dev.Close() },
		"reset":   func(b *end) error { return b.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState) },
		"error":   func(b *end) error { return b.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) },
	} {
		for _, how := range []string{"poll", "wait"} {
			t.Run(name+" after a "+how, func(t *testing.T) {
				for range 5 {
					a, b := pair(t, Options{})
					b.recv(t, 1, 0, 100)
					parted := make(chan error, 1)
					go func() {
						wc := make([]verbs.WC, 1)
						for n := 0; n == 0; {
							var err error
							if how == "poll" {
								n, err = b.cq.Poll(wc)
							} else {
								n, err = b.cq.PollWait(t.Context(), wc)
							}
							if err != nil {
								parted <- err
								return
							}
						}
						parted <- part(b)
					}()
					a.post(t, verbs.SendWR{WRID: 7, Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 100)}})
					require.NoError(t, <-parted)
					require.Equal(t, verbs.WCSuccess, a.next(t).Status)
					a.dev.Close()
					b.dev.Close()
				}
			})
		}
	}
}

// TestLongPostYieldsToOthers posts much more than a queue pair may send at a time: the call returns before all
// packets are sent, another queue pair's message precedes the remaining ones, and these follow at
// later polls.
func TestLongPostYieldsToOthers(t *testing.T) {
	a, b := pairOf(t, Options{NoService: true}, verbs.UC)
	other := a.newQP(t, verbs.UC)
	connect(t, a.dev, other, b.dev, b.newQP(t, verbs.UC))
	const size = 8 << 20
	a.post(t, verbs.SendWR{WRID: 1, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, size)},
		RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	first := a.dev.Stats().Counters.SentBytes
	require.NotZero(t, first)
	require.LessOrEqual(t, first, uint64(maxDrainBatches*txBatchBytes))
	_, err := other.PostSend([]verbs.SendWR{{WRID: 2, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
	require.NoError(t, err)
	require.EqualValues(t, 2, a.next(t).WRID)
	require.EqualValues(t, 1, a.next(t).WRID)
	require.EqualValues(t, size+8, a.dev.Stats().Counters.SentBytes)
}

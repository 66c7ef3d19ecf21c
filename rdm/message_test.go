package rdm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestMessages checks that messages of all lengths arrive complete, once and in order, in both
// directions at once, on any network.
func TestMessages(t *testing.T) {
	rng := newRand(t)
	for _, faults := range []string{"", faulty(rng)} {
		a, b := endpoint(t, faults, rdm.Options{}), endpoint(t, faults, rdm.Options{})
		ctx := guarded(t)
		pa, pb := dial(t, a, b), dial(t, b, a)
		const n = 150
		length := func(i int) int { return []int{0, 1, 200, 4000, 4056, 4057, 9000, a.MaxMessage()}[i%8] }
		var all sync.WaitGroup
		errs := make([]error, 4)
		for side, p := range []*rdm.Peer{pa, pb} {
			all.Go(func() {
				m := make([]byte, a.MaxMessage())
				for i := range n {
					fill(m[:length(i)], i+side)
					if errs[side] = p.Send(ctx, m[:length(i)]); errs[side] != nil {
						return
					}
				}
			})
		}
		for side, e := range []*rdm.Endpoint{b, a} {
			all.Go(func() {
				got, want := make([]byte, a.MaxMessage()), make([]byte, a.MaxMessage())
				for i := range n {
					k, from, err := e.Recv(ctx, got)
					fill(want[:length(i)], i+side)
					if err != nil || k != length(i) || string(got[:k]) != string(want[:k]) || from.Addr() != []*rdm.Endpoint{a, b}[side].Addr() {
						errs[2+side] = fmt.Errorf("message %d: %d bytes, not %d, or others: %w", i, k, length(i), err)
						return
					}
				}
			})
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		require.ErrorIs(t, pa.Send(ctx, make([]byte, a.MaxMessage()+1)), rdm.ErrTooLong)
		if faults != "" {
			require.NotZero(t, a.Stats().Retransmitted)
		}
	}
}

// TestShortBuffer checks that a message longer than the buffer stays in the queue.
func TestShortBuffer(t *testing.T) {
	a, b := endpoint(t, "", rdm.Options{}), endpoint(t, "", rdm.Options{})
	ctx := guarded(t)
	require.NoError(t, dial(t, a, b).Send(ctx, []byte("twelve bytes")))
	n, _, err := b.Recv(ctx, make([]byte, 5))
	require.ErrorIs(t, err, io.ErrShortBuffer)
	require.Equal(t, 12, n)
	buf := make([]byte, n)
	n, from, err := b.Recv(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "twelve bytes", string(buf[:n]))
	require.Equal(t, a.Addr(), from.Addr())
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, _, err = b.Recv(short, buf)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestBacklog checks that messages that are not received are bounded, and not lost.
func TestBacklog(t *testing.T) {
	a, b := endpoint(t, "", rdm.Options{}), endpoint(t, "", rdm.Options{Backlog: 1000})
	ctx := guarded(t)
	p := dial(t, a, b)
	const n = 200
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			if err := p.Send(ctx, []byte{byte(i), 100: 0}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for b.Stats().BacklogDrops == 0 {
		b.Progress()
	}
	buf := make([]byte, 200)
	for i := range n {
		_, _, err := b.Recv(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, byte(i), buf[0])
	}
	require.NoError(t, <-sent)
}

// TestDial checks dials of an unreachable peer, of one that rejects, and of one with another Q_Key.
func TestDial(t *testing.T) {
	a := endpoint(t, "", rdm.Options{GiveUp: silence})
	b := endpoint(t, "", rdm.Options{Allow: func(at rdm.Addr) (verbs.AccessFlags, bool) { return 0, at != a.Addr() }})
	ctx := guarded(t)
	_, err := a.Dial(ctx, b.Addr())
	require.ErrorIs(t, err, rdm.ErrRefused)
	var pe *rdm.PeerError
	require.ErrorAs(t, err, &pe)
	require.Equal(t, b.Addr(), pe.Peer)
	require.NotZero(t, b.Stats().Refused)
	nobody := endpoint(t, "", rdm.Options{}).Addr()
	nobody.QKey ^= 1
	_, err = a.Dial(ctx, nobody)
	require.ErrorIs(t, err, rdm.ErrUnreachable)
	nobody.At = rdm.Addr{}.At
	_, err = a.Dial(ctx, nobody)
	require.Error(t, err)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	nobody = endpoint(t, "", rdm.Options{}).Addr()
	nobody.QKey ^= 1
	_, err = a.Dial(ended, nobody)
	require.ErrorIs(t, err, context.Canceled)
}

// TestRestart checks that a peer that restarts with the same name is detected by all peers of the
// earlier incarnation, and that waits for that fail.
func TestRestart(t *testing.T) {
	dev := device(t, "")
	a := endpoint(t, "", rdm.Options{})
	ctx := guarded(t)
	old := endpointOn(t, dev, rdm.Options{ID: 7})
	p := dial(t, a, old)
	require.NoError(t, p.Send(ctx, []byte("before")))
	_, _, err := old.Recv(ctx, make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, old.Close())
	waits := make(chan error, 1)
	go func() {
		for {
			if err := p.Send(ctx, make([]byte, a.MaxMessage())); err != nil {
				waits <- err
				return
			}
		}
	}()
	anew := endpointOn(t, dev, rdm.Options{ID: 7})
	back := dial(t, anew, a)
	require.ErrorIs(t, <-waits, rdm.ErrRestarted)
	require.ErrorIs(t, p.Err(), rdm.ErrRestarted)
	require.NoError(t, back.Send(ctx, []byte("after")))
	buf := make([]byte, 10)
	n, from, err := a.Recv(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "after", string(buf[:n]))
	require.NotSame(t, p, from)
	require.NoError(t, from.Send(ctx, []byte("hello")))
	n, _, err = anew.Recv(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "hello", string(buf[:n]))
	require.Equal(t, 1, a.Stats().Peers)
}

// TestSilentPeer checks that a terminated peer fails for those that send to it, and for no others.
func TestSilentPeer(t *testing.T) {
	dev := device(t, "")
	a, b := endpoint(t, "", rdm.Options{GiveUp: silence}), endpoint(t, "", rdm.Options{})
	gone := endpointOn(t, dev, rdm.Options{})
	ctx := guarded(t)
	p, q := dial(t, a, gone), dial(t, a, b)
	require.NoError(t, dev.Close())
	var err error
	for err == nil {
		err = p.Send(ctx, make([]byte, 10_000))
	}
	require.ErrorIs(t, err, rdm.ErrTimeout)
	require.NoError(t, q.Send(ctx, []byte("still")))
	buf := make([]byte, 10)
	_, _, err = b.Recv(ctx, buf)
	require.NoError(t, err)
	_, err = a.Dial(ctx, gone.Addr())
	require.ErrorIs(t, err, rdm.ErrTimeout, "that life of it is over")
}

// TestClose checks that Close ends waits.
func TestClose(t *testing.T) {
	a, b := endpoint(t, "", rdm.Options{}), endpoint(t, "", rdm.Options{})
	ctx := guarded(t)
	p := dial(t, a, b)
	waits := make(chan error)
	for range 3 {
		go func() {
			_, _, err := a.Recv(ctx, make([]byte, 10))
			waits <- err
		}()
	}
	require.NoError(t, a.Close())
	for range 3 {
		require.ErrorIs(t, <-waits, rdm.ErrClosed)
	}
	require.ErrorIs(t, p.Send(ctx, nil), rdm.ErrClosed)
	_, err := a.Dial(ctx, b.Addr())
	require.ErrorIs(t, err, rdm.ErrClosed)
}

// TestTrySend checks that a full window is ErrWouldBlock and that WaitWritable
// waits for its end.
func TestTrySend(t *testing.T) {
	a, b := endpoint(t, "", rdm.Options{Packets: 8}), endpoint(t, "", rdm.Options{})
	p := dial(t, a, b)
	sent := 0
	for ; sent < 1<<16; sent++ {
		if err := p.TrySend(make([]byte, 1000)); err != nil {
			require.ErrorIs(t, err, rdm.ErrWouldBlock)
			break
		}
	}
	require.Less(t, sent, 1<<16)
	require.NoError(t, p.WaitWritable(t.Context()))
	require.ErrorIs(t, p.TrySend(make([]byte, 1<<20)), rdm.ErrTooLong)
	require.NoError(t, p.Send(t.Context(), []byte("last")))
	for range sent + 1 {
		_, _, err := b.Recv(t.Context(), make([]byte, 1000))
		require.NoError(t, err)
	}
}

// TestAllowUnlocked checks that Allow may block and use the endpoint, that dialing peers
// wait for it, and that the end of a peer is observable.
func TestAllowUnlocked(t *testing.T) {
	var b *rdm.Endpoint
	release, failed := make(chan struct{}), make(chan error, 1)
	b = endpoint(t, "", rdm.Options{
		Allow: func(at rdm.Addr) (verbs.AccessFlags, bool) {
			<-release
			return 0, b.Stats().Peers == 0 && at != b.Addr()
		},
		OnPeerFailed: func(p *rdm.Peer, err error) { failed <- errors.Join(err, p.Close()) },
	})
	a, c := endpoint(t, "", rdm.Options{}), endpoint(t, "", rdm.Options{})
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	p := dial(t, a, b)
	_, err := c.Dial(guarded(t), b.Addr())
	require.ErrorIs(t, err, rdm.ErrRefused)
	require.NoError(t, p.Send(guarded(t), []byte("hello")))
	_, from, err := b.Recv(guarded(t), make([]byte, 8))
	require.NoError(t, err)
	done := from.Done()
	select {
	case <-done:
		t.Fatal("the peer has not failed")
	default:
	}
	require.NoError(t, from.Close())
	<-done
	<-from.Done()
	require.ErrorIs(t, from.Err(), rdm.ErrDisconnected)
	require.ErrorIs(t, <-failed, rdm.ErrDisconnected)
	require.NoError(t, from.Close(), "it is closed")
}

// TestPeerRefusedBySystem checks that a closed port is detected by a dial, and by messages to a
// peer that was there, long before the peer would time out, and that others are unaffected.
func TestPeerRefusedBySystem(t *testing.T) {
	a, other := endpoint(t, "", rdm.Options{GiveUp: time.Hour}), endpoint(t, "", rdm.Options{})
	dev, err := rnic.Open(rnic.Options{Addr: ownaddr.Device(51)}) // stays free
	require.NoError(t, err)
	b, err := rdm.Open(dev, rdm.Options{})
	require.NoError(t, err)
	ctx := guarded(t)
	p, err := a.Dial(ctx, b.Addr())
	require.NoError(t, err)
	q, err := a.Dial(ctx, other.Addr())
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, dev.Close())

	require.NoError(t, p.Send(ctx, []byte("x")))
	for p.Err() == nil {
		require.NoError(t, ctx.Err())
		a.Progress()
	}
	require.ErrorIs(t, p.Err(), rdm.ErrTimeout)
	require.ErrorIs(t, p.Err(), syscall.ECONNREFUSED)

	gone := b.Addr()
	gone.QPN, gone.ID = gone.QPN^1, gone.ID+1
	_, err = a.Dial(ctx, gone)
	require.ErrorIs(t, err, rdm.ErrUnreachable)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	require.NoError(t, q.Send(ctx, []byte("y")))
	buf := make([]byte, 8)
	n, _, err := other.Recv(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "y", string(buf[:n]))
}

// TestNativeNegotiation checks that two capable endpoints use native operations, whichever requests it
// first, or both at once; with one that is not, operations are emulated and no native ones are sent
// to it.
func TestNativeNegotiation(t *testing.T) {
	for _, c := range []struct {
		a, b   rdm.Options
		native bool
	}{
		{rdm.Options{}, rdm.Options{}, true},
		{rdm.Options{Emulate: true}, rdm.Options{}, false},
		{rdm.Options{}, rdm.Options{Emulate: true}, false},
		{rdm.Options{Emulate: true}, rdm.Options{Emulate: true}, false},
	} {
		a, b := endpoint(t, "", c.a), endpoint(t, "", c.b)
		ra, rb := region(t, a, 64, everything), region(t, b, 64, everything)
		ctx := guarded(t)
		p, q := dial(t, a, b), dial(t, b, a)
		var ops [2]rdm.Op
		require.NoError(t, p.FetchAdd(&ops[0], rb.Remote(0), 1))
		require.NoError(t, q.FetchAdd(&ops[1], ra.Remote(0), 2))
		require.NoError(t, ops[0].Wait(ctx))
		require.NoError(t, ops[1].Wait(ctx))
		require.Equal(t, []uint64{1, 2}, []uint64{rb.LoadUint64(0), ra.LoadUint64(0)})
		require.Equal(t, []bool{c.native, c.native}, []bool{p.Native(), q.Native()})
		if c.native {
			require.Zero(t, a.Stats().Served+b.Stats().Served)
		} else {
			require.EqualValues(t, 1, a.Stats().Served)
		}
	}
}

// TestStatsFollowProtocol checks that Dropped has the reasons of the protocol, in their order.
func TestStatsFollowProtocol(t *testing.T) {
	i := 0
	for name := range counters.All(rdm.Dropped{}) {
		require.Equal(t, nack.Drops()[i].String(), name)
		i++
	}
}

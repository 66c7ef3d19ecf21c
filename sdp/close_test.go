package sdp_test

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestCloseDelivers checks that each byte that Write has accepted arrives, although Close follows
// immediately, for all sizes and readers.
func TestCloseDelivers(t *testing.T) {
	for name, network := range map[string]struct {
		impair string
		conns  int
	}{"clean": {"", 100}, "lossy": {"loss 5% seed 3", 15}} {
		t.Run(name, func(t *testing.T) {
			eachFlowControl(t, func(t *testing.T, o sdp.Options) {
				closeDelivers(t, newEnds(t, rnic.Options{Impair: network.impair}, o), network.conns)
			})
		})
	}
}

func closeDelivers(t *testing.T, e *ends, conns int) {
	var all sync.WaitGroup
	room := make(chan struct{}, 10)
	for i := range int64(conns) {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		size := int64(rng.IntN(1 << rng.IntN(21)))
		room <- struct{}{}
		a, b := e.dial(t)
		all.Go(func() {
			if n, err := io.Copy(onlyWriter{a}, stream(i, size)); n != size || err != nil {
				t.Errorf("wrote %d of %d bytes: %v", n, size, err)
			}
			assert.NoError(t, a.Close())
		})
		all.Go(func() {
			defer func() { <-room }()
			checkStream(t, b, i, size)
			assert.NoError(t, b.Close())
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	require.NoError(t, e.a.Drain(ctx))
	require.NoError(t, e.b.Drain(ctx))
}

type onlyWriter struct{ io.Writer }

// TestCloseTwice checks that a second Close is an error, as with TCP.
func TestCloseTwice(t *testing.T) {
	a, b := newEnds(t, rnic.Options{}, sdp.Options{}).dial(t)
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Close(), net.ErrClosed)
	_, err := io.ReadAll(b)
	require.NoError(t, err)
}

// TestCloseUnread checks that a Close with unread bytes notifies the peer, after its own written
// data.
func TestCloseUnread(t *testing.T) {
	for name, half := range map[string]bool{"the peer continues": false, "peer has ended": true} {
		t.Run(name, func(t *testing.T) {
			eachFlowControl(t, func(t *testing.T, o sdp.Options) {
				a, b := newEnds(t, rnic.Options{}, o).dial(t)
				_, err := io.WriteString(a, "two words")
				require.NoError(t, err)
				if half {
					require.NoError(t, a.CloseWrite())
				}
				_, err = io.ReadFull(b, make([]byte, 4))
				require.NoError(t, err)
				answer := make([]byte, 100_000)
				require.NoError(t, b.SetDeadline(time.Now().Add(hang)))
				n, err := b.Write(answer)
				require.NoError(t, err)
				require.NoError(t, b.Close())
				require.NoError(t, a.SetDeadline(time.Now().Add(hang)))
				got, err := io.ReadAll(a)
				require.Len(t, got, n)
				require.ErrorIs(t, err, syscall.ECONNRESET)
				if half {
					require.ErrorIs(t, err, sdp.ErrAborted)
					return
				}
				require.ErrorIs(t, err, sdp.ErrReset)
				_, err = a.Write(answer)
				require.ErrorIs(t, err, sdp.ErrReset)
			})
		})
	}
}

// TestQueriesAfterEnd checks that queries of a closed connection are safe after its memory is freed,
// although it has unread data.
func TestQueriesAfterEnd(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		e := newEnds(t, rnic.Options{}, o)
		a, b := e.dial(t)
		for range 2 { // the second one is not even recorded
			_, err := a.Write(random(100_000, 1))
			require.NoError(t, err)
			require.Eventually(t, func() bool { b.Urgent(); return b.Stats().ReceiveUsed > 0 }, hang, time.Millisecond)
		}
		require.NoError(t, b.SetLinger(0))
		require.NoError(t, b.Close())
		ctx, cancel := context.WithTimeout(t.Context(), hang)
		defer cancel()
		require.NoError(t, e.b.Drain(ctx))
		b.Urgent()
		b.PeerBuffer()
		b.Stats()
		b.MeasureBufferUse()()
		require.ErrorIs(t, b.SetReadBuffer(1<<20), net.ErrClosed)
		_, err := b.Read(make([]byte, 10))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestDrainOfUnclosedPeer checks that Drain waits for a peer that has all data and has not
// closed, and not for data: the last messages without a requested completion precede the end of the
// stream.
func TestDrainOfUnclosedPeer(t *testing.T) {
	for _, d := range designs {
		t.Run(d.String(), func(t *testing.T) {
			e := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: d, ZeroCopy: -1})
			for _, size := range []int{1, 100, 100_000} {
				a, b := e.dial(t)
				n, err := a.Write(make([]byte, size))
				require.Equal(t, size, n)
				require.NoError(t, err)
				require.NoError(t, a.CloseWrite())
				got, err := io.Copy(io.Discard, b)
				require.NoError(t, err)
				require.EqualValues(t, size, got)
				for began := time.Now(); a.Stats().SendUsed > 0; runtime.Gosched() {
					require.Less(t, time.Since(began), hang, "%d bytes of %d are in use", a.Stats().SendUsed, size)
				}
				require.NoError(t, b.Close())
				require.NoError(t, a.Close())
			}
		})
	}
}

// TestNoLinger checks that with a linger time of 0 a Close is a reset.
func TestNoLinger(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		require.NoError(t, a.SetLinger(0))
		require.NoError(t, a.Close())
		require.True(t, errors.Is(a.SetLinger(0), net.ErrClosed))
		require.NoError(t, b.SetReadDeadline(time.Now().Add(hang)))
		_, err := b.Read(make([]byte, 1))
		require.True(t, errors.Is(err, sdp.ErrReset), "%v", err)
	})
}

// TestLinger checks that written data arrives although the connection is closed immediately.
func TestLinger(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = -1
		e := newEnds(t, rnic.Options{}, o)
		for _, seconds := range []int{int(hang / time.Second), -1, math.MaxInt} {
			a, b := e.dial(t)
			require.NoError(t, a.SetLinger(seconds))
			sent := random(200_000, 1) // in flight, or not sent
			n, err := a.Write(sent)
			require.NoError(t, err)
			require.NoError(t, a.Close())
			require.NoError(t, b.SetReadDeadline(time.Now().Add(hang)))
			got, err := io.ReadAll(b)
			require.NoError(t, err)
			require.Equal(t, sent[:n], got)
		}
	})
}

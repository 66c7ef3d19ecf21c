package rnic

import (
	"context"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
)

// sleepHook is a link that calls entered before its owner sleeps in it.
type sleepHook struct {
	link.Conn
	entered func()
}

func (h *sleepHook) Wait(timeout time.Duration) (bool, error) {
	h.entered()
	return h.Conn.Wait(timeout)
}

// TestRunReady checks that goroutines that a caller has made runnable run before the caller sleeps
// in the socket: with one processor they would wait for the runtime's monitor.
func TestRunReady(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	conn, err := memory.NewLive().Attach(netip.MustParseAddrPort("192.0.2.1:4791"), memory.Options{})
	require.NoError(t, err)
	hook := &sleepHook{Conn: conn}
	dev, err := Open(Options{hooks: rnichook.Hooks{Conn: hook}, NoService: true, Spin: -1})
	require.NoError(t, err)
	defer dev.Close()
	cq, err := dev.CreateCQ(1)
	require.NoError(t, err)
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		var ran atomic.Bool
		slept, late := false, false
		hook.entered = func() {
			if !slept {
				slept, late = true, !ran.Load()
			}
			cancel()
		}
		wake, parked, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			close(parked)
			<-wake
			ran.Store(true)
			close(done)
		}()
		<-parked
		close(wake)
		var wcs [1]verbs.WC
		_, err := cq.PollWait(ctx, wcs[:])
		require.ErrorIs(t, err, context.Canceled)
		<-done
		require.True(t, slept)
		require.False(t, late, "it waits while the caller sleeps in the socket")
	}
}

// TestHandlerCounts checks that a handler's call counts as an alert: the handler may have made a
// goroutine runnable that must run before the service sleeps.
func TestHandlerCounts(t *testing.T) {
	e := newEnd(t, Options{NoService: true})
	some, cqs := e.newChannel(t, 1, 4)
	ch := some.(*completionChannel)
	require.NoError(t, ch.Handle(func(verbs.CQ) bool { return true }))
	ch.offered.push(cqs[0].(*completionQueue))
	before := e.dev.wakeups.Load()
	ch.handleEvents()
	require.Greater(t, e.dev.wakeups.Load(), before)
}

package sdp_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestNoEventDuringCalls checks that deferred data is sent by events while no call is active, and
// by the call while one is: the event is disarmed, and armed again.
func TestNoEventDuringCalls(t *testing.T) {
	a, b := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: sdp.NIC, ZeroCopy: -1}).dial(t)
	wrote := 0 // until the buffers are full, since b does not read
	for full := false; !full; full = full && a.Stats().Held > 0 {
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
		n, err := a.Write(make([]byte, 1<<20))
		wrote, full = wrote+n, n == 0
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
	}
	armed, _ := a.CountDisarms()
	require.True(t, armed)

	require.NoError(t, a.SetReadDeadline(time.Now().Add(-time.Second)))
	for calls := 1; calls <= 3; calls++ {
		_, err := a.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		armed, disarms := a.CountDisarms()
		require.True(t, armed)
		require.Equal(t, calls, disarms)
	}

	// The event is raised again, so all data arrives while a is idle.
	got := make([]byte, 64<<10)
	for read := 0; read < wrote; {
		require.NoError(t, b.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := b.Read(got)
		require.NoError(t, err)
		read += n
	}
}

// TestInterrupt checks that the adapter's own goroutine handles an event unless it would have to
// wait for a lock, or to wake others.
func TestInterrupt(t *testing.T) {
	a, _ := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: sdp.NIC}).dial(t)
	before, _ := a.HoldBack(func(*sdp.Conn) {})
	require.Positive(t, before)
	require.False(t, a.Interrupt(true, false))
	require.False(t, a.Interrupt(false, true))
	require.Positive(t, a.Stats().Held)
	require.True(t, a.Interrupt(false, false))
	require.Zero(t, a.Stats().Held)
	require.NoError(t, a.Close())
	require.False(t, a.Interrupt(false, false), "it may be the end")
}

// TestNoIdlePollDuringReads checks that the idle poller does not poll a connection with a waiting
// Read, and polls it when the Read has returned.
func TestNoIdlePollDuringReads(t *testing.T) {
	a, b := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: sdp.NIC}).dial(t)
	for range 2 {
		read := make(chan error, 1)
		go func() {
			_, err := b.Read(make([]byte, 1))
			read <- err
		}()
		for waits := false; !waits; _, waits = b.Heard() {
			runtime.Gosched()
		}
		require.True(t, b.HandOver())
		_, err := a.Write([]byte{1})
		require.NoError(t, err)
		require.NoError(t, <-read)
		require.True(t, b.LookedAfter())
	}
}

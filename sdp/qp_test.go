package sdp_test

import (
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestReaderPolls checks that a reader slower than the writer polls whenever it has returned a receive,
// before all is read, and that one that is faster waits until nothing is left.
func TestReaderPolls(t *testing.T) {
	const window = 4096
	o := sdp.Options{FlowControl: sdp.NIC, Buffers: 8, BufferBytes: window}
	a, b := newEnds(t, rnic.Options{}, o).dial(t)
	read := func(n int) func() {
		return func() {
			_, err := io.ReadFull(b, make([]byte, n))
			require.NoError(t, err)
		}
	}
	written := make(chan error, 1)
	go func() {
		_, err := a.Write(make([]byte, 64*window))
		written <- err
	}()
	left := 64 * window
	for ; !b.IsAhead(); left-- { // until the ring is full
		require.Positive(t, left)
		read(1)()
		runtime.Gosched()
	}
	require.Positive(t, b.Ahead(true, read(2*window)), "a window is free again")
	read(left - 2*window)()
	require.NoError(t, <-written)

	_, err := a.Write(make([]byte, 2*window))
	require.NoError(t, err)
	read(1)() // all has arrived, or arrives while nothing is read
	require.NoError(t, b.Await(2*window-1))
	require.Zero(t, b.Ahead(false, read(2*window-1)))
}

// TestPush checks that deferred data is sent when no more is likely: by an event while no call is
// active, or by a waiting Read.
func TestPush(t *testing.T) {
	a, _ := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: sdp.NIC}).dial(t)
	for _, by := range []func(*sdp.Conn){sdp.Event, sdp.WaitToRead} {
		before, after := a.HoldBack(by)
		require.Positive(t, before)
		require.Zero(t, after)
	}
	before, after := a.HoldBack(sdp.WaitWhileWriting)
	require.Positive(t, before)
	require.Equal(t, before, after, "more may come")
}

// TestDeferredLeavesInTheNextCall checks that data deferred by RDMA flow control stays while there is
// no call, although the peer has reported free space, and is sent in the next one.
func TestDeferredLeavesInTheNextCall(t *testing.T) {
	a, b := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: sdp.RDMA, Buffers: 8, BufferBytes: 8 << 10, ZeroCopy: -1}).dial(t)
	const total = 96 << 10
	_, err := a.Write(make([]byte, total))
	require.NoError(t, err)
	held := a.Stats().Held
	require.Positive(t, held, "the peer does not read")
	credits := a.Stats().Credits
	_, err = io.ReadFull(b, make([]byte, total-held))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return a.Stats().Credits > credits }, hang, hang/10000, "b's report of room comes without a call at a")
	require.Equal(t, held, a.Stats().Held)

	require.NoError(t, a.SetDeadline(time.Now().Add(hang)))
	require.NoError(t, b.SetDeadline(time.Now().Add(hang)))
	answered := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(b, make([]byte, held))
		if err == nil {
			_, err = b.Write([]byte{1})
		}
		answered <- err
	}()
	_, err = io.ReadFull(a, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, <-answered)
}

package sdp_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// transfer writes bytes at a and reads them at b.
func transfer(t *testing.T, a, b io.ReadWriter, sent []byte) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := a.Write(sent)
		done <- err
	}()
	got := make([]byte, len(sent))
	_, err := io.ReadFull(b, got)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.True(t, bytes.Equal(sent, got))
}

// TestLargerRing checks that a larger ring replaces the first one while data flows.
func TestLargerRing(t *testing.T) {
	for _, d := range []sdp.FlowControl{sdp.NIC, sdp.RDMA} {
		t.Run(d.String(), func(t *testing.T) {
			o := sdp.Options{FlowControl: d, Buffers: 4, BufferBytes: 4096, ZeroCopy: -1}
			a, b := newEnds(t, rnic.Options{}, o).dial(t)
			go func() { _, _ = a.Read(make([]byte, 1)) }() // with RDMA deferred data is sent in a call
			transfer(t, a, b, random(100_000, 1))
			before := b.Stats()
			for _, enough := range []int{0, 1000, 4 * 4096} {
				require.NoError(t, b.SetReadBuffer(enough))
				require.Equal(t, before.Registered, b.Stats().Registered, "it is long enough")
			}
			for _, never := range []int{math.MinInt, -1, math.MaxInt} {
				for _, set := range []func(int) error{b.SetReadBuffer, b.SetWriteBuffer} {
					err := set(never)
					require.ErrorIs(t, err, syscall.EINVAL)
					require.ErrorContains(t, err, fmt.Sprintf("buffer of %d bytes, want 0 to 21474", never))
				}
			}
			require.Equal(t, before.Registered, b.Stats().Registered)
			require.NoError(t, a.SetWriteBuffer(4*4096))
			require.ErrorContains(t, a.SetWriteBuffer(4*4096+1), "Options.Buffers")
			require.NoError(t, b.SetReadBuffer(200_000))
			transfer(t, a, b, random(1<<20, 2))
			require.Greater(t, b.Stats().Registered, before.Registered+100_000)
			require.NoError(t, a.SetWriteDeadline(time.Now().Add(hang)))
			sent := random(90_000, 4) // with RDMA the other half of the ring may be unknown
			_, err := a.Write(sent)   // not read: the old ring would block
			require.NoError(t, err)
			got := make([]byte, len(sent))
			_, err = io.ReadFull(b, got)
			require.NoError(t, err)
			require.True(t, bytes.Equal(sent, got))
		})
	}
}

// TestBuffersGrow checks that an idle connection allocates few bytes of its buffers, that one with
// a slow reader allocates all of them, and that the bytes stay in order.
func TestBuffersGrow(t *testing.T) {
	for _, d := range []sdp.FlowControl{sdp.NIC, sdp.RDMA} {
		t.Run(d.String(), func(t *testing.T) {
			a, b := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: d, ZeroCopy: -1}).dial(t)
			transfer(t, a, b, random(1000, 1))
			idle := b.Stats().Registered
			const size = sdp.DefaultBuffers * sdp.DefaultBufferBytes
			sent := random(size, 2)
			require.NoError(t, a.SetWriteDeadline(time.Now().Add(hang)))
			_, err := a.Write(sent) // not read: the send buffer has it
			require.NoError(t, err)
			go func() { _, _ = a.Read(make([]byte, 1)) }() // with RDMA deferred data is sent in a call
			got := make([]byte, len(sent))
			_, err = io.ReadFull(b, got)
			require.NoError(t, err)
			require.True(t, bytes.Equal(sent, got))
			require.Greater(t, b.Stats().Registered, idle+size/2)
			require.NoError(t, b.SetReadBuffer(2*size), "however often it has grown")
			transfer(t, a, b, random(3*size, 3))
		})
	}
}

// TestLargerMessages checks that with Credit the peer grants larger buffers, and messages grow.
func TestLargerMessages(t *testing.T) {
	o := sdp.Options{FlowControl: sdp.Credit, BufferBytes: 1000, MaxBufferBytes: 4000, ZeroCopy: -1}
	a, b := newEnds(t, rnic.Options{}, o).dial(t)
	transfer(t, a, b, random(100_000, 1))
	require.Equal(t, 1000, a.PeerBuffer())
	require.NoError(t, a.SetWriteBuffer(900), "they are long enough")
	require.ErrorContains(t, a.SetReadBuffer(5000), "SetWriteBuffer", "the peer requests it")
	require.NoError(t, a.SetWriteBuffer(10_000))
	transfer(t, a, b, random(200_000, 2))
	transfer(t, b, a, random(100_000, 3))
	require.Equal(t, 4000, a.PeerBuffer(), "as much as the peer grants")
	require.Equal(t, 1000, b.PeerBuffer())
}

// TestBufferChangeUnderWay checks that one resize is outstanding at a time, with a peer that does
// not respond.
func TestBufferChangeUnderWay(t *testing.T) {
	for d, set := range map[sdp.FlowControl]func(c *sdp.Conn, bytes int) error{
		sdp.NIC: (*sdp.Conn).SetReadBuffer, sdp.RDMA: (*sdp.Conn).SetReadBuffer, sdp.Credit: (*sdp.Conn).SetWriteBuffer,
	} {
		p := newPuppet(t)
		c, err := p.dialed(stack(t, rnic.Options{}, sdp.Options{Buffers: 8}), d, p.ack(d))
		require.NoError(t, err)
		require.NoError(t, set(c, 1<<20))
		require.ErrorContains(t, set(c, 2<<20), "last resize incomplete")
	}
}

// TestKeepAlive checks that an idle peer is probed, and that the connection fails if it does not
// respond.
func TestKeepAlive(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{KeepAlive: time.Second}) // so that the adapter fails soon
	a, b := e.dial(t)
	require.NoError(t, a.SetKeepAlivePeriod(time.Millisecond))
	transfer(t, a, b, random(1000, 1)) // without effect
	require.NoError(t, e.dev.SetImpair("loss 100%"))
	require.NoError(t, a.SetReadDeadline(time.Now().Add(hang)))
	_, err := a.Read(make([]byte, 1))
	require.ErrorIs(t, err, sdp.ErrReset)
}

// TestUrgent checks that the peer is notified of an urgent byte before it reads the data before it.
func TestUrgent(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		_, err := a.Write([]byte("ordinary"))
		require.NoError(t, err)
		_, err = a.WriteUrgent([]byte("urgent!"))
		require.NoError(t, err)
		_, err = a.Write([]byte("more"))
		require.NoError(t, err)
		select {
		case <-b.UrgentSignal():
		case <-time.After(hang):
			t.Fatal("no signal")
		}
		buf := make([]byte, 15)
		_, err = io.ReadFull(b, buf[:14])
		require.NoError(t, err)
		ahead, announced := b.Urgent()
		require.Equal(t, 1, ahead)
		require.False(t, announced)
		_, err = io.ReadFull(b, buf[14:])
		require.NoError(t, err)
		require.Equal(t, "ordinaryurgent!", string(buf))
		ahead, announced = b.Urgent()
		require.Zero(t, ahead)
		require.False(t, announced)
		_, err = io.ReadFull(b, buf[:4])
		require.NoError(t, err)
		require.Equal(t, "more", string(buf[:4]))
	})
}

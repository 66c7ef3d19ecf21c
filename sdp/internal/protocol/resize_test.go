package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// resizing returns ends of which a has longer send buffers than b's receive buffers, and has
// requested larger ones.
func resizing(t *testing.T) (w *world, a, b *end) {
	w = newWorld(t, 1)
	cfg := Config{FlowControl: flow.Credit, Buffers: 4, BufferBytes: 300, Queue: 16, Receives: 16, MaxAdverts: 1}
	small := cfg
	small.BufferBytes, small.MaxBufferBytes = 100, 200
	w.connect(cfg, small, false)
	for _, e := range w.ends {
		e.core.controls.depth = ControlQueue
		e.writer, e.reader = writer{end: e}, reader{end: e}
	}
	a, b = w.ends[0], w.ends[1]
	require.Equal(t, 100, a.core.PeerBufferBytes())
	require.False(t, a.core.RequestPeerSize(100), "not more than it is")
	require.True(t, a.core.RequestPeerSize(250))
	require.False(t, a.core.RequestPeerSize(260), "before there is an answer")
	a.post()
	w.runUntilIdle()
	require.Equal(t, 200, b.core.RequestedBufferBytes(), "as much as b's configuration allows")
	return w, a, b
}

// longestMessage returns the length of the longest message of a.
func longestMessage(w *world, a, b *end) (n int) {
	require.Positive(w.t, a.core.Write(make([]byte, 1000)))
	for _, wr := range a.core.Sends() {
		if k, _ := splitWRID(wr.WRID); k == kindData {
			require.Equal(w.t, verbs.WRSendWithImm, wr.Opcode)
			n = max(n, int(wr.SGList[0].Length))
		}
	}
	a.post()
	w.runUntilIdle()
	for b.core.Read(make([]byte, 1000)) > 0 {
		b.post()
		w.runUntilIdle()
	}
	return n
}

// TestResize checks that the new size applies when no old receive is left.
func TestResize(t *testing.T) {
	w, a, b := resizing(t)
	require.False(t, b.core.GrantResize(w.register("too short", 10), 200))
	require.False(t, b.core.GrantResize(w.register("more than requested", b.cfg.ResizeBytes(300)), 300))
	require.False(t, b.core.GrantResize(w.register("not larger", b.cfg.ResizeBytes(100)), 100))
	require.True(t, b.core.GrantResize(w.register("larger receives", b.cfg.ResizeBytes(180)), 180))
	require.Zero(t, b.core.RequestedBufferBytes())
	require.False(t, b.core.GrantResize(w.register("again", b.cfg.ResizeBytes(190)), 190), "nobody asked")
	require.True(t, b.core.Resizing())
	w.runUntilIdle()
	require.Equal(t, 100, a.core.PeerBufferBytes(), "the receives that are posted are the old ones")

	sizes := []int{longestMessage(w, a, b)}
	for range 4 {
		sizes = append(sizes, longestMessage(w, a, b))
	}
	require.Equal(t, 100, sizes[0])
	require.Equal(t, 180, sizes[4])
	require.Equal(t, 180, a.core.PeerBufferBytes())
	require.False(t, b.core.Resizing())
	w.giveBack(b.cfg.Slots)
	require.Equal(t, 180, longestMessage(w, a, b))
	require.True(t, a.core.RequestPeerSize(300), "and again")
	a.post()
	w.runUntilIdle()
	require.Equal(t, 200, b.core.RequestedBufferBytes())
}

func TestResizeDeclined(t *testing.T) {
	w, a, b := resizing(t)
	require.True(t, b.core.GrantResize(Memory{}, 0))
	b.post()
	w.runUntilIdle()
	require.Equal(t, 100, a.core.PeerBufferBytes())
	require.Equal(t, 100, longestMessage(w, a, b))
	require.True(t, b.core.RequestPeerSize(400))
	b.post()
	w.runUntilIdle() // a's configuration permits none: the reply needs no call
	require.Equal(t, 300, b.core.PeerBufferBytes())
	require.True(t, b.core.RequestPeerSize(400))
}

// TestChangeRing checks that another ring is used in the middle of the stream.
func TestChangeRing(t *testing.T) {
	for _, d := range allFlowControls[:2] {
		w, a, b := pair(t, d)
		old := b.cfg.Ring
		require.False(t, b.core.ChangeRing(w.register("a shorter ring", len(old.Bytes)-1)))
		a.writer.total = 2000
		for range 4 {
			a.writer.step()
			w.runUntilIdle()
		}
		buffered := b.core.Buffered()
		require.Positive(t, buffered)
		require.True(t, b.core.ChangeRing(w.register("another ring", len(old.Bytes)+100)))
		require.False(t, b.core.ChangeRing(w.register("a third one", len(old.Bytes)+100)), "one at a time")
		b.post()
		w.runUntilIdle()
		require.True(t, b.core.ChangingRing(), "the old one is not empty")
		require.Equal(t, uint32(len(old.Bytes)+100), a.core.peer.Ring)
		for b.core.ChangingRing() {
			require.True(t, b.reader.step())
			w.runUntilIdle()
		}
		w.giveBack(old)
		for a.writer.step() || b.reader.step() || w.move() {
		}
		require.Equal(t, 2000, b.reader.off)
		require.True(t, b.core.Finished())
	}
	w, a, _ := pair(t, flow.Credit)
	require.False(t, a.core.ChangeRing(w.register("a ring", 1<<12)), "there is none to change")
	require.False(t, a.core.ChangingRing())
}

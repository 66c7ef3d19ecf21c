package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
)

// bothWays returns ends with data for a in a's ring, in b's adapter and in b's send buffer, when a
// offers memory to b.
func bothWays(t *testing.T, seed uint64) (w *world, a, b *end) {
	w = newWorld(t, seed)
	w.connect(w.drawConfig(flow.NIC), w.drawConfig(flow.NIC), false)
	a, b = w.ends[0], w.ends[1]
	a.writer = writer{end: a, total: 300, patient: true}
	a.reader = reader{end: a}
	b.writer = writer{end: b, total: 10_000}
	b.reader = reader{end: b}
	for b.writer.step() || w.move() {
	}
	require.Zero(t, len(a.rq), "a's ring is full")
	require.NotEmpty(t, b.sq, "b's adapter holds messages back")
	require.Zero(t, b.core.sender.Free(), "b's send buffer is full")
	a.writer.offer(300)
	return w, a, b
}

// TestSpill checks that with NIC flow control an end that only waits for the reply to its offer
// makes space for data of the other end: the RDMA READ and the reply follow that data.
func TestSpill(t *testing.T) {
	everySeed(t, func(t *testing.T, seed uint64) {
		for _, spills := range []bool{false, true} {
			w, a, b := bothWays(t, seed)
			a.writer.spills = spills
			for moved := true; moved && a.writer.offering; {
				for w.move() {
				}
				moved = a.writer.step()
				moved = b.reader.step() || moved
				moved = w.move() || moved
				require.LessOrEqual(t, a.core.spilledBytes(), b.cfg.ringCapacity()+2*a.cfg.Window)
				require.LessOrEqual(t, len(a.rq), max(0, (a.core.receiver.(*flow.NICReceiver).Free()-a.cfg.Window)/a.cfg.Window))
			}
			require.Equal(t, !spills, a.writer.offering)
			if !spills {
				require.True(t, b.reader.fetching, "b waits for its RDMA READ, a for b")
				require.Zero(t, a.core.spilledBytes())
				continue
			}
			if a.core.spilledBytes() > 0 {
				require.False(t, a.core.CanOffer(), "while anything lies outside the ring")
			}
			for a.reader.step() || w.move() {
			}
			require.Zero(t, a.core.spilledBytes())
			require.True(t, a.core.CanOffer())
			require.Equal(t, b.writer.off, a.reader.off)
		}
	})
}

// TestSpillBounded checks that the moved data is bounded if the other end keeps writing, and reads
// in small segments, and that a canceled offer gets its reply.
func TestSpillBounded(t *testing.T) {
	everySeed(t, func(t *testing.T, seed uint64) {
		w, a, b := bothWays(t, seed)
		a.writer.spills = true
		b.writer.total = 1 << 20
		peer := int(a.core.peer.Buffer)
		b.reader.piece = 3
		for a.writer.offering && (b.writer.step() || w.move() || b.reader.step() || a.writer.step()) {
			require.LessOrEqual(t, a.core.spilledBytes(), peer+2*a.cfg.Window)
		}
		if !a.writer.offering {
			return // the reply was sent before
		}
		a.core.CancelOffer()
		a.post()
		for a.writer.offering {
			moved := w.move() || a.writer.step()
			moved = b.writer.step() || moved
			require.True(t, b.reader.step() || moved, "the offer is cancelled, and has no answer")
			require.LessOrEqual(t, a.core.spilledBytes(), 2*peer+4*a.cfg.Window)
		}
	})
}

// TestCancelReplyFirst checks that the reply to a cancel precedes data that is written later.
func TestCancelReplyFirst(t *testing.T) {
	w, a, b := pair(t, flow.NIC)
	a.writer.offer(10)
	w.runUntilIdle()
	fillControls(b)
	a.core.CancelOffer()
	a.post()
	w.runUntilIdle()
	require.Equal(t, 1, b.core.Write([]byte{1}))
	require.Empty(t, posted(b))
	release(b)
	require.Equal(t, []string{"SendSm", "data"}, posted(b))
	b.post()
	w.runUntilIdle()
	require.False(t, a.core.Offering())
}

// TestSpillNot checks that only an end that waits for its offer moves data, and only if the other
// end is blocked.
func TestSpillNot(t *testing.T) {
	_, a, _ := bothWays(t, 1)
	require.Positive(t, a.core.SpillRing())
	require.Positive(t, a.core.slots.posted)
	require.Zero(t, a.core.SpillRing(), "there is a receive")

	_, a, _ = pair(t, flow.NIC)
	require.Zero(t, a.core.SpillRing())
	for _, d := range []flow.Control{flow.RDMA, flow.Credit} {
		_, a, _ := pair(t, d)
		a.writer.offer(10)
		require.True(t, a.core.Offering())
		require.Zero(t, a.core.SpillRing())
	}
}

// TestSpillOfInvalidPeer checks that a peer alone cannot make this end buffer more than a bound: one that
// announces a longer send buffer gets no offers.
func TestSpillOfInvalidPeer(t *testing.T) {
	e := newEvil(t, flow.NIC)
	e.core.Start(Peer{FlowControl: flow.NIC, Bufs: 20, BufferBytes: 116, MaxAdverts: 1, Ring: 850, Buffer: maxSpill + 1, Window: 50})
	require.False(t, e.core.CanOffer())

	e = newEvil(t, flow.NIC).start()
	require.True(t, e.core.CanOffer())
	offerOf(e, 9)
	require.Equal(t, 800+100, e.core.spillLimit())
	e.deliverMessage(bsdh.MIDRingChange, ringOf(bsdh.MaxRing-1)).finish()
	require.EqualValues(t, bsdh.MaxRing-1, e.core.peer.Ring)
	require.Equal(t, 800+100, e.core.spillLimit(), "its ring is no business of ours")
	e.core.CancelOffer()
	e.handlePosts()
	e.finish()
	require.Equal(t, 2*(800+100), e.core.spillLimit())
}

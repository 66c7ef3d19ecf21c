package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// pair connects two ends with a flow control and plain sizes: 8 buffers of 100 bytes, windows of
// 50, 16 receives.
func pair(t *testing.T, d flow.Control) (w *world, a, b *end) {
	w = newWorld(t, 1)
	cfg := Config{FlowControl: d, Buffers: 8, BufferBytes: 100, Window: 50, Queue: 16, Receives: 16, MaxAdverts: 1, MaxBufferBytes: 200}
	w.connect(cfg, cfg, false)
	w.runUntilIdle()
	for _, e := range w.ends {
		e.core.controls.depth = ControlQueue
		e.writer, e.reader = writer{end: e}, reader{end: e}
	}
	return w, w.ends[0], w.ends[1]
}

// TestLastCredits checks that with both buffers full and without readers two receives are left on
// each side, so that control messages pass from either side.
func TestLastCredits(t *testing.T) {
	everySeed(t, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		a, b := w.drawConfig(flow.Credit), w.drawConfig(flow.Credit)
		a.Buffers, b.Buffers = w.between(1, 4), w.between(1, 4)
		w.connect(a, b, false)
		for _, e := range w.ends {
			require.True(t, e.core.ChangeMode(bsdh.ModeChange{Mode: bsdh.Pipelined}))
			e.post()
		}
		w.runUntilIdle()
		for full := 0; full < 20; {
			w.move()
			e := w.ends[w.rng.IntN(2)]
			full++
			if e.core.Write([]byte{1}) > 0 {
				full = 0
			}
			e.post()
		}
		for range 30 {
			var lent [2]Memory
			for _, i := range w.rng.Perm(2)[:w.between(1, 2)] {
				e := w.ends[i]
				lent[i] = w.register("an offer", 10)
				require.True(t, e.core.CanOffer())
				e.core.Offer(lent[i].Bytes, lent[i].Addr, lent[i].RKey)
				e.post()
				for range w.rng.IntN(10) {
					w.move()
				}
			}
			for _, i := range w.rng.Perm(2) {
				w.ends[i].core.CancelOffer()
				w.ends[i].post()
				for range w.rng.IntN(10) {
					w.move()
				}
			}
			w.runUntilIdle()
			for i, e := range w.ends {
				if e.core.Offering() {
					w.dump()
				}
				require.False(t, e.core.Offering(), "%s's offer is cancelled and has no answer", e.name)
				if lent[i].Bytes != nil {
					w.giveBack(lent[i])
				}
			}
		}
	})
}

// TestCreditUpdatesAreReturned checks that credit updates, which consume the last credits for messages
// without data, are returned by a peer that neither reads nor writes.
func TestCreditUpdatesAreReturned(t *testing.T) {
	for reads := range 9 {
		for i := range 2 {
			w, _, _ := pair(t, flow.Credit)
			for _, e := range w.ends {
				for range 8 {
					require.Equal(t, 1, e.core.Write([]byte{1}))
					e.post()
				}
			}
			w.runUntilIdle()
			e := w.ends[i]
			for range reads {
				require.Equal(t, 1, e.core.Read(make([]byte, 1)))
				e.post()
				w.runUntilIdle()
			}
			require.True(t, e.core.RequestPeerSize(150))
			e.post()
			w.runUntilIdle()
			require.Equal(t, 150, e.peer.core.RequestedBufferBytes(), "%s has read %d", e.name, reads)
		}
	}
}

// TestDelayedCreditUpdate checks that a credit update is sent when half of the receives are new, not after
// each message.
func TestDelayedCreditUpdate(t *testing.T) {
	for _, d := range []flow.Control{flow.RDMA, flow.Credit} {
		w, a, b := pair(t, d)
		before := b.core.Stats().Controls
		for range 100 {
			require.Equal(t, 1, a.core.Write([]byte{1}))
			a.post()
			w.runUntilIdle()
			require.Equal(t, 1, b.core.Read(make([]byte, 10)))
			b.post()
			w.runUntilIdle()
		}
		words := b.core.Stats().Controls - before
		most := 100 / (b.core.receiver.Receives() / 2)
		require.LessOrEqual(t, int(words), most, "%v", d)
		require.GreaterOrEqual(t, int(words), most*3/4, "%v", d)
		require.LessOrEqual(t, a.core.Stats().Controls, uint64(most/2))
	}
}

// TestFallbackSendsCredits checks that an end that requested a ring and gets a connection by credits sends
// the remaining receives, since the Hello had fewer.
func TestFallbackSendsCredits(t *testing.T) {
	w := newWorld(t, 1)
	cfg := Config{FlowControl: flow.NIC, Buffers: 1, BufferBytes: 100, Window: 50, Queue: 16, Receives: 16, MaxAdverts: 1}
	w.connect(cfg, cfg, true)
	w.runUntilIdle()
	require.Equal(t, 1, w.ends[1].core.Write([]byte{1}))
}

// posted returns the names of the messages that the core has for its queue pair.
func posted(e *end) (list []string) {
	for _, wr := range e.core.Sends() {
		name := "data"
		if k, _ := splitWRID(wr.WRID); k == kindControl {
			name = bsdh.MID(wr.InlineData[0]).String()
		} else if k == kindWrite {
			name = "write"
		}
		list = append(list, name)
	}
	return list
}

// fillControls makes the send queue refuse messages without data, as if earlier ones were not
// complete.
func fillControls(e *end) { e.core.controls.done -= e.core.controls.depth }

func release(e *end) {
	e.core.controls.done += e.core.controls.depth
	e.core.buildRequests()
}

// TestStreamOrder checks that data does not overtake messages that must arrive before it, even if
// the send queue has no space for them.
func TestStreamOrder(t *testing.T) {
	for _, d := range []flow.Control{flow.NIC, flow.RDMA} {
		sinking := func() (w *world, a, b *end) {
			w, a, b = pair(t, d)
			require.True(t, b.core.CanOfferSink())
			m := w.register("a sink", 50)
			b.core.OfferSink(m.Addr, m.RKey, 50)
			b.post()
			w.runUntilIdle()
			require.Equal(t, 50, a.core.PeerSinkLen())
			return w, a, b
		}

		w, a, b := sinking()
		fillControls(a)
		placed := w.register("what is placed", 20)
		a.core.WritePeerSink(placed.SGE(0, 20))
		require.Equal(t, 3, a.core.Write([]byte{1, 2, 3}))
		require.Equal(t, []string{"write"}, posted(a))
		release(a)
		require.Equal(t, []string{"write", "RdmaWrCompl", "data"}, posted(a))
		a.post()
		w.runUntilIdle()
		n, done := b.core.SinkWritten()
		require.True(t, done)
		require.Equal(t, 20, n)
		require.Equal(t, 3, b.core.Buffered())

		w, a, b = sinking()
		fillControls(a)
		b.core.CancelSink()
		b.post()
		w.runUntilIdle()
		require.Zero(t, a.core.PeerSinkLen())
		require.Equal(t, 1, a.core.Write([]byte{1}))
		require.Empty(t, posted(a))
		release(a)
		require.Equal(t, []string{"SinkCancelAck", "data"}, posted(a))
		a.post()
		w.runUntilIdle()
		require.False(t, b.core.SinkActive())

		w, a, _ = sinking()
		fillControls(a)
		require.False(t, a.core.CanOffer(), "the peer waits for data")
		require.Equal(t, 1, a.core.Write([]byte{1}))
		require.Zero(t, a.core.PeerSinkLen(), "the data voids it")
		require.True(t, a.core.CanOffer())
		m := w.register("an offer", 9)
		a.core.Offer(m.Bytes, m.Addr, m.RKey)
		require.Zero(t, a.core.Write([]byte{1}))
		require.False(t, a.core.Writable())
		release(a)
		require.Equal(t, []string{"data", "SrcAvail"}, posted(a))
	}
}

// TestDelayAck checks that messages of credit-based flow control request no acknowledgement until
// half of the send buffer waits for one.
func TestDelayAck(t *testing.T) {
	_, a, _ := pair(t, flow.Credit)
	for a.core.Write([]byte{1}) > 0 {
	}
	sends := a.core.Sends()
	require.Greater(t, len(sends), 2)
	require.NotZero(t, sends[0].Flags&verbs.SendDelayAck)
	require.Zero(t, sends[len(sends)-1].Flags&verbs.SendDelayAck)
}

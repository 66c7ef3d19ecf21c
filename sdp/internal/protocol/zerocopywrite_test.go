package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
)

// TestOfferRefused checks that the end of an offer shows whether the peer wants copies: not if its
// own memory was first, nor if all was read or the offer was canceled.
func TestOfferRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      func(w *world, a, b *end)
		refused bool
	}{
		{"refused", func(w *world, a, b *end) {
			a.post()
			w.runUntilIdle()
			b.core.RefuseSource()
		}, true},
		{"after a part", func(w *world, a, b *end) {
			a.post()
			w.runUntilIdle()
			into := w.register("a part", 40)
			b.core.ReadPeerSource(into.SGE(0, 40))
			b.post()
			w.runUntilIdle()
			b.core.RefuseSource()
		}, true},
		{"read", func(w *world, a, b *end) {
			a.post()
			w.runUntilIdle()
			into := w.register("all", 100)
			b.core.ReadPeerSource(into.SGE(0, 100))
		}, false},
		{"crossed", func(w *world, a, b *end) {
			sink := w.register("a sink", 100)
			b.core.OfferSink(sink.Addr, sink.RKey, 100)
		}, false},
		{"crossed, and the sink taken back", func(w *world, a, b *end) {
			sink := w.register("a sink", 100)
			b.core.OfferSink(sink.Addr, sink.RKey, 100)
			b.core.CancelSink()
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a, b := pair(t, flow.NIC)
			lent := w.register("an offer", 100)
			a.core.Offer(lent.Bytes, lent.Addr, lent.RKey)
			c.do(w, a, b)
			b.post()
			a.post()
			w.runUntilIdle()
			require.False(t, a.core.Offering())
			require.Equal(t, c.refused, a.core.OfferRefused())
			require.Equal(t, c.refused, a.core.stats.OffersRefused > 0)
		})
	}
}

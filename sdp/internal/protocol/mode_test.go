package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
)

// TestSinkAcrossModes checks that a SinkAvail in flight is void after a mode change, for the peer
// and for the end that has changed the mode, also if it has changed back.
func TestSinkAcrossModes(t *testing.T) {
	for _, c := range []struct {
		name  string
		modes []bsdh.ModeChange // of a, in pipelined mode
		kept  bool
	}{
		{"no change", nil, true},
		{"there", []bsdh.ModeChange{{Mode: bsdh.Combined}}, false},
		{"there and back", []bsdh.ModeChange{{Mode: bsdh.Combined}, {Mode: bsdh.Pipelined}}, false},
		{"of the other half", []bsdh.ModeChange{{Mode: bsdh.Combined, SendHalf: true}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a, b := pipelined(t)
			if len(c.modes) > 0 && c.modes[0].SendHalf { // requested from buffered mode only
				require.True(t, b.core.ChangeMode(bsdh.ModeChange{Mode: bsdh.Combined}))
				b.post()
				w.runUntilIdle()
				require.True(t, b.core.ChangeMode(bsdh.ModeChange{Mode: bsdh.Buffered}))
				b.post()
				w.runUntilIdle()
			}
			require.True(t, b.core.CanOfferSink())
			sink := w.register("a sink of b", 9)
			b.core.OfferSink(sink.Addr, sink.RKey, 9) // not posted: a is notified when it has changed
			for _, m := range c.modes {
				require.True(t, a.core.ChangeMode(m))
				a.post()
			}
			b.post()
			w.runUntilIdle()
			require.Equal(t, c.kept, a.core.PeerSinkLen() > 0)
			require.Equal(t, c.kept, b.core.SinkActive())
		})
	}
}

// pipelined returns two ends by credits, either in pipelined mode.
func pipelined(t *testing.T) (w *world, a, b *end) {
	w, a, b = pair(t, flow.Credit)
	for _, e := range w.ends {
		require.True(t, e.core.ChangeMode(bsdh.ModeChange{Mode: bsdh.Pipelined}))
		e.post()
		w.runUntilIdle()
	}
	return w, a, b
}

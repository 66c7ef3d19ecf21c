package protocol

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	firstSeed = flag.Uint64("seed", 1, "first seed of the simulations")
	seeds     = flag.Uint64("seeds", 30, "number of seeds")
)

// everySeed runs a simulation for each seed.
func everySeed(t *testing.T, run func(t *testing.T, seed uint64)) {
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { run(t, seed) })
	}
}

// TestGoodNetwork checks that on a good network, with programs that accept, every connection is
// established, both ends have each other's numbers, and both are notified of the end.
func TestGoodNetwork(t *testing.T) {
	everySeed(t, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, 3)
		w.delay = 5 * ms
		for range 20 {
			w.scheduleWithin(sec, func() { w.hosts[w.rng.IntN(3)].dial(w.hosts[w.rng.IntN(3)]) })
			w.scheduleWithin(sec, func() { w.hosts[0].requestSIDR(w.hosts[w.rng.IntN(3)]) })
		}
		w.finish()
		require.Equal(t, 20, w.hosts[0].answers)
		pairs := 0
		for _, h := range w.hosts {
			for _, c := range h.all {
				require.True(t, c.connected, "%v", c.history)
				if !c.active {
					continue
				}
				pairs++
				peer := w.find(func(o *userConn) bool { return !o.active && o.qpn == c.remoteQPN })
				require.Equal(t, []uint32{c.qpn, c.psn}, []uint32{peer.remoteQPN, peer.remotePSN})
				require.Equal(t, peer.psn, c.remotePSN)
			}
			require.Zero(t, h.m.Stats().TimedOut)
		}
		require.Equal(t, 20, pairs)
	})
}

// find returns the one connection with the condition.
func (w *world) find(such func(*userConn) bool) (found *userConn) {
	for _, h := range w.hosts {
		for _, c := range h.all {
			if such(c) {
				require.Nil(w.t, found)
				found = c
			}
		}
	}
	require.NotNil(w.t, found)
	return found
}

// TestBadNetwork checks that on a bad network programs that accept get their connections by
// retransmission.
func TestBadNetwork(t *testing.T) {
	everySeed(t, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, 2)
		w.loss, w.dup, w.delay = 0.3, 0.2, 400*ms
		for range 20 {
			w.scheduleWithin(sec, func() { w.hosts[0].dial(w.hosts[1]) })
			w.scheduleWithin(sec, func() { w.hosts[0].requestSIDR(w.hosts[1]) })
		}
		w.finish()
		require.Equal(t, 20, w.hosts[0].answers)
		connected := 0
		for _, c := range w.hosts[0].all {
			if c.connected {
				connected++
			}
		}
		require.Equal(t, 20, connected)
		require.Less(t, w.sent, 20*60)
	})
}

// TestTerribleNetwork checks that on a terrible network, with programs that reject, ignore, abandon
// and reuse queue pairs, and machines that restart, every connection ends once, without leaks.
func TestTerribleNetwork(t *testing.T) {
	everySeed(t, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, 3)
		w.loss, w.dup, w.delay, w.moody = w.rng.Float64(), w.rng.Float64(), 1+Time(w.rng.Int64N(int64(3*sec))), true
		for range 40 {
			w.scheduleWithin(20*sec, func() {
				h, to := w.hosts[w.rng.IntN(3)], w.hosts[w.rng.IntN(3)]
				if w.rng.IntN(4) == 0 {
					h.requestSIDR(to)
				}
				var c *userConn
				if w.rng.IntN(4) == 0 {
					c = h.dialWith(to, 100) // possibly of an earlier connection
				} else {
					c = h.dial(to)
				}
				if w.rng.IntN(4) == 0 { // a context ends
					w.scheduleWithin(3*sec, func() {
						if h.conns[c.id] == c && !c.connected {
							c.recordf("gives up")
							h.m.Abandon(w.now, c.id)
							c.recordEnd()
							h.dispatchEvents()
						}
					})
				}
			})
		}
		if seed%3 == 0 {
			w.scheduleWithin(10*sec, func() { w.hosts[0].restart(Config{}) })
		}
		if seed%5 == 0 {
			w.scheduleWithin(10*sec, func() {
				h := w.hosts[1]
				h.m.Unlisten(w.now, served, nil)
				for id, c := range h.conns { // requests may end without an event
					if h.m.State(id) == StateGone {
						c.recordEnd()
					}
				}
				h.dispatchEvents()
			})
		}
		w.finish()
		require.Less(t, w.sent, 40*200)
	})
}

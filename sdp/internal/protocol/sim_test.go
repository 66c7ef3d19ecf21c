package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
)

// start starts the applications of the ends.
func (w *world) start(total int, direct bool) {
	patient := w.chance(3)
	serial := !patient && w.chance(2)
	for _, e := range w.ends {
		e.writer = writer{end: e, total: w.between(0, total), direct: direct, patient: patient, serial: serial, spills: true}
		e.reader = reader{end: e, direct: direct, refuses: w.chance(2)}
	}
}

// move executes one step of a random queue.
func (w *world) move() bool {
	i := w.rng.IntN(6)
	for k := range 6 {
		e := w.ends[(i+k)%2]
		moved := false
		switch (i + k) / 2 % 3 {
		case 0:
			moved = e.execute()
		case 1:
			moved = e.complete()
		case 2:
			moved = e.poll(w.between(1, 4))
		}
		if moved {
			return true
		}
	}
	return false
}

// runUntilIdle executes all queues without the applications until idle. Two ends do not reply to
// each other for ever.
func (w *world) runUntilIdle() {
	for n := 0; w.move(); n++ {
		require.Less(w.t, n, 5000, "there is no end to it")
	}
}

// run executes random steps until both ends have ended.
func (w *world) run() {
	rings := make(map[*end]Memory)
	idle := 0
	for !w.bothEnded() {
		w.steps++
		if w.steps > 200_000 {
			w.dump()
			require.Fail(w.t, "there is no end to it")
		}
		e := w.ends[w.rng.IntN(2)]
		moved := false
		switch n := w.rng.IntN(100); {
		case n < 60:
			moved = w.move()
		case n < 75:
			if e.writer.resting--; e.writer.resting < 0 {
				moved = e.writer.step()
			}
		case n < 90:
			if e.reader.resting--; e.reader.resting < 0 {
				moved = e.reader.step()
			}
		case n < 94:
			e.runRareOperation(rings)
		case n == 94:
			w.runUntilIdle()
		case n == 95 && w.chance(4):
			e.writer.resting = w.between(1, 30)
		case n == 96 && w.chance(4):
			e.reader.resting = w.between(1, 30)
		}
		if idle++; moved {
			idle = 0
		}
		if idle > 2000 {
			w.dump()
			require.Fail(w.t, "deadlock")
		}
	}
	w.runUntilIdle()
	for _, e := range w.ends {
		require.True(w.t, e.core.BothClosed())
		require.Equal(w.t, e.writer.total, e.peer.reader.off)
		require.Zero(w.t, e.core.spilledBytes())
		if n := len(e.writer.urgent); n > 0 {
			seen := e.peer.reader.urgent
			require.NotEmpty(w.t, seen)
			require.Equal(w.t, e.writer.urgent[n-1], seen[len(seen)-1])
		}
	}
}

// bothEnded reports whether both applications have ended, and both cores know.
func (w *world) bothEnded() bool {
	for _, e := range w.ends {
		if !e.reader.eof || !e.core.BothClosed() || e.writer.offering {
			return false
		}
	}
	return true
}

// dump returns the state of both ends.
func (w *world) dump() {
	for _, e := range w.ends {
		c := e.core
		w.t.Logf("%s: written %d of %d, read %d, eof %v; offering %v placing %v fetching %v sinking %v", e.name,
			e.writer.off, e.writer.total, e.reader.off, e.reader.eof, e.writer.offering, e.writer.placing, e.reader.fetching, e.reader.sinking)
		w.t.Logf("   buffered %d, unposted %d, unsent %d, room %d, credits %d, posted %d, known %d, fresh %d, empty %d",
			c.Buffered(), c.sender.Unposted(), c.sender.Unsent(), c.sender.Free(), c.credits.Available(), c.slots.posted, c.advertisedLeft(), c.unadvertised(), c.advertised.emptyMessages)
		w.t.Logf("   sq %d executed %d cq %d rq %d stream %v aside %v word %v", len(e.sq), len(e.executed), len(e.cq), len(e.rq), c.controls.ordered, c.controls.unordered, c.controls.creditUpdateDue)
		w.t.Logf("   avail %+v offer %+v sink %+v drain %+v modes %+v closing %v parted %v there %v finished %v", c.peerSource, c.offer, c.sink, c.peerSink, c.mode, c.closing, c.disConnSeq, c.disConnDelivered, c.peerClosed)
	}
}

// TestRandomOperations checks that each application gets the data that the other has written, that no call
// waits for ever, and that lent memory is not accessed afterwards.
func TestRandomOperations(t *testing.T) {
	for _, d := range []flow.Control{flow.NIC, flow.RDMA, flow.Credit} {
		for _, direct := range []bool{false, true} {
			name := d.String()
			if direct {
				name += "/direct"
			}
			t.Run(name, func(t *testing.T) {
				everySeed(t, func(t *testing.T, seed uint64) {
					w := newWorld(t, seed)
					w.connect(w.drawConfig(d), w.drawConfig(d), false)
					w.start(5000, direct)
					w.run()
				})
			})
		}
	}
}

// TestPlainPeer checks that a standard peer is served by credits.
func TestPlainPeer(t *testing.T) {
	everySeed(t, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		w.connect(w.drawConfig(flow.Control(w.rng.IntN(3))), w.drawConfig(flow.Credit), true)
		for _, e := range w.ends {
			require.Equal(t, flow.Credit, e.core.peer.FlowControl)
		}
		w.start(5000, w.chance(2))
		w.run()
	})
}

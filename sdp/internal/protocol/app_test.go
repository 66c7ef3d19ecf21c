package protocol

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
)

// pattern returns the byte at an offset of an end's stream.
func (e *end) pattern(off int) byte {
	x := uint32(off)*2654435761 + uint32(e.name[0])
	return byte(x >> 24)
}

// fill returns n bytes of it.
func (e *end) fill(p []byte, off int) {
	for i := range p {
		p[i] = e.pattern(off + i)
	}
}

// writer is an application that writes in random ways.
type writer struct {
	end      *end
	off      int // bytes written
	total    int // to be written
	direct   bool
	urgent   []int  // offsets after urgent bytes
	lent     Memory // offered, or being written from
	offering bool
	placing  bool
	patient  bool // never cancels, nor does the reader
	serial   bool // the reader waits while the writer does something other than Write
	spills   bool // while it offers
	resting  int  // steps
}

// reader is an application that reads.
type reader struct {
	end      *end
	off      int // bytes read
	eof      bool
	direct   bool
	refuses  bool
	piece    int    // maximum bytes of a fetch, if not 0
	lent     Memory // lent to a fetch or a sink
	size     int
	fetching bool
	sinking  bool
	urgent   []int // offsets after urgent bytes seen
	resting  int
	buf      [400]byte
}

// step executes one step if possible.
func (a *writer) step() bool {
	e := a.end
	c, w := e.core, e.w
	defer e.post()
	switch {
	case a.offering:
		return a.waitOffer()
	case a.placing:
		n, done := c.PeerSinkWritten()
		if !done {
			return false
		}
		require.Equal(w.t, len(a.lent.Bytes), n)
		a.off += n
		a.placing = false
		w.giveBack(a.lent)
		return true
	case a.off == a.total:
		if c.Closing() {
			return false
		}
		c.CloseWrite()
		require.Zero(w.t, c.Write([]byte{1}))
		return true
	}
	n := min(a.total-a.off, w.between(1, 400))
	switch {
	case a.direct && c.PeerSinkLen() > 0 && !w.chance(4):
		n = min(n, c.PeerSinkLen())
		a.lend("a place", n)
		a.placing = true
		c.WritePeerSink(a.lent.SGE(0, n))
		return true
	case a.direct && c.CanOffer() && w.chance(2):
		a.offer(n)
		return true
	}
	if a.direct && !c.CanOffer() {
		c.RequestReceiveUpdate()
	}
	p := make([]byte, n)
	e.fill(p, a.off)
	writable := c.Writable()
	var k int
	if w.chance(8) {
		if k = c.SendUrgent(p); k == n {
			a.urgent = append(a.urgent, a.off+n)
		}
	} else {
		k = c.Write(p)
	}
	require.Equal(w.t, writable, k > 0)
	a.off += k
	return k > 0
}

// offer offers the next n bytes.
func (a *writer) offer(n int) {
	require.True(a.end.w.t, a.end.core.CanOffer())
	a.lend("an offer", n)
	a.offering = true
	a.end.core.Offer(a.lent.Bytes, a.lent.Addr, a.lent.RKey)
	a.end.post()
}

func (a *writer) lend(what string, n int) {
	a.lent = a.end.w.register(what+" of "+a.end.name, n)
	a.end.fill(a.lent.Bytes, a.off)
}

// waitOffer waits for the end of an offer.
func (a *writer) waitOffer() bool {
	e := a.end
	c, w := e.core, e.w
	n, done := c.Offered()
	require.Equal(w.t, done, !c.Offering())
	require.LessOrEqual(w.t, n, len(a.lent.Bytes))
	if done {
		a.off += n
		a.offering = false
		w.giveBack(a.lent)
		if a.total < 0 {
			a.total = a.off
		}
		return true
	}
	require.Zero(w.t, c.Write([]byte{1}), "behind what is offered")
	if a.spills && c.SpillRing() > 0 {
		return true
	}
	if !a.patient && w.chance(40) { // the application has canceled
		c.CloseWrite()
		a.total = -1
	}
	if (!a.patient || a.total < 0) && !c.offer.cancelled && w.chance(20) {
		c.CancelOffer()
		return true
	}
	return false
}

// step executes one step if possible.
func (a *reader) step() bool {
	e := a.end
	c, w := e.core, e.w
	defer e.post()
	switch {
	case e.writer.serial && (e.writer.offering || e.writer.placing):
		return false
	case a.fetching:
		n, done := c.PeerSourceRead()
		if !done {
			return false
		}
		require.Equal(w.t, a.size, n)
		a.fetching = false
		a.check(a.lent.Bytes)
		w.giveBack(a.lent)
		return true
	case a.sinking:
		n, done := c.SinkWritten()
		if done {
			a.sinking = false
			a.check(a.lent.Bytes[:n])
			w.giveBack(a.lent)
			return true
		}
		if !e.writer.patient && !c.sink.cancelled && w.chance(20) {
			c.CancelSink()
			return true
		}
		return false
	case c.Buffered() > 0:
		e.pollUrgent()
		p := a.buf[:w.between(1, len(a.buf))]
		n := c.Read(p)
		require.Positive(w.t, n)
		a.check(p[:n])
		return true
	case c.Finished():
		a.eof = true
		return false
	case c.PeerSourceLen() > 0:
		if a.refuses && w.chance(3) {
			c.RefuseSource()
			require.Zero(w.t, c.PeerSourceLen())
			return true
		}
		a.size = w.between(1, c.PeerSourceLen())
		if a.piece > 0 {
			a.size = min(a.piece, c.PeerSourceLen())
		}
		a.lent = w.register("a fetch of "+e.name, a.size)
		a.fetching = true
		c.ReadPeerSource(a.lent.SGE(0, a.size))
		return true
	case a.direct && !c.CanOfferSink() && w.chance(3):
		c.RequestReceiveUpdate()
	case a.direct && c.CanOfferSink() && w.chance(3):
		a.size = w.between(1, 500)
		a.lent = w.register("a sink of "+e.name, a.size)
		a.sinking = true
		c.OfferSink(a.lent.Addr, a.lent.RKey, a.size)
		return true
	}
	return false
}

// check compares the read data with the written data.
func (a *reader) check(p []byte) {
	for i, b := range p {
		if b != a.end.peer.pattern(a.off+i) {
			require.Fail(a.end.w.t, "wrong data", "%s read byte %d of %d", a.end.name, a.off+i, a.end.peer.writer.off)
		}
	}
	a.off += len(p)
}

// pollUrgent reads the position of the urgent byte, after each completion and before a read.
func (e *end) pollUrgent() {
	a := &e.reader
	if a.fetching || a.sinking || e.peer.writer.total == 0 {
		return // off is outdated, or the test has no applications
	}
	if ahead, _ := e.core.Urgent(); ahead > 0 {
		require.LessOrEqual(e.w.t, ahead, e.core.Buffered())
		at := a.off + ahead
		require.Contains(e.w.t, e.peer.writer.urgent, at)
		if n := len(a.urgent); n == 0 || a.urgent[n-1] != at {
			a.urgent = append(a.urgent, at)
		}
	}
}

// runRareOperation executes one of the rare operations.
func (e *end) runRareOperation(rings map[*end]Memory) {
	c, w := e.core, e.w
	defer e.post()
	switch w.rng.IntN(6) {
	case 0:
		c.SendKeepAlive()
	case 1:
		before := c.mode
		m := bsdh.ModeChange{Mode: bsdh.Mode(w.rng.IntN(3)), SendHalf: w.chance(2)}
		if !c.ChangeMode(m) {
			require.Equal(w.t, before, c.mode)
		}
	case 2:
		c.RequestPeerSize(w.between(64, 400))
	case 3:
		if e.old.Bytes != nil && !c.Resizing() {
			w.giveBack(e.old)
			e.old = Memory{}
		}
		if n := c.RequestedBufferBytes(); n > 0 && !c.Resizing() {
			if w.chance(3) {
				require.True(w.t, c.GrantResize(Memory{}, 0))
				return
			}
			n = w.between(c.bufSize.ours-bsdh.HeaderBytes+1, n)
			larger := w.register("larger receives of "+e.name, c.cfg.ResizeBytes(n))
			require.True(w.t, c.GrantResize(larger, n))
			require.Zero(w.t, c.RequestedBufferBytes())
			e.old, e.cfg.Slots = e.cfg.Slots, larger
		}
	case 4:
		ring, ok := rings[e]
		if ok && !c.ChangingRing() {
			w.giveBack(e.cfg.Ring) // it is returned
			e.cfg.Ring = ring
			delete(rings, e)
			ok = false
		}
		if !ok && len(e.cfg.Ring.Bytes) > 0 {
			n := len(e.cfg.Ring.Bytes) + w.between(0, 40)
			if wanted := c.RingWanted(); wanted > 0 && w.chance(2) {
				require.Greater(w.t, wanted, c.RingSize())
				n = wanted + e.cfg.RingSlack()
			}
			ring = w.register("another ring of "+e.name, n)
			if c.ChangeRing(ring) {
				rings[e] = ring
			}
		}
	case 5:
		require.Zero(w.t, c.Write(nil))
	}
}

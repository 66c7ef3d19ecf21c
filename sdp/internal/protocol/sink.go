package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
)

// A sink is local memory that the peer may write to (SinkAvail).
type sink struct {
	live      bool
	cancelled bool
	total     int
	written   int // bytes written by the peer, not yet returned by SinkWritten
}

// CanOfferSink reports whether a SinkAvail may be sent: no data is buffered or advertised.
func (c *Core) CanOfferSink() bool {
	return c.err == nil && c.mode.recv == bsdh.Pipelined && !c.sink.live && !c.peerSource.live && !c.peerClosed &&
		c.Buffered() == 0 && c.peer.MaxAdverts > 0 && c.mayLend()
}

// OfferSink advertises n bytes of memory for the peer to write to. The peer may write until
// [Core.SinkWritten] reports completion. CanOfferSink must be true.
func (c *Core) OfferSink(addr uint64, rkey uint32, n int) {
	m := control{id: bsdh.MIDSinkAvail}
	bsdh.SinkAvail{Len: uint32(n), RKey: rkey, Addr: addr, NonDiscards: c.carrying}.Append(m.ext[:0])
	c.sink = sink{live: true, total: n}
	c.stats.Sinks++
	c.queueControl(m)
	c.buildRequests()
}

// SinkWritten returns the number of bytes that the peer has written, once, and whether the memory
// belongs to the application again.
func (c *Core) SinkWritten() (n int, done bool) {
	n, done = c.sink.written, !c.sink.live
	c.sink.written = 0
	return n, done
}

// SinkActive reports whether the peer may still write to the memory of OfferSink.
func (c *Core) SinkActive() bool { return c.sink.live }

// CancelSink reclaims the memory. SinkWritten reports the result.
func (c *Core) CancelSink() {
	if !c.sink.live || c.sink.cancelled {
		return
	}
	c.sink.cancelled = true
	if c.dropQueued(bsdh.MIDSinkAvail) {
		c.sink.live = false
		return
	}
	c.queueControl(control{id: bsdh.MIDSinkAvailCancel})
	c.buildRequests()
}

// endSink ends the advertisement and drops its queued messages.
func (c *Core) endSink() {
	c.sink.live = false
	c.dropQueued(bsdh.MIDSinkAvail)
	c.dropQueued(bsdh.MIDSinkAvailCancel)
}

func (c *Core) handleRdmaWrCompl(n uint32) {
	s := &c.sink
	if !s.live || c.isQueued(bsdh.MIDSinkAvail) || uint64(n) > uint64(s.total) {
		c.violation("RdmaWrCompl of %d bytes without a matching SinkAvail", n)
		return
	}
	c.endSink()
	s.written = int(n)
	c.stats.BytesRead += uint64(n)
	c.stats.ZeroCopyReceived += uint64(n)
}

func (c *Core) handleSinkCancelAck() {
	if !c.sink.live || !c.sink.cancelled || c.isQueued(bsdh.MIDSinkAvailCancel) {
		c.violation("SinkCancelAck without a SinkAvailCancel")
		return
	}
	c.endSink()
}

// endCrossedSink ends a SinkAvail that crossed with data. The peer drops it as well, because the
// SinkAvail's count of data messages is outdated, or because data voids it.
func (c *Core) endCrossedSink() {
	if c.sink.live {
		c.endSink()
		c.stats.SinksCrossed++
	}
}

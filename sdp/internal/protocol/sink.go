package protocol

import (
	"github.com/softrnic/softrnic/wire/bsdh"
)

// sink is memory of our application that the peer may write to (SinkAvail).
type sink struct {
	live      bool
	cancelled bool
	total     int
	written   int // by the peer, not taken by Sunk
}

// CanOfferSink reports whether a SinkAvail may be sent: nothing is there to be read,
// or announced.
func (c *Core) CanOfferSink() bool {
	return c.err == nil && c.mode.recv == bsdh.Pipelined && !c.sink.live && !c.peerSource.live && !c.peerClosed &&
		c.Buffered() == 0 && c.peer.MaxAdverts > 0 && c.mayLend()
}

// OfferSink advertises n bytes of memory for the peer to write to, until [Core.SinkWritten]
// says that it is done. CanSink is true.
func (c *Core) OfferSink(addr uint64, rkey uint32, n int) {
	m := control{id: bsdh.MIDSinkAvail}
	bsdh.SinkAvail{Len: uint32(n), RKey: rkey, Addr: addr, NonDiscards: c.carrying}.Append(m.ext[:0])
	c.sink = sink{live: true, total: n}
	c.stats.Sinks++
	c.queueControl(m)
	c.buildRequests()
}

// SinkWritten reports how many bytes the peer has written, once, and whether the memory is the
// application's again.
func (c *Core) SinkWritten() (n int, done bool) {
	n, done = c.sink.written, !c.sink.live
	c.sink.written = 0
	return n, done
}

// SinkActive reports whether the peer may still write to what Sink gave it.
func (c *Core) SinkActive() bool { return c.sink.live }

// CancelSink asks for the memory back. The answer is in Sunk.
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

// endSink ends it: nothing of it need be said any more.
func (c *Core) endSink() {
	c.sink.live = false
	c.dropQueued(bsdh.MIDSinkAvail)
	c.dropQueued(bsdh.MIDSinkAvailCancel)
}

// handleRdmaWrCompl takes a RdmaWrCompl.
func (c *Core) handleRdmaWrCompl(n uint32) {
	s := &c.sink
	if !s.live || c.isQueued(bsdh.MIDSinkAvail) || uint64(n) > uint64(s.total) {
		c.violation("RdmaWrCompl of %d bytes, for which there was no SinkAvail", n)
		return
	}
	c.endSink()
	s.written = int(n)
	c.stats.BytesRead += uint64(n)
	c.stats.ZeroCopyReceived += uint64(n)
}

// handleSinkCancelAck takes a SinkCancelAck.
func (c *Core) handleSinkCancelAck() {
	if !c.sink.live || !c.sink.cancelled || c.isQueued(bsdh.MIDSinkAvailCancel) {
		c.violation("SinkCancelAck, and nothing was cancelled")
		return
	}
	c.endSink()
}

// endCrossedSink is what data does to a SinkAvail that is under way: the peer, who had
// not seen it, drops it, because the count of messages in it is not right. So it
// does if it had seen it and sends data all the same.
func (c *Core) endCrossedSink() {
	if c.sink.live {
		c.endSink()
		c.stats.SinksCrossed++
	}
}

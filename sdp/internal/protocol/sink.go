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

// CanSink reports whether a SinkAvail may be sent: nothing is there to be read,
// or announced.
func (c *Core) CanSink() bool {
	return c.err == nil && c.mode.recv == bsdh.Pipelined && !c.sink.live && !c.avail.live && !c.finished &&
		c.Buffered() == 0 && c.peer.MaxAdverts > 0 && c.mayLend()
}

// Sink advertises n bytes of memory for the peer to write to, until [Core.Sunk]
// says that it is done. CanSink is true.
func (c *Core) Sink(addr uint64, rkey uint32, n int) {
	m := control{id: bsdh.MIDSinkAvail}
	bsdh.SinkAvail{Len: uint32(n), RKey: rkey, Addr: addr, NonDiscards: c.carrying}.Append(m.ext[:0])
	c.sink = sink{live: true, total: n}
	c.stats.Sinks++
	c.say(m)
	c.pump()
}

// Sunk reports how many bytes the peer has written, once, and whether the memory is the
// application's again.
func (c *Core) Sunk() (n int, done bool) {
	n, done = c.sink.written, !c.sink.live
	c.sink.written = 0
	return n, done
}

// Sinking reports whether the peer may still write to what Sink gave it.
func (c *Core) Sinking() bool { return c.sink.live }

// CancelSink asks for the memory back. The answer is in Sunk.
func (c *Core) CancelSink() {
	if !c.sink.live || c.sink.cancelled {
		return
	}
	c.sink.cancelled = true
	if c.unsay(bsdh.MIDSinkAvail) {
		c.sink.live = false
		return
	}
	c.say(control{id: bsdh.MIDSinkAvailCancel})
	c.pump()
}

// endSink ends it: nothing of it need be said any more.
func (c *Core) endSink() {
	c.sink.live = false
	c.unsay(bsdh.MIDSinkAvail)
	c.unsay(bsdh.MIDSinkAvailCancel)
}

// sinkWritten takes a RdmaWrCompl.
func (c *Core) sinkWritten(n uint32) {
	s := &c.sink
	if !s.live || c.waits(bsdh.MIDSinkAvail) || uint64(n) > uint64(s.total) {
		c.violation("RdmaWrCompl of %d bytes, for which there was no SinkAvail", n)
		return
	}
	c.endSink()
	s.written = int(n)
	c.stats.BytesRead += uint64(n)
	c.stats.ZeroCopyReceived += uint64(n)
}

// sinkCancelled takes a SinkCancelAck.
func (c *Core) sinkCancelled() {
	if !c.sink.live || !c.sink.cancelled || c.waits(bsdh.MIDSinkAvailCancel) {
		c.violation("SinkCancelAck, and nothing was cancelled")
		return
	}
	c.endSink()
}

// crossed is what data does to a SinkAvail that is under way: the peer, who had
// not seen it, drops it, because the count of messages in it is not right. So it
// does if it had seen it and sends data all the same.
func (c *Core) crossed() {
	if c.sink.live {
		c.endSink()
		c.stats.SinksCrossed++
	}
}

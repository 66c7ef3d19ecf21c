package protocol

import (
	"github.com/softrnic/softrnic/verbs"
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
		c.Buffered() == 0 && c.peer.MaxAdverts > 0
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

// sinkWritten takes a RdmaWrCompl.
func (c *Core) sinkWritten(n uint32) {
	s := &c.sink
	if !s.live || uint64(n) > uint64(s.total) {
		c.violation("RdmaWrCompl of %d bytes, for which there was no SinkAvail", n)
		return
	}
	s.live, s.written = false, int(n)
	c.stats.BytesRead += uint64(n)
	c.stats.ZeroCopyReceived += uint64(n)
}

// sinkCancelled takes a SinkCancelAck.
func (c *Core) sinkCancelled() {
	if !c.sink.live || !c.sink.cancelled {
		c.violation("SinkCancelAck, and nothing was cancelled")
		return
	}
	c.sink.live = false
}

// crossed is what data does to a SinkAvail that is under way: the peer, who had
// not seen it, drops it, because the count of messages in it is not right.
func (c *Core) crossed() {
	if c.sink.live {
		c.sink.live = false
		c.stats.SinksCrossed++
	}
}

// drain is memory of the peer's application that we may write to.
type drain struct {
	live    bool
	addr    uint64
	rkey    uint32
	len     int
	writing bool
	placed  int // bytes written, not taken by Placed
}

// sinkAvailable takes a SinkAvail.
func (c *Core) sinkAvailable(ext, payload []byte) {
	s, _ := bsdh.ParseSinkAvail(ext)
	switch {
	case c.mode.send != bsdh.Pipelined:
		c.violation("SinkAvail in %v mode", c.mode.send)
	case len(payload) > 0:
		c.violation("SinkAvail with %d bytes of data", len(payload))
	case c.drain.live:
		c.violation("a second SinkAvail; %d are taken", c.cfg.MaxAdverts)
	case s.Len == 0 || s.Len > maxAdvert:
		c.violation("SinkAvail of %d bytes", s.Len)
	case s.NonDiscards != c.carried || c.sender.Unposted() > 0 || c.closing:
		// It crossed with data, which the peer will see.
	default:
		if c.offer.live { // it crossed with our SrcAvail, and wins
			c.unsay(bsdh.MIDSrcAvail)
			c.endOffer(true)
		}
		d := &c.drain // whose writer may not have looked yet at how the one before ended
		d.live, d.addr, d.rkey, d.len = true, s.Addr, s.RKey, int(s.Len)
	}
}

// Drain is how many bytes the peer waits for in memory of its own, 0 if it does
// not.
func (c *Core) Drain() int {
	if !c.drain.live || c.err != nil || c.closing {
		return 0
	}
	return c.drain.len
}

// Place writes the application's memory, at most Drain bytes of it, to the
// peer's. The result is in [Core.Placed].
func (c *Core) Place(from verbs.SGE) {
	d := &c.drain
	d.live, d.writing = false, true
	c.out = append(c.out, verbs.SendWR{
		WRID: kindWrite.wrid(uint64(from.Length)), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: c.sge(from), RemoteAddr: d.addr, RKey: d.rkey,
	})
	m := control{id: bsdh.MIDRdmaWrCompl}
	bsdh.RdmaCompl{Len: from.Length}.Append(m.ext[:0])
	c.say(m)
	c.pump()
}

// Placed returns what a Place has written, once.
func (c *Core) Placed() (n int, done bool) {
	n, done = c.drain.placed, !c.drain.writing
	c.drain.placed = 0
	return n, done
}

// Placing reports whether a Place is under way.
func (c *Core) Placing() bool { return c.drain.writing }

// placed takes the completion of a Place.
func (c *Core) placed(n int) {
	c.drain.writing = false
	c.drain.placed = n
	c.stats.BytesWritten += uint64(n)
	c.stats.ZeroCopySent += uint64(n)
}

// drainCancelled takes a SinkAvailCancel.
func (c *Core) drainCancelled() {
	if c.drain.live {
		c.drain.live = false
		c.say(control{id: bsdh.MIDSinkCancelAck})
	}
}

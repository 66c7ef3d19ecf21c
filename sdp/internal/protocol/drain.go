package protocol

import (
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// drain is memory of the peer's application that we may write to. Data that is
// written instead voids it.
type drain struct {
	live    bool
	addr    uint64
	rkey    uint32
	len     uint32
	writing bool // of this one, or the one before
	asked   int  // bytes that are being written
	placed  int  // bytes written, not taken by Placed
}

// sinkAvailable takes a SinkAvail.
func (c *Core) sinkAvailable(ext, payload []byte) {
	s, _ := bsdh.ParseSinkAvail(ext)
	switch {
	case len(payload) > 0:
		c.violation("SinkAvail with %d bytes of data", len(payload))
	case c.mode.send != bsdh.Pipelined && !c.mode.unheard:
		c.violation("SinkAvail in %v mode", c.mode.send)
	case c.drain.live:
		c.violation("a second SinkAvail; %d are taken", c.cfg.MaxAdverts)
	case s.Len == 0:
		c.violation("SinkAvail of no bytes")
	case int32(c.carried-s.NonDiscards) < 0:
		c.violation("SinkAvail after %d messages with data, and %d were sent", s.NonDiscards, c.carried)
	case c.mode.send != bsdh.Pipelined, c.mode.unheard, s.NonDiscards != c.carried, c.sender.Unposted() > 0:
		// It crossed with a change of mode (or two, there and back) or with data, which the
		// peer will see.
	default:
		if c.offer.live { // it crossed with our SrcAvail, and wins
			c.unsay(bsdh.MIDSrcAvail)
			c.endOffer(false) // it is not refused: what was offered goes to the sink
		}
		if c.closing {
			return // DisConn ends it
		}
		d := &c.drain // whose writer may not have looked yet at how the one before ended
		d.live, d.addr, d.rkey, d.len = true, s.Addr, s.RKey, s.Len
	}
}

// Drain is how many bytes the peer waits for in memory of its own, 0 if it does
// not.
func (c *Core) Drain() int {
	if !c.drain.live || c.drain.writing || c.err != nil {
		return 0
	}
	return int(min(c.drain.len, MostAtOnce))
}

// Place writes the application's memory, at most Drain bytes of it, to the
// peer's. The result is in [Core.Placed].
func (c *Core) Place(from verbs.SGE) {
	d := &c.drain
	if int64(from.Length) > int64(c.Drain()) {
		c.Fail(errBeyond)
		return
	}
	d.live, d.writing, d.asked = false, true, int(from.Length)
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
func (c *Core) placed() {
	n := c.drain.asked
	c.drain.writing = false
	c.drain.placed += n
	c.stats.BytesWritten += uint64(n)
	c.stats.ZeroCopySent += uint64(n)
}

// drainCancelled takes a SinkAvailCancel. If the SinkAvail is gone what has
// ended it is on the way already.
func (c *Core) drainCancelled() {
	if c.drain.live {
		c.drain.live = false
		c.say(control{id: bsdh.MIDSinkCancelAck})
	}
}

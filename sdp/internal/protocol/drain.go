package protocol

import (
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// peerSink is memory of the peer's application that we may write to. Data that is
// written instead voids it.
type peerSink struct {
	live    bool
	addr    uint64
	rkey    uint32
	len     uint32
	writing bool // of this one, or the one before
	length  int  // bytes that are being written
	written int  // bytes written, not taken by Placed
}

// handleSinkAvail takes a SinkAvail.
func (c *Core) handleSinkAvail(ext, payload []byte) {
	s, _ := bsdh.ParseSinkAvail(ext)
	switch {
	case len(payload) > 0:
		c.violation("SinkAvail with %d bytes of data", len(payload))
	case c.mode.send != bsdh.Pipelined && !c.mode.unacked:
		c.violation("SinkAvail in %v mode", c.mode.send)
	case c.peerSink.live:
		c.violation("a second SinkAvail; %d are taken", c.cfg.MaxAdverts)
	case s.Len == 0:
		c.violation("SinkAvail of no bytes")
	case int32(c.carried-s.NonDiscards) < 0:
		c.violation("SinkAvail after %d messages with data, and %d were sent", s.NonDiscards, c.carried)
	case c.mode.send != bsdh.Pipelined, c.mode.unacked, s.NonDiscards != c.carried, c.sender.Unposted() > 0:
		// It crossed with a change of mode (or two, there and back) or with data, which the
		// peer will see.
	default:
		if c.offer.live { // it crossed with our SrcAvail, and wins
			c.dropQueued(bsdh.MIDSrcAvail)
			c.endOffer(false) // it is not refused: what was offered goes to the sink
		}
		if c.closing {
			return // DisConn ends it
		}
		d := &c.peerSink // whose writer may not have looked yet at how the one before ended
		d.live, d.addr, d.rkey, d.len = true, s.Addr, s.RKey, s.Len
	}
}

// PeerSinkLen is how many bytes the peer waits for in memory of its own, 0 if it does
// not.
func (c *Core) PeerSinkLen() int {
	if !c.peerSink.live || c.peerSink.writing || c.err != nil {
		return 0
	}
	return int(min(c.peerSink.len, MaxTransfer))
}

// WritePeerSink writes the application's memory, at most Drain bytes of it, to the
// peer's. The result is in [Core.PeerSinkWritten].
func (c *Core) WritePeerSink(from verbs.SGE) {
	d := &c.peerSink
	if int64(from.Length) > int64(c.PeerSinkLen()) {
		c.Fail(errBeyondAdvert)
		return
	}
	d.live, d.writing, d.length = false, true, int(from.Length)
	c.out = append(c.out, verbs.SendWR{
		WRID: kindWrite.wrid(uint64(from.Length)), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: c.stageSGE(from), RemoteAddr: d.addr, RKey: d.rkey,
	})
	m := control{id: bsdh.MIDRdmaWrCompl}
	bsdh.RdmaCompl{Len: from.Length}.Append(m.ext[:0])
	c.queueControl(m)
	c.buildRequests()
}

// PeerSinkWritten returns what a Place has written, once.
func (c *Core) PeerSinkWritten() (n int, done bool) {
	n, done = c.peerSink.written, !c.peerSink.writing
	c.peerSink.written = 0
	return n, done
}

// WritingPeerSink reports whether a Place is under way.
func (c *Core) WritingPeerSink() bool { return c.peerSink.writing }

// handleSinkWriteDone takes the completion of a Place.
func (c *Core) handleSinkWriteDone() {
	n := c.peerSink.length
	c.peerSink.writing = false
	c.peerSink.written += n
	c.stats.BytesWritten += uint64(n)
	c.stats.ZeroCopySent += uint64(n)
}

// handleSinkAvailCancel takes a SinkAvailCancel. If the SinkAvail is gone what has
// ended it is on the way already.
func (c *Core) handleSinkAvailCancel() {
	if c.peerSink.live {
		c.peerSink.live = false
		c.queueControl(control{id: bsdh.MIDSinkCancelAck})
	}
}

package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/verbs"
)

// A peerSink is memory of the peer's application that the local side may write to (SinkAvail).
// Data sent instead voids it.
type peerSink struct {
	live    bool
	addr    uint64
	rkey    uint32
	len     uint32
	writing bool // an RDMA WRITE to this or the previous sink is outstanding
	length  int  // bytes being written
	written int  // bytes written, not yet returned by PeerSinkWritten
}

func (c *Core) handleSinkAvail(ext, payload []byte) {
	s, _ := bsdh.ParseExtended[bsdh.SinkAvail](ext)
	switch {
	case len(payload) > 0:
		c.violation("SinkAvail with %d bytes of data", len(payload))
	case c.mode.send != bsdh.Pipelined && !c.mode.unacked:
		c.violation("SinkAvail in %v mode", c.mode.send)
	case c.peerSink.live:
		c.violation("second SinkAvail, limit %d", c.cfg.MaxAdverts)
	case s.Len == 0:
		c.violation("SinkAvail of 0 bytes")
	case int32(c.carried-s.NonDiscards) < 0:
		c.violation("SinkAvail after %d data messages, %d were sent", s.NonDiscards, c.carried)
	case c.mode.send != bsdh.Pipelined, c.mode.unacked, s.NonDiscards != c.carried, c.sender.Unposted() > 0:
		// It crossed with a mode change (or two, there and back) or with data, which voids it at
		// the peer, too.
	default:
		if c.offer.live { // it crossed with the local SrcAvail and takes precedence
			c.dropQueued(bsdh.MIDSrcAvail)
			c.endOffer(false) // not a refusal: the offered bytes go to the sink
		}
		if c.closing {
			return // DisConn voids it
		}
		d := &c.peerSink // keep the state of a previous write that is still outstanding
		d.live, d.addr, d.rkey, d.len = true, s.Addr, s.RKey, s.Len
	}
}

// PeerSinkLen returns the number of bytes that the peer waits for in its own memory, or 0.
func (c *Core) PeerSinkLen() int {
	if !c.peerSink.live || c.peerSink.writing || c.err != nil {
		return 0
	}
	return int(min(c.peerSink.len, MaxTransfer))
}

// WritePeerSink writes the application's memory, at most PeerSinkLen bytes, to the peer's memory
// by an RDMA WRITE. [Core.PeerSinkWritten] returns the result.
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

// PeerSinkWritten returns the number of bytes that WritePeerSink has written, once, and whether
// the write is complete.
func (c *Core) PeerSinkWritten() (n int, done bool) {
	n, done = c.peerSink.written, !c.peerSink.writing
	c.peerSink.written = 0
	return n, done
}

// WritingPeerSink reports whether an RDMA WRITE is outstanding.
func (c *Core) WritingPeerSink() bool { return c.peerSink.writing }

// handleSinkWriteDone handles the completion of an RDMA WRITE.
func (c *Core) handleSinkWriteDone() {
	n := c.peerSink.length
	c.peerSink.writing = false
	c.peerSink.written += n
	c.stats.BytesWritten += uint64(n)
	c.stats.ZeroCopySent += uint64(n)
}

// handleSinkAvailCancel handles a SinkAvailCancel. If the SinkAvail is complete, the message that
// completed it is in flight already.
func (c *Core) handleSinkAvailCancel() {
	if c.peerSink.live {
		c.peerSink.live = false
		c.queueControl(control{id: bsdh.MIDSinkCancelAck})
	}
}

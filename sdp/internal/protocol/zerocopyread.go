package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/verbs"
)

// PeerSourceLen returns the number of bytes of the peer's memory that can be read now: 0 if there
// are none, or buffered data must be read first.
func (c *Core) PeerSourceLen() int {
	if !c.peerSource.live || c.sourceRead.outstanding || c.peerSource.cancelled || c.Buffered() > 0 || c.err != nil {
		return 0
	}
	return int(min(c.peerSource.left, MaxTransfer))
}

// ReadPeerSource reads into.Length bytes, at most PeerSourceLen, into the application's memory by
// an RDMA READ. [Core.PeerSourceRead] returns the result.
func (c *Core) ReadPeerSource(into verbs.SGE) {
	if int64(into.Length) > int64(c.PeerSourceLen()) {
		c.Fail(errBeyondAdvert)
		return
	}
	c.sourceRead.start(into.Length)
	c.out = append(c.out, verbs.SendWR{
		WRID: kindRead.wrid(uint64(into.Length)), Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled,
		SGList: c.stageSGE(into), RemoteAddr: c.peerSource.addr, RKey: c.peerSource.rkey,
	})
}

// PeerSourceRead returns the number of bytes that ReadPeerSource has read, once, and whether the
// read is complete.
func (c *Core) PeerSourceRead() (n int, done bool) { return c.sourceRead.takeDone() }

// ReadingPeerSource reports whether an RDMA READ is outstanding.
func (c *Core) ReadingPeerSource() bool { return c.sourceRead.outstanding }

// RefuseSource requests the remaining bytes as Data messages (SendSm).
func (c *Core) RefuseSource() {
	if c.peerSource.live && !c.sourceRead.outstanding {
		c.sendSendSm()
		c.buildRequests()
	}
}

// handleSrcAvail handles a SrcAvail, and reports whether it is in force and its payload must be
// delivered.
func (c *Core) handleSrcAvail(ext, payload []byte) (accepted bool) {
	s, _ := bsdh.ParseExtended[bsdh.SrcAvail](ext) // dispatchMessage has checked the length
	switch {
	case c.peerClosed:
		c.violation("SrcAvail after DisConn")
	case c.mode.recv == bsdh.Buffered:
		c.violation("SrcAvail in %v mode", c.mode.recv)
	case c.peerSource.live:
		c.violation("second SrcAvail, limit %d", c.cfg.MaxAdverts)
	case c.mode.recv == bsdh.Combined && (len(payload) == 0 || uint64(len(payload)) >= uint64(s.Len)):
		c.violation("SrcAvail of %d bytes with %d bytes inline in combined mode", s.Len, len(payload))
	case c.mode.recv == bsdh.Pipelined && (len(payload) > 0 || s.Len == 0):
		c.violation("SrcAvail of %d bytes with %d bytes inline in pipelined mode", s.Len, len(payload))
	case c.sink.live && !c.dropQueued(bsdh.MIDSinkAvail):
		// The two offers crossed: the peer drops its SrcAvail and uses the SinkAvail.
	default:
		c.sink.live = false
		inline := uint32(len(payload))
		c.peerSource = peerSource{live: true, addr: s.Addr + uint64(inline), rkey: s.RKey, left: s.Len - inline}
		return true
	}
	return false
}

// handleSourceReadDone handles the completion of an RDMA READ.
func (c *Core) handleSourceReadDone() {
	a, n := &c.peerSource, c.sourceRead.complete()
	a.addr += uint64(n)
	a.left -= uint32(n)
	a.unreported += uint32(n)
	c.stats.addZeroCopyRead(n)
	switch {
	case a.left == 0 || a.dropped:
		c.sendRdmaRdCompl()
		a.live = false
	case a.cancelled:
		c.sendSendSm()
	}
}

// sendRdmaRdCompl reports the bytes read to the peer.
func (c *Core) sendRdmaRdCompl() {
	m := control{id: bsdh.MIDRdmaRdCompl}
	if c.mode.recv == bsdh.Combined {
		m.flags = bsdh.RequestPipe // a reader of large blocks would offer memory for them
	}
	bsdh.RdmaCompl{Len: c.peerSource.unreported}.Append(m.ext[:0])
	c.peerSource.unreported = 0
	c.queueControl(m)
}

func (c *Core) sendSendSm() {
	if c.peerSource.unreported > 0 {
		c.sendRdmaRdCompl()
	}
	c.peerSource.live = false
	c.queueControl(control{id: bsdh.MIDSendSm})
}

// handleSrcAvailCancel handles a SrcAvailCancel. If the SrcAvail is complete, its reply is in
// flight already.
func (c *Core) handleSrcAvailCancel() {
	switch a := &c.peerSource; {
	case !a.live:
	case c.sourceRead.outstanding:
		a.cancelled = true
	default:
		c.sendSendSm()
	}
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
	c.stats.addZeroCopyRead(int(n))
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

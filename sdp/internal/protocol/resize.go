package protocol

import (
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// bufferResize is the size of receive buffers, with the header, in a connection by
// credits: ours, which the peer may ask us to change, and the peer's.
type bufferResize struct {
	ours      int  // in effect
	wanted    int  // by the peer, which waits for our decision; 0 for nothing
	posted    int  // old receives that messages come into before the new size counts
	switching bool // the answer follows when these have come

	theirs uint32 // in effect
	asked  bool   // we have asked for another, and there is no answer
}

func (r *bufferResize) start(cfg *Config, p *Peer) { r.ours, r.theirs = cfg.slotBytes(), p.BufferBytes }

// handleChRcvBuf takes a ChRcvBuf: the peer would like our receive buffers to have
// another size.
func (c *Core) handleChRcvBuf(bytes uint32) {
	r := &c.bufSize
	switch {
	case c.peer.FlowControl != flow.Credit:
		c.violation("ChRcvBuf in a connection by %v", c.peer.FlowControl)
	case r.wanted > 0 || r.switching:
		c.violation("ChRcvBuf before the one before was answered")
	case int64(bytes) <= int64(r.ours) || c.cfg.MaxBufferBytes+bsdh.HeaderBytes <= r.ours || c.Resizing():
		c.sendChRcvBufAck() // as it is
	default:
		r.wanted = int(min(int64(bytes), int64(c.cfg.MaxBufferBytes+bsdh.HeaderBytes)))
	}
}

// sendChRcvBufAck tells the peer what size our receive buffers have.
func (c *Core) sendChRcvBufAck() {
	c.bufSize.wanted, c.bufSize.switching = 0, false
	m := control{id: bsdh.MIDChRcvBufAck}
	bsdh.ChRcvBuf{Size: uint32(c.bufSize.ours)}.Append(m.ext[:0])
	c.queueControl(m)
}

// RequestedBufferBytes is how many bytes of data the peer would like to send in a
// message, 0 if it has no such wish. The answer is [Core.GrantResize].
func (c *Core) RequestedBufferBytes() int { return max(0, c.bufSize.wanted-bsdh.HeaderBytes) }

// GrantResize grants the peer's wish, or leaves it with the buffers there are if mem
// is empty: mem is Config.ResizeBytes(data) long, for messages of data bytes,
// more than before and no more than ResizeWanted. New messages come there when
// the receives that are posted have been used, and only then the peer gets to
// know. The memory that was in use before is the caller's again when
// [Core.Resizing] is false. Nobody having a wish, it is false.
func (c *Core) GrantResize(mem Memory, data int) bool {
	r, s := &c.bufSize, &c.slots
	size := data + bsdh.HeaderBytes
	if r.wanted == 0 || c.err != nil {
		return false
	}
	if len(mem.Bytes) == 0 {
		c.sendChRcvBufAck()
		c.buildRequests()
		return true
	}
	if size <= r.ours || size > r.wanted || len(mem.Bytes) < c.cfg.ResizeBytes(data) {
		return false
	}
	n := len(s.large.posted)
	s.old = s.large
	s.large = bank{mem: mem, stride: size, posted: make([]bool, n)}
	s.generation ^= slotMask + 1
	s.oldInUse = n - len(s.freeList)
	for i, slot := range s.freeList {
		s.freeList[i] = slot&slotMask | s.generation
	}
	r.posted, r.ours, r.wanted, r.switching = s.posted, size, 0, true
	if s.posted == 0 {
		c.sendChRcvBufAck()
		c.buildRequests()
	}
	return true
}

// ResizeBytes is the size of the memory that Resize wants for messages with so
// many bytes of data.
func (c *Config) ResizeBytes(data int) int { return c.largeReceives() * (data + bsdh.HeaderBytes) }

// Resizing reports whether receive buffers from before the last Resize are in
// use.
func (c *Core) Resizing() bool { return c.slots.oldInUse > 0 }

// countOldReceive takes note of a message in an old receive. After the last of them the
// new size counts.
func (c *Core) countOldReceive() {
	r := &c.bufSize
	r.posted--
	if r.switching && r.posted == 0 {
		c.sendChRcvBufAck()
	}
}

// RequestPeerSize asks the peer for receive buffers that take so many bytes of data in a
// message, if that is more than now and the answer to the last question has
// come. What is larger than our own send buffers does not help.
func (c *Core) RequestPeerSize(data int) bool {
	r := &c.bufSize
	size := int64(data) + bsdh.HeaderBytes
	if c.err != nil || c.closing || c.peer.FlowControl != flow.Credit || r.asked || size <= int64(r.theirs) || size > 1<<31 {
		return false
	}
	r.asked = true
	m := control{id: bsdh.MIDChRcvBuf}
	bsdh.ChRcvBuf{Size: uint32(size)}.Append(m.ext[:0])
	c.queueControl(m)
	c.buildRequests()
	return true
}

// PeerBufferBytes is how many bytes of data a receive buffer of the peer takes.
func (c *Core) PeerBufferBytes() int {
	return int(min(c.bufSize.theirs, MaxTransfer)) - bsdh.HeaderBytes
}

// handleChRcvBufAck takes a ChRcvBufAck.
func (c *Core) handleChRcvBufAck(bytes uint32) {
	r := &c.bufSize
	switch {
	case !r.asked || c.isQueued(bsdh.MIDChRcvBuf):
		c.violation("ChRcvBufAck, and no other size was asked for")
	case bytes < r.theirs:
		c.violation("ChRcvBufAck of %d bytes, and %d were in effect", bytes, r.theirs)
	default:
		r.asked, r.theirs = false, bytes
		c.sender.(*flow.CreditSender).Resize(c.PeerBufferBytes())
	}
}

package protocol

import (
	"errors"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// A peerSource is memory of the peer's application that the local side may read (SrcAvail). Its
// bytes follow all buffered data.
type peerSource struct {
	live       bool
	addr       uint64
	rkey       uint32
	left       uint32 // bytes not read yet
	unreported uint32 // bytes read and not reported to the peer
	cancelled  bool   // the peer has sent SrcAvailCancel
	dropped    bool   // withdrawn by a mode change; only the outstanding RDMA READ remains
}

// A sourceRead is an RDMA READ of the peerSource.
type sourceRead struct {
	reading bool
	length  int // bytes requested
	done    int // bytes read, not yet returned by PeerSourceRead
}

// handleSrcAvail handles a SrcAvail and reports whether it keeps the slot.
func (c *Core) handleSrcAvail(ext, payload []byte, slot int) (keeps bool) {
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
		if len(payload) > 0 {
			keeps = c.deliverInline(payload, slot)
		}
		inline := uint32(len(payload))
		c.peerSource = peerSource{live: true, addr: s.Addr + uint64(inline), rkey: s.RKey, left: s.Len - inline}
	}
	return keeps
}

// deliverInline delivers the data that a SrcAvail carries.
func (c *Core) deliverInline(payload []byte, slot int) (keeps bool) {
	if err := c.receiver.(*flow.CreditReceiver).Deliver(slot, payload); err != nil {
		c.violation("%v", err)
		return false
	}
	c.recordData(len(payload), false)
	return true
}

// MaxTransfer is the maximum length of an RDMA operation, and of memory lent for one, in bytes.
const MaxTransfer = 1 << 30

// errBeyondAdvert reports an access beyond the memory that the peer has advertised, a fault of
// the caller.
var errBeyondAdvert = errors.New("sdp: access beyond the advertised memory")

// PeerSourceLen returns the number of bytes of the peer's memory that can be read now: 0 if there
// are none, or buffered data must be read first.
func (c *Core) PeerSourceLen() int {
	if !c.peerSource.live || c.sourceRead.reading || c.peerSource.cancelled || c.Buffered() > 0 || c.err != nil {
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
	c.sourceRead.reading, c.sourceRead.length = true, int(into.Length)
	c.out = append(c.out, verbs.SendWR{
		WRID: kindRead.wrid(uint64(into.Length)), Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled,
		SGList: c.stageSGE(into), RemoteAddr: c.peerSource.addr, RKey: c.peerSource.rkey,
	})
}

// PeerSourceRead returns the number of bytes that ReadPeerSource has read, once, and whether the
// read is complete.
func (c *Core) PeerSourceRead() (n int, done bool) {
	n, done = c.sourceRead.done, !c.sourceRead.reading
	c.sourceRead.done = 0
	return n, done
}

// ReadingPeerSource reports whether an RDMA READ is outstanding.
func (c *Core) ReadingPeerSource() bool { return c.sourceRead.reading }

// handleSourceReadDone handles the completion of an RDMA READ.
func (c *Core) handleSourceReadDone() {
	a, n := &c.peerSource, uint32(c.sourceRead.length)
	c.sourceRead.reading = false
	c.sourceRead.done += int(n)
	a.addr += uint64(n)
	a.left -= n
	a.unreported += n
	c.stats.BytesRead += uint64(n)
	c.stats.ZeroCopyReceived += uint64(n)
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

// RefuseSource requests the remaining bytes as Data messages (SendSm).
func (c *Core) RefuseSource() {
	if c.peerSource.live && !c.sourceRead.reading {
		c.sendSendSm()
		c.buildRequests()
	}
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
	case c.sourceRead.reading:
		a.cancelled = true
	default:
		c.sendSendSm()
	}
}

// owesSourceReply reports whether the peer waits for the end of an RDMA READ or for a reply to
// its SrcAvailCancel. With NIC flow control the reply is queued behind the data in the adapter;
// no more data may be posted ahead of it, because the peer must spill all of it.
func (c *Core) owesSourceReply() bool {
	return c.peer.FlowControl == flow.NIC && (c.peerSource.live && c.peerSource.cancelled ||
		len(c.controls.unordered) > 0 && (c.isQueued(bsdh.MIDRdmaRdCompl) || c.isQueued(bsdh.MIDSendSm)))
}

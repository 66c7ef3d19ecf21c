package protocol

import (
	"errors"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// peerSource is memory of the peer's application that we may read (SrcAvail). Its
// bytes come behind all that is buffered.
type peerSource struct {
	live       bool
	addr       uint64
	rkey       uint32
	left       uint32 // bytes not read yet
	unreported uint32 // bytes read that the peer has not been told of
	cancelled  bool   // the peer wants it back
	dropped    bool   // the peer has taken it back, but for what is being read
}

// sourceRead is an RDMA READ of it.
type sourceRead struct {
	reading bool
	length  int // bytes
	done    int // bytes that have come, not taken by Fetched
}

// handleSrcAvail takes a SrcAvail.
func (c *Core) handleSrcAvail(ext, payload []byte, slot int) (keeps bool) {
	s, _ := bsdh.ParseSrcAvail(ext) // it has its length
	switch {
	case c.peerClosed:
		c.violation("SrcAvail after DisConn")
	case c.mode.recv == bsdh.Buffered:
		c.violation("SrcAvail in %v mode", c.mode.recv)
	case c.peerSource.live:
		c.violation("a second SrcAvail; %d are taken", c.cfg.MaxAdverts)
	case c.mode.recv == bsdh.Combined && (len(payload) == 0 || uint64(len(payload)) >= uint64(s.Len)):
		c.violation("SrcAvail of %d bytes with %d of them, in combined mode", s.Len, len(payload))
	case c.mode.recv == bsdh.Pipelined && (len(payload) > 0 || s.Len == 0):
		c.violation("SrcAvail of %d bytes with %d of them, in pipelined mode", s.Len, len(payload))
	case c.sink.live && !c.dropQueued(bsdh.MIDSinkAvail):
		// They crossed: the peer drops its own and uses ours.
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

// deliverInline takes the data that came with a SrcAvail.
func (c *Core) deliverInline(payload []byte, slot int) (keeps bool) {
	if err := c.receiver.(*flow.CreditReceiver).Deliver(slot, payload); err != nil {
		c.violation("%v", err)
		return false
	}
	c.recordData(len(payload), false)
	return true
}

// MaxTransfer bounds an RDMA operation, and memory that is lent for one, in bytes.
const MaxTransfer = 1 << 30

// errBeyondAdvert ends a connection whose driver would touch memory of the peer that
// it may not.
var errBeyondAdvert = errors.New("more than the peer has advertised was asked for")

// PeerSourceLen is how many bytes of the peer's memory can be read now: 0 if there
// are none, or others to be read first.
func (c *Core) PeerSourceLen() int {
	if !c.peerSource.live || c.sourceRead.reading || c.peerSource.cancelled || c.Buffered() > 0 || c.err != nil {
		return 0
	}
	return int(min(c.peerSource.left, MaxTransfer))
}

// ReadPeerSource reads n bytes, at most Available, into the application's memory. The
// result is in [Core.PeerSourceRead].
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

// PeerSourceRead returns what a Fetch has brought, once.
func (c *Core) PeerSourceRead() (n int, done bool) {
	n, done = c.sourceRead.done, !c.sourceRead.reading
	c.sourceRead.done = 0
	return n, done
}

// ReadingPeerSource reports whether a Fetch is under way.
func (c *Core) ReadingPeerSource() bool { return c.sourceRead.reading }

// handleSourceReadDone takes the completion of a Fetch.
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

// sendRdmaRdCompl tells the peer what we have read.
func (c *Core) sendRdmaRdCompl() {
	m := control{id: bsdh.MIDRdmaRdCompl}
	if c.mode.recv == bsdh.Combined {
		m.flags = bsdh.RequestPipe // who reads large pieces would offer memory for them
	}
	bsdh.RdmaCompl{Len: c.peerSource.unreported}.Append(m.ext[:0])
	c.peerSource.unreported = 0
	c.queueControl(m)
}

// RefuseSource asks for the rest in messages.
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

// handleSrcAvailCancel takes a SrcAvailCancel. If the SrcAvail is gone its answer is
// on the way already.
func (c *Core) handleSrcAvailCancel() {
	switch a := &c.peerSource; {
	case !a.live:
	case c.sourceRead.reading:
		a.cancelled = true
	default:
		c.sendSendSm()
	}
}

// owesSourceReply reports whether the peer, who wants its memory back, waits for the
// end of an RDMA READ or for our word. With the adapter to hold messages back that
// goes behind the data that it has, but no more is put in front: the peer has
// to make room for all of it.
func (c *Core) owesSourceReply() bool {
	return c.peer.FlowControl == flow.NIC && (c.peerSource.live && c.peerSource.cancelled ||
		len(c.controls.unordered) > 0 && (c.isQueued(bsdh.MIDRdmaRdCompl) || c.isQueued(bsdh.MIDSendSm)))
}

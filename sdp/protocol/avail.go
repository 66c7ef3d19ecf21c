package protocol

import (
	"github.com/softrnic/softrnic/sdp/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// avail is memory of the peer's application that we may read (SrcAvail). Its
// bytes come behind all that is buffered.
type avail struct {
	live      bool
	addr      uint64
	rkey      uint32
	left      int  // bytes not read yet
	reading   bool // an RDMA READ is under way
	fetched   int  // bytes that one has brought, not taken by Fetched
	unsaid    int  // bytes read that the peer has not been told of
	cancelled bool // the peer wants it back
}

// sourceAvailable takes a SrcAvail.
func (c *Core) sourceAvailable(ext, payload []byte, slot int) (keeps bool) {
	s, _ := bsdh.ParseSrcAvail(ext) // it has its length
	switch {
	case c.finished:
		c.violation("SrcAvail after DisConn")
	case c.mode.recv == bsdh.Buffered:
		c.violation("SrcAvail in buffered mode")
	case c.avail.live:
		c.violation("a second SrcAvail; %d are taken", c.cfg.MaxAdverts)
	case c.mode.recv == bsdh.Combined && (len(payload) == 0 || uint64(len(payload)) >= uint64(s.Len)):
		c.violation("SrcAvail of %d bytes with %d of them, in combined mode", s.Len, len(payload))
	case c.mode.recv == bsdh.Pipelined && (len(payload) > 0 || s.Len == 0):
		c.violation("SrcAvail of %d bytes with %d of them, in pipelined mode", s.Len, len(payload))
	case s.Len > maxAdvert:
		c.violation("SrcAvail of %d bytes", s.Len)
	case c.sink.live: // they crossed: the peer drops its own and uses ours
	default:
		if len(payload) > 0 {
			keeps = c.inlinePart(payload, slot)
		}
		c.avail = avail{
			live: true, addr: s.Addr + uint64(len(payload)), rkey: s.RKey, left: int(s.Len) - len(payload),
			fetched: c.avail.fetched, // of the one before, and its reader has not looked yet
		}
	}
	return keeps
}

// maxAdvert bounds an advertisement to what an RDMA operation can do.
const maxAdvert = 1 << 31

// inlinePart takes the data that came with a SrcAvail.
func (c *Core) inlinePart(payload []byte, slot int) (keeps bool) {
	r, ok := c.receiver.(*flow.CreditReceiver)
	if !ok {
		c.violation("SrcAvail with data in a connection by %v", c.peer.Design)
		return false
	}
	if err := r.Arrived(slot, payload); err != nil {
		c.violation("%v", err)
		return false
	}
	c.carrying++
	c.stats.arrived(len(payload))
	return true
}

// Available is how many bytes of the peer's memory can be read now: 0 if there
// are none, or others to be read first.
func (c *Core) Available() int {
	if !c.avail.live || c.avail.reading || c.avail.cancelled || c.Buffered() > 0 || c.err != nil {
		return 0
	}
	return c.avail.left
}

// Fetch reads n bytes, at most Available, into the application's memory. The
// result is in [Core.Fetched].
func (c *Core) Fetch(into verbs.SGE) {
	a := &c.avail
	a.reading = true
	c.out = append(c.out, verbs.SendWR{
		WRID: kindRead.wrid(uint64(into.Length)), Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled,
		SGList: c.sge(into), RemoteAddr: a.addr, RKey: a.rkey,
	})
}

// Fetched returns what a Fetch has brought, once.
func (c *Core) Fetched() (n int, done bool) {
	n, done = c.avail.fetched, !c.avail.reading
	c.avail.fetched = 0
	return n, done
}

// Fetching reports whether a Fetch is under way.
func (c *Core) Fetching() bool { return c.avail.reading }

// fetched takes the completion of a Fetch.
func (c *Core) fetched(n int) {
	a := &c.avail
	a.reading = false
	a.addr += uint64(n)
	a.left -= n
	a.fetched += n
	a.unsaid += n
	c.stats.BytesRead += uint64(n)
	c.stats.ZeroCopyReceived += uint64(n)
	switch {
	case a.left == 0:
		c.sayRead()
		a.live = false
	case a.cancelled:
		c.refuse()
	}
}

// sayRead tells the peer what we have read.
func (c *Core) sayRead() {
	m := control{id: bsdh.MIDRdmaRdCompl}
	if c.mode.recv == bsdh.Combined {
		m.flags = bsdh.RequestPipe // who reads large pieces would offer memory for them
	}
	bsdh.RdmaCompl{Len: uint32(c.avail.unsaid)}.Append(m.ext[:0])
	c.avail.unsaid = 0
	c.say(m)
}

// Refuse asks for the rest in messages.
func (c *Core) Refuse() {
	if c.avail.live && !c.avail.reading {
		c.refuse()
		c.pump()
	}
}

func (c *Core) refuse() {
	if c.avail.unsaid > 0 {
		c.sayRead()
	}
	c.avail.live = false
	c.say(control{id: bsdh.MIDSendSm})
}

// availCancelled takes a SrcAvailCancel. If the SrcAvail is gone its answer is
// on the way already.
func (c *Core) availCancelled() {
	switch a := &c.avail; {
	case !a.live:
	case a.reading:
		a.cancelled = true
	default:
		c.refuse()
	}
}

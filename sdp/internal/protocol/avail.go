package protocol

import (
	"errors"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// avail is memory of the peer's application that we may read (SrcAvail). Its
// bytes come behind all that is buffered.
type avail struct {
	live      bool
	addr      uint64
	rkey      uint32
	left      uint32 // bytes not read yet
	unsaid    uint32 // bytes read that the peer has not been told of
	cancelled bool   // the peer wants it back
	dropped   bool   // the peer has taken it back, but for what is being read
}

// fetch is an RDMA READ of it.
type fetch struct {
	reading bool
	asked   int // bytes
	fetched int // bytes that have come, not taken by Fetched
}

// sourceAvailable takes a SrcAvail.
func (c *Core) sourceAvailable(ext, payload []byte, slot int) (keeps bool) {
	s, _ := bsdh.ParseSrcAvail(ext) // it has its length
	switch {
	case c.finished:
		c.violation("SrcAvail after DisConn")
	case c.mode.recv == bsdh.Buffered:
		c.violation("SrcAvail in %v mode", c.mode.recv)
	case c.avail.live:
		c.violation("a second SrcAvail; %d are taken", c.cfg.MaxAdverts)
	case c.mode.recv == bsdh.Combined && (len(payload) == 0 || uint64(len(payload)) >= uint64(s.Len)):
		c.violation("SrcAvail of %d bytes with %d of them, in combined mode", s.Len, len(payload))
	case c.mode.recv == bsdh.Pipelined && (len(payload) > 0 || s.Len == 0):
		c.violation("SrcAvail of %d bytes with %d of them, in pipelined mode", s.Len, len(payload))
	case c.sink.live && !c.unsay(bsdh.MIDSinkAvail):
		// They crossed: the peer drops its own and uses ours.
	default:
		c.sink.live = false
		if len(payload) > 0 {
			keeps = c.inlinePart(payload, slot)
		}
		inline := uint32(len(payload))
		c.avail = avail{live: true, addr: s.Addr + uint64(inline), rkey: s.RKey, left: s.Len - inline}
	}
	return keeps
}

// inlinePart takes the data that came with a SrcAvail.
func (c *Core) inlinePart(payload []byte, slot int) (keeps bool) {
	if err := c.receiver.(*flow.CreditReceiver).Arrived(slot, payload); err != nil {
		c.violation("%v", err)
		return false
	}
	c.kept(len(payload), false)
	return true
}

// MostAtOnce bounds an RDMA operation, and memory that is lent for one, in bytes.
const MostAtOnce = 1 << 30

// errBeyond ends a connection whose driver would touch memory of the peer that
// it may not.
var errBeyond = errors.New("more than the peer has advertised was asked for")

// Available is how many bytes of the peer's memory can be read now: 0 if there
// are none, or others to be read first.
func (c *Core) Available() int {
	if !c.avail.live || c.fetch.reading || c.avail.cancelled || c.Buffered() > 0 || c.err != nil {
		return 0
	}
	return int(min(c.avail.left, MostAtOnce))
}

// Fetch reads n bytes, at most Available, into the application's memory. The
// result is in [Core.Fetched].
func (c *Core) Fetch(into verbs.SGE) {
	if int64(into.Length) > int64(c.Available()) {
		c.Fail(errBeyond)
		return
	}
	c.fetch.reading, c.fetch.asked = true, int(into.Length)
	c.out = append(c.out, verbs.SendWR{
		WRID: kindRead.wrid(uint64(into.Length)), Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled,
		SGList: c.sge(into), RemoteAddr: c.avail.addr, RKey: c.avail.rkey,
	})
}

// Fetched returns what a Fetch has brought, once.
func (c *Core) Fetched() (n int, done bool) {
	n, done = c.fetch.fetched, !c.fetch.reading
	c.fetch.fetched = 0
	return n, done
}

// Fetching reports whether a Fetch is under way.
func (c *Core) Fetching() bool { return c.fetch.reading }

// fetched takes the completion of a Fetch.
func (c *Core) fetched() {
	a, n := &c.avail, uint32(c.fetch.asked)
	c.fetch.reading = false
	c.fetch.fetched += int(n)
	a.addr += uint64(n)
	a.left -= n
	a.unsaid += n
	c.stats.BytesRead += uint64(n)
	c.stats.ZeroCopyReceived += uint64(n)
	switch {
	case a.left == 0 || a.dropped:
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
	bsdh.RdmaCompl{Len: c.avail.unsaid}.Append(m.ext[:0])
	c.avail.unsaid = 0
	c.say(m)
}

// Refuse asks for the rest in messages.
func (c *Core) Refuse() {
	if c.avail.live && !c.fetch.reading {
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
	case c.fetch.reading:
		a.cancelled = true
	default:
		c.refuse()
	}
}

// owesAnswer reports whether the peer, who wants its memory back, waits for the
// end of an RDMA READ or for our word. With the adapter to hold messages back that
// goes behind the data that it has, but no more is put in front: the peer has
// to make room for all of it.
func (c *Core) owesAnswer() bool {
	return c.peer.Design == flow.NIC && (c.avail.live && c.avail.cancelled ||
		len(c.controls.aside) > 0 && (c.waits(bsdh.MIDRdmaRdCompl) || c.waits(bsdh.MIDSendSm)))
}

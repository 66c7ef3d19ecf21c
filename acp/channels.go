package acp

import (
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// channels are the ends of channels at this rank.
type channels struct {
	ends           []*Channel                    // by id, which others name in immediate data; 0 is nobody's
	free           []uint16                      // ids that are not in use any more
	active         []*Channel                    // that have to look at memory, or have something to do
	creditsDue     []*Channel                    // receiving ends that give slots back with what happens next
	created        map[direction]uint32          // how many were made to and from a rank
	requests       map[requestKey]connectRequest // requests that have come before their receiving end was made
	unmatched      map[requestKey]*Channel       // receiving ends that no request has come for
	directMessages uint64                        // messages that were put to their place
}

// direction is one of the two directions between this rank and another.
type direction struct {
	rank  int
	sends bool
}

// requestKey names the channel that a request is for.
type requestKey struct {
	rank   int
	number uint32
}

// connectRequest is a request.
type connectRequest struct {
	control GA // of the sending end
	protocol.ConnectRequest
}

// maxRequests is how many requests are kept for receiving ends that are not made yet. More stay where they
// are, in the connection request buffer, and those who ask have to wait.
const maxRequests = 1 << 16

func (c *channels) init() {
	c.ends = []*Channel{nil}
	c.created, c.requests, c.unmatched = map[direction]uint32{}, map[requestKey]connectRequest{}, map[requestKey]*Channel{}
}

// assignID gives an end its id.
func (c *channels) assignID(ch *Channel) error {
	if n := len(c.free); n > 0 {
		ch.id = c.free[n-1]
		c.free = c.free[:n-1]
		c.ends[ch.id] = ch
		return nil
	}
	if len(c.ends) == protocol.MaxRegions {
		return fmt.Errorf("%w: %d ends of channels", verbs.ErrLimit, len(c.ends)-1)
	}
	ch.id = uint16(len(c.ends))
	c.ends = append(c.ends, ch)
	return nil
}

func (c *channels) removeEnd(ch *Channel) {
	c.ends[ch.id] = nil
	c.free = append(c.free, ch.id)
}

// markActive has step look at an end.
func (c *channels) markActive(ch *Channel) {
	if !ch.active {
		ch.active = true
		c.active = append(c.active, ch)
	}
}

// progressActive has all go on that can. Those stay active that only memory will tell something.
func (c *channels) progressActive(p *Process) {
	if len(c.unmatched) > 0 {
		c.scanRequests(p)
	}
	if len(c.active) == 0 {
		return
	}
	list := c.active
	c.active = c.active[len(c.active):] // who is activated meanwhile comes behind
	kept := list[:0]
	for _, ch := range list {
		ch.active = false
		if ch.makeProgress() && !ch.active {
			ch.active = true
			kept = append(kept, ch)
		}
	}
	c.active = append(kept, c.active...)
}

// scanRequests takes requests out of the connection request buffer. Their details are read from those who ask.
func (c *channels) scanRequests(p *Process) {
	for i := range crbSlots {
		off := crbOffset + 8*i
		ga := GA(p.memory.starter.LoadUint64(off))
		if ga == Null {
			continue
		}
		if len(c.requests) >= maxRequests || len(p.memory.readBuf.free) == 0 {
			return
		}
		atomic.StoreUint64(wordPtr(p.memory.starter.Bytes(), off), 0)
		p.engine.events++
		if ga.Rank() < p.size && ga.Region() != 0 {
			p.readRequest(ga)
		}
	}
}

// readRequest reads the control block of a sending end.
func (p *Process) readRequest(control GA) {
	i := &requestRead{p: p, control: control, slot: p.memory.readBuf.allocSlot()}
	a := p.newAccess(control, 16, i)
	a.Kind, a.Mem, a.Off, a.N = fabric.Get, p.memory.readBuf.mr, i.slot*protocol.EntrySize, 16
	p.startAccess(a)
}

// requestRead hears what it says.
type requestRead struct {
	p       *Process
	control GA
	slot    int
}

func (i *requestRead) onAccessDone(_ *access, err error) {
	w := i.p.memory.readBuf.slotWords(i.slot)
	i.p.freeReadSlot(i.slot)
	if err != nil {
		return // who has asked is gone, and channels with it fail for that
	}
	q, ok := protocol.ParseConnectRequest([2]uint64(w[:2]), i.p.rank)
	if !ok {
		return
	}
	c := &i.p.channels
	name := requestKey{i.control.Rank(), q.Number}
	if ch := c.unmatched[name]; ch != nil {
		delete(c.unmatched, name)
		ch.acceptRequest(connectRequest{i.control, q})
		return
	}
	c.requests[name] = connectRequest{i.control, q}
}

// HandleSignal implements fabric.Host.
func (p *Process) HandleSignal(rank int, imm uint32) {
	if p.isNull() {
		return
	}
	s, count, id := protocol.ParseImm(imm)
	if int(id) >= len(p.channels.ends) {
		return
	}
	ch := p.channels.ends[id]
	if ch == nil || !ch.imm || int(ch.peer) != rank || ch.err != nil {
		return // it has been freed, or is none of that rank's affair
	}
	var err error
	switch {
	case s == protocol.SlotFilled && ch.recv != nil:
		err = ch.recv.AddSlot()
	case s == protocol.SlotsFreed && ch.send != nil:
		err = ch.send.AddCredits(count)
	case s == protocol.ReceiverFreed && ch.send != nil:
		ch.receiverFreed = true
	default:
		err = fmt.Errorf("%w: signal %d to the wrong end", ErrBroken, s)
	}
	if err != nil {
		ch.failChannel(err)
		return
	}
	p.channels.markActive(ch)
}

// failPeer fails all channels with a rank.
func (c *channels) failPeer(rank int, why error) {
	for _, ch := range c.ends {
		if ch != nil && int(ch.peer) == rank {
			ch.failChannel(why)
		}
	}
	for name := range c.requests {
		if name.rank == rank {
			delete(c.requests, name)
		}
	}
}

// failAll fails all channels: who waits does so no longer, and no receive's memory is written to.
func (c *channels) failAll() {
	for _, ch := range c.ends {
		if ch != nil {
			ch.failChannel(ErrClosed)
		}
	}
}

// probePeers asks the other ends of those channels that somebody waits for.
func (c *channels) probePeers(p *Process) {
	for _, ch := range c.ends {
		if ch != nil && ch.err == nil && int(ch.peer) != p.rank && (ch.state == connecting || ch.first != nil || ch.freed) {
			p.probeRank(int(ch.peer))
		}
	}
}

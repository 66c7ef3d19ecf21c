package acp

import (
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// channels holds the channel ends of this rank.
type channels struct {
	ends           []*Channel                    // by id, which immediate data carries; id 0 is unused
	free           []uint16                      // unused ids
	active         []*Channel                    // ends that must poll memory or have work
	creditsDue     []*Channel                    // receiving ends whose credits are returned with the next send or wait
	created        map[direction]uint32          // number of channels created per rank and direction
	requests       map[requestKey]connectRequest // connection requests without a receiving end
	unmatched      map[requestKey]*Channel       // receiving ends without a connection request
	directMessages uint64                        // messages written directly into a receive buffer
}

// direction is one of the two directions between this rank and another one.
type direction struct {
	rank  int
	sends bool
}

// requestKey identifies the channel of a connection request.
type requestKey struct {
	rank   int
	number uint32
}

// connectRequest is a connection request that was read from the sender.
type connectRequest struct {
	control protocol.GA // of the sending end
	protocol.ConnectRequest
}

// maxRequests is the maximum number of requests kept for receiving ends that do not exist yet. More requests
// stay in the connection request buffer, and their senders wait.
const maxRequests = 1 << 16

func (c *channels) initTables() {
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
		return fmt.Errorf("%w: at most %d channel ends", verbs.ErrLimit, len(c.ends)-1)
	}
	ch.id = uint16(len(c.ends))
	c.ends = append(c.ends, ch)
	return nil
}

// removeEnd frees the id of an end.
func (c *channels) removeEnd(ch *Channel) {
	c.ends[ch.id] = nil
	c.free = append(c.free, ch.id)
}

// markActive queues an end for progressActive.
func (c *channels) markActive(ch *Channel) {
	if !ch.active {
		ch.active = true
		c.active = append(c.active, ch)
	}
}

// progressActive advances all active ends. Those that must poll memory stay active.
func (c *channels) progressActive(p *Process) {
	if len(c.unmatched) > 0 {
		c.scanRequests(p)
	}
	if len(c.active) == 0 {
		return
	}
	list := c.active
	c.active = c.active[len(c.active):] // ends activated meanwhile are appended
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

// scanRequests takes requests out of the connection request buffer, and reads their details from the senders.
func (c *channels) scanRequests(p *Process) {
	for i := range crbSlots {
		off := crbOffset + 8*i
		ga := protocol.GA(p.memory.starter.LoadUint64(off))
		if ga == protocol.Null {
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

// readRequest starts reading the control block of a sending end.
func (p *Process) readRequest(control protocol.GA) {
	i := &requestRead{p: p, control: control, slot: p.memory.readBuf.allocSlot()}
	a := p.newAccess(control, 16, i)
	a.Kind, a.Mem, a.Off, a.N = fabric.Get, p.memory.readBuf.mr, i.slot*protocol.EntrySize, 16
	p.startAccess(a)
}

// requestRead is the owner of that read.
type requestRead struct {
	p       *Process
	control protocol.GA
	slot    int
}

// onAccessDone implements accessOwner: it connects the request to its receiving end, or keeps it for later.
func (i *requestRead) onAccessDone(_ *access, err error) {
	w := i.p.memory.readBuf.slotWords(i.slot)
	i.p.freeReadSlot(i.slot)
	if err != nil {
		return // the sender failed, and its channels fail for that
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

// handleSignal delivers the immediate data of a channel.
func (p *Process) handleSignal(rank int, imm uint32) {
	s, count, id := protocol.ParseImm(imm)
	if int(id) >= len(p.channels.ends) {
		return
	}
	ch := p.channels.ends[id]
	if ch == nil || !ch.imm || int(ch.peer) != rank || ch.err != nil {
		return // the end was freed, or belongs to another rank
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
		err = fmt.Errorf("%w: unexpected signal %d", ErrBroken, s)
	}
	if err != nil {
		ch.failChannel(err)
		return
	}
	p.channels.markActive(ch)
}

// failPeer fails all channels with a rank.
func (c *channels) failPeer(rank int, cause error) {
	for _, ch := range c.ends {
		if ch != nil && int(ch.peer) == rank {
			ch.failChannel(cause)
		}
	}
	for name := range c.requests {
		if name.rank == rank {
			delete(c.requests, name)
		}
	}
}

// failAll fails all channels with ErrClosed.
func (c *channels) failAll() {
	for _, ch := range c.ends {
		if ch != nil {
			ch.failChannel(ErrClosed)
		}
	}
}

// probePeers probes the peers of the channels that have incomplete requests.
func (c *channels) probePeers(p *Process) {
	for _, ch := range c.ends {
		if ch != nil && ch.err == nil && int(ch.peer) != p.rank && (ch.state == connecting || ch.first != nil || ch.freed) {
			p.probeRank(int(ch.peer))
		}
	}
}

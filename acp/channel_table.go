package acp

import (
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// channelTable holds the channel ends of this rank.
type channelTable struct {
	ends           []*Channel                    // by id, which immediate data carries; id 0 is unused
	free           []uint16                      // unused ids below len(ends)
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

// connectRequest is a connection request whose details were read from the sender.
type connectRequest struct {
	control protocol.GA // of the sending end
	protocol.ConnectRequest
}

// maxRequests is the maximum number of requests kept for receiving ends that do not exist yet. Requests beyond
// it stay in the connection request buffer, and their senders wait.
const maxRequests = 1 << 16

func (t *channelTable) initTables() {
	t.ends = []*Channel{nil}
	t.created, t.requests, t.unmatched = map[direction]uint32{}, map[requestKey]connectRequest{}, map[requestKey]*Channel{}
}

// assignID gives an end its id.
func (t *channelTable) assignID(ch *Channel) error {
	if n := len(t.free); n > 0 {
		ch.id = t.free[n-1]
		t.free = t.free[:n-1]
		t.ends[ch.id] = ch
		return nil
	}
	if len(t.ends) == protocol.MaxRegions {
		return fmt.Errorf("%w: at most %d channel ends", verbs.ErrLimit, len(t.ends)-1)
	}
	ch.id = uint16(len(t.ends))
	t.ends = append(t.ends, ch)
	return nil
}

// removeEnd frees the id of an end.
func (t *channelTable) removeEnd(ch *Channel) {
	t.ends[ch.id] = nil
	t.free = append(t.free, ch.id)
}

// markActive queues an end for progressActive.
func (t *channelTable) markActive(ch *Channel) {
	if !ch.active {
		ch.active = true
		t.active = append(t.active, ch)
	}
}

// progressActive advances all active ends. Those that must poll memory stay active.
func (t *channelTable) progressActive(p *Process) {
	if len(t.unmatched) > 0 {
		t.scanRequests(p)
	}
	if len(t.active) == 0 {
		return
	}
	list := t.active
	t.active = t.active[len(t.active):] // ends activated meanwhile are appended
	kept := list[:0]
	for _, ch := range list {
		ch.active = false
		if ch.makeProgress() && !ch.active {
			ch.active = true
			kept = append(kept, ch)
		}
	}
	t.active = append(kept, t.active...)
}

// scanRequests takes requests out of the connection request buffer, and reads their details from the senders.
func (t *channelTable) scanRequests(p *Process) {
	for i := range crbSlots {
		off := crbOffset + 8*i
		ga := protocol.GA(p.memory.starter.LoadUint64(off))
		if ga == protocol.Null {
			continue
		}
		if len(t.requests) >= maxRequests || len(p.memory.readBuf.free) == 0 {
			return
		}
		atomic.StoreUint64(wordPtr(p.memory.starter.Bytes(), off), 0)
		p.changes++
		if ga.Rank() < p.size && ga.Region() != 0 {
			p.readRequest(ga)
		}
	}
}

// readRequest starts reading the control block of a sending end.
func (p *Process) readRequest(control protocol.GA) {
	r := &requestRead{p: p, control: control, slot: p.memory.readBuf.allocSlot()}
	a := p.newAccess(control, 16, r)
	a.Kind, a.Mem, a.Off, a.N = fabric.Get, p.memory.readBuf.mr, r.slot*protocol.EntrySize, 16
	p.startAccess(a)
}

// requestRead is a read of readRequest, as its accessOwner.
type requestRead struct {
	p       *Process
	control protocol.GA
	slot    int
}

// onAccessDone implements accessOwner: it connects the request to its receiving end, or keeps it for later.
func (r *requestRead) onAccessDone(_ *access, err error) {
	w := r.p.memory.readBuf.slotWords(r.slot)
	r.p.freeReadSlot(r.slot)
	if err != nil {
		return // the sender failed, and its channels fail for that
	}
	q, ok := protocol.ParseConnectRequest([2]uint64(w[:2]), r.p.rank)
	if !ok {
		return
	}
	table := &r.p.channels
	key := requestKey{r.control.Rank(), q.Number}
	if ch := table.unmatched[key]; ch != nil {
		delete(table.unmatched, key)
		ch.acceptRequest(connectRequest{r.control, q})
		return
	}
	table.requests[key] = connectRequest{r.control, q}
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
func (t *channelTable) failPeer(rank int, cause error) {
	for _, ch := range t.ends {
		if ch != nil && int(ch.peer) == rank {
			ch.failChannel(cause)
		}
	}
	for key := range t.requests {
		if key.rank == rank {
			delete(t.requests, key)
		}
	}
}

// failAll fails all channels with ErrClosed.
func (t *channelTable) failAll() {
	for _, ch := range t.ends {
		if ch != nil {
			ch.failChannel(ErrClosed)
		}
	}
}

// probePeers probes the peers of the channels that have incomplete requests.
func (t *channelTable) probePeers(p *Process) {
	for _, ch := range t.ends {
		if ch != nil && ch.err == nil && int(ch.peer) != p.rank && (ch.state == connecting || ch.first != nil || ch.freed) {
			p.probeRank(int(ch.peer))
		}
	}
}

// progressChannels returns pending credits and makes progress on the channels. p.mu must be held.
func (p *Process) progressChannels() {
	if p.closed {
		return
	}
	if len(p.channels.creditsDue) > 0 {
		p.channels.flushCredits()
		p.flushPosted()
	}
	p.channels.progressActive(p)
	p.flushPosted()
}

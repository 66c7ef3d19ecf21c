package nack

import (
	"errors"

	"github.com/softrnic/softrnic/internal/fifo"
)

// Core is one end: it has all peers. One call at a time.
type Core struct {
	o            Options
	peers        []*peer // by number; nil: nothing is known
	slots        slots
	reorderBytes int // bytes that inboxes hold

	active      fifo.Queue[*peer] // may have something to send
	slotWaiters fifo.Queue[*peer] // wait for a slot
	timers      timers
	events      fifo.Queue[Event]

	// To be used again.
	freeSendRings      []*sendRing
	freeReorderBuffers []*reorderBuffer
	freeBuffers        [][]byte

	// Stats counts what has been done.
	Stats Stats

	first uint32 // number of the first packet to a peer: 0, but in tests
}

// Errors of Send.
var (
	ErrWouldBlock = errors.New("no room now")            // an Event follows when there is
	ErrTooLong    = errors.New("message is too long")    // see Options.MaxMessage
	ErrFault      = errors.New("message cannot be read") // the system refuses access to its memory; nothing was taken
	ErrPeerClosed = errors.New("peer is closed, lost")   // or has been started anew, and not opened since
)

// Stats counts what an end has done.
type Stats struct {
	Sent, Delivered                    uint64 // messages
	Packets, Retransmitted             uint64 // of Data: that left for the first time, and again
	Probes, Acks, Nacks                uint64 // sent; a Hello counts as Ask
	NacksReceived                      uint64
	OutOfOrder                         uint64 // packets that came before another
	Restarts, TimedOut, ProtocolErrors uint64 // of peers
	Dropped                            [drops]uint64
}

// New returns an end without connections to anybody. It panics if Options lack
// what has to be given.
func New(o Options) *Core {
	o.setDefaults()
	c := &Core{o: o, peers: make([]*peer, o.Peers)}
	c.slots.init(o.Memory, o.MTU)
	return c
}

// Peer is what has to be known to talk to a peer.
type Peer struct {
	Epoch uint32 // of its life; 0: it will be asked
	MTU   int    // bytes of the longest packet on the way there, at most ours, which 0 stands for
}

// OpenPeer says that packets to a peer can be sent from now on. Before, messages to
// it are ErrNoRoom, and what it has sent is not acknowledged. A peer that is
// closed or lost stays so unless Open has a newer epoch of it.
func (c *Core) OpenPeer(now Time, number int, at Peer) {
	p := c.getPeer(number)
	switch {
	case at.Epoch == 0 || at.Epoch == p.epoch:
	case p.epoch == 0:
		p.epoch = at.Epoch
	case seqAfter(at.Epoch, p.epoch):
		c.restartPeer(p, at.Epoch)
	}
	p.open = true
	p.out.mtu = uint16(c.o.MTU)
	if at.MTU >= minMTU && at.MTU < c.o.MTU {
		p.out.mtu = uint16(at.MTU)
	}
	p.out.window.Reset(int(p.out.mtu), 0)
	c.reschedule(now, p)
}

// restartPeer begins with a peer that has another life.
func (c *Core) restartPeer(p *peer, epoch uint32) {
	c.releaseBuffers(p)
	p.reset(p.out.mtu, c.first)
	p.epoch, p.closed = epoch, false
	c.Stats.Restarts++
	c.events.Push(Event{Peer: p.number, Kind: Restarted})
}

// getPeer returns what is known of a peer, which may be nothing yet.
func (c *Core) getPeer(number int) *peer {
	for number >= len(c.peers) {
		c.peers = append(c.peers, nil)
	}
	p := c.peers[number]
	if p == nil {
		p = &peer{number: number}
		p.reset(uint16(c.o.MTU), c.first)
		c.peers[number] = p
	}
	return p
}

// ClosePeer ends all there is with a peer. Its packets are dropped until it has
// another life. Slots that the adapter has stay its until Done.
func (c *Core) ClosePeer(number int) { c.closePeer(c.getPeer(number)) }

// RemovePeer is Close, and forgets that there was such a peer: whoever gets its number
// next is another one.
func (c *Core) RemovePeer(number int) {
	c.closePeer(c.getPeer(number))
	c.peers[number] = nil
}

func (c *Core) closePeer(p *peer) {
	p.closed, p.blocked, p.slotStarved = true, false, false
	c.releaseBuffers(p)
	p.control = pendingControl{}
}

// releaseBuffers gives back all that a peer holds.
func (c *Core) releaseBuffers(p *peer) {
	if r := p.out.ring; r != nil {
		for seq := p.out.una; seq != p.out.nextQueue; seq++ {
			if r.acked&seqBit(seq) == 0 {
				c.slots.release(r.slot[slotIndex(seq)], retained)
			}
		}
		c.freeSendRing(p)
	}
	p.out.una, p.out.nextSend, p.out.inFlight, p.out.probeAt = p.out.nextQueue, p.out.nextQueue, 0, 0
	if b := p.in.reorder; b != nil {
		for i := range b.packet {
			if b.held&(1<<i) != 0 {
				c.popBuffered(b, uint32(i))
			}
		}
		c.freeReorderBuffer(p)
	}
	c.freeBuffer(p.in.partial)
	p.in.partial, p.in.messageLen = nil, 0
}

// pushFree puts something to what is used again, if that is not much already.
func pushFree[T any](list *[]T, v T) {
	if len(*list) < maxFree {
		*list = append(*list, v)
	}
}

// popFree takes something from it.
func popFree[T any](list *[]T) (v T, ok bool) {
	n := len(*list) - 1
	if n < 0 {
		return v, false
	}
	v = (*list)[n]
	var zero T
	(*list)[n] = zero
	*list = (*list)[:n]
	return v, true
}

func (c *Core) ensureSendRing(p *peer) *sendRing {
	if p.out.ring == nil {
		b, ok := popFree(&c.freeSendRings)
		if !ok {
			b = new(sendRing)
		}
		b.lost, b.acked = 0, 0
		p.out.ring = b
	}
	return p.out.ring
}

func (c *Core) freeSendRing(p *peer) {
	pushFree(&c.freeSendRings, p.out.ring)
	p.out.ring = nil
}

func (c *Core) ensureReorderBuffer(p *peer) *reorderBuffer {
	if p.in.reorder == nil {
		b, ok := popFree(&c.freeReorderBuffers)
		if !ok {
			b = new(reorderBuffer)
		}
		p.in.reorder = b
	}
	return p.in.reorder
}

func (c *Core) freeReorderBuffer(p *peer) {
	pushFree(&c.freeReorderBuffers, p.in.reorder) // with nothing held
	p.in.reorder = nil
}

func (c *Core) allocBuffer() []byte {
	b, _ := popFree(&c.freeBuffers)
	return b
}

func (c *Core) freeBuffer(b []byte) {
	if cap(b) > 0 {
		pushFree(&c.freeBuffers, b[:0])
	}
}

package nack

import (
	"errors"

	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/internal/sparse"
)

// A Core is one end of the protocol, with the state of all peers. It is not
// safe for concurrent use.
type Core struct {
	o            Options
	peers        sparse.Table[peer]
	slots        slots
	reorderBytes int // bytes in reorder buffers

	active      fifo.Queue[*peer]          // peers that may have packets to send
	slotWaiters fifo.Queue[*peer]          // peers that wait for a slot
	timers      deadline.Heap[Time, *peer] // deadlines that move later stay, so that an acknowledgement or an idle peer costs nothing
	events      fifo.Queue[Event]

	// Free lists.
	freeSendRings      []*sendRing
	freeReorderBuffers []*reorderBuffer
	freeBuffers        [][]byte

	// Stats counts events since New.
	Stats Stats

	first uint32 // sequence number of the first packet to a peer; 0 except in tests
}

// Errors of Send.
var (
	ErrWouldBlock = errors.New("nack: send window full")     // a Writable event follows
	ErrTooLong    = errors.New("nack: message too long")     // see Options.MaxMessage
	ErrFault      = errors.New("nack: message not readable") // page fault; nothing was queued
	ErrPeerClosed = errors.New("nack: peer closed")          // closed, failed or restarted, and not reopened
)

// Stats counts the events of a Core.
type Stats struct {
	Sent, Delivered                    uint64 // messages
	Packets, Retransmitted             uint64 // Data packets sent for the first time, and again
	Probes, Acks, Nacks                uint64 // sent; a Hello counts as a probe
	NacksReceived                      uint64
	OutOfOrder                         uint64 // packets buffered out of order
	Restarts, TimedOut, ProtocolErrors uint64 // events of peers
	Dropped                            [drops]uint64
}

// New returns a Core without peers. It panics if a required option is missing.
func New(o Options) *Core {
	o.setDefaults()
	c := &Core{o: o, peers: sparse.Make[peer](o.Peers)}
	c.slots.init(&c.o)
	return c
}

// A Peer describes the remote end for OpenPeer.
type Peer struct {
	Epoch uint32 // of the peer's incarnation; 0: the handshake requests it
	MTU   int    // longest packet on the path in bytes; 0, or more than Options.MTU, means Options.MTU
}

// OpenPeer permits packets to a peer. Before this call, Send returns
// ErrWouldBlock and packets of the peer are not acknowledged. A closed or
// failed peer remains closed unless at has a newer epoch.
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

// restartPeer discards the state of a peer that has a new incarnation.
func (c *Core) restartPeer(p *peer, epoch uint32) {
	c.releaseBuffers(p)
	p.reset(p.out.mtu, c.first)
	p.epoch, p.closed = epoch, false
	c.Stats.Restarts++
	c.events.Push(Event{Peer: p.number, Kind: Restarted})
}

// getPeer returns the state of a peer and creates it if necessary.
func (c *Core) getPeer(number int) *peer {
	p := c.peers.Find(number)
	if p == nil {
		p = c.peers.Get(number)
		p.number = number
		p.reset(uint16(c.o.MTU), c.first)
	}
	return p
}

// ClosePeer closes a peer. Its packets are dropped until it has a new
// incarnation. Slots that the adapter still reads stay allocated until
// ReleaseSlot.
func (c *Core) ClosePeer(number int) { c.closePeer(c.getPeer(number)) }

// RemovePeer closes a peer and removes its state, so that the number can be
// used for another peer.
func (c *Core) RemovePeer(number int) {
	c.closePeer(c.getPeer(number))
	c.peers.Remove(number)
}

func (c *Core) closePeer(p *peer) {
	p.closed, p.blocked, p.slotStarved = true, false, false
	c.releaseBuffers(p)
	p.control = pendingControl{}
}

// releaseBuffers returns the slots and buffers of a peer to the free lists.
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

// pushFree adds v to a free list, unless the list is full.
func pushFree[T any](list *[]T, v T) {
	if len(*list) < maxFree {
		*list = append(*list, v)
	}
}

// popFree removes an element from a free list.
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
	pushFree(&c.freeReorderBuffers, p.in.reorder) // empty
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

package nack

import (
	"errors"

	"github.com/softrnic/softrnic/internal/fifo"
)

// Core is one end: it has all peers. One call at a time.
type Core struct {
	o     Options
	peers []*peer // by number; nil: nothing is known
	slots slots
	early int // bytes that inboxes hold

	active  fifo.Queue[*peer] // may have something to send
	starved fifo.Queue[*peer] // wait for a slot
	timers  timers
	events  fifo.Queue[Event]

	// To be used again.
	outboxes []*outbox
	inboxes  []*inbox
	buffers  [][]byte

	// Stats counts what has been done.
	Stats Stats

	first uint32 // number of the first packet to a peer: 0, but in tests
}

// Errors of Send.
var (
	ErrNoRoom  = errors.New("no room now")            // an Event follows when there is
	ErrTooLong = errors.New("message is too long")    // see Options.MaxMessage
	ErrFault   = errors.New("message cannot be read") // the system refuses access to its memory; nothing was taken
	ErrGone    = errors.New("peer is closed, lost")   // or has been started anew, and not opened since
)

// Stats counts what an end has done.
type Stats struct {
	Sent, Delivered             uint64 // messages
	Packets, Resent             uint64 // of Data: that left for the first time, and again
	Asks, Acks, Nacks           uint64 // sent; a Hello counts as Ask
	NacksHeard                  uint64
	Early                       uint64 // packets that came before another
	Restarts, GivenUp, Breaches uint64 // of peers
	Dropped                     [drops]uint64
}

// New returns an end without connections to anybody. It panics if Options lack
// what has to be given.
func New(o Options) *Core {
	o.fill()
	c := &Core{o: o, peers: make([]*peer, o.Peers)}
	c.slots.init(o.Memory, o.MTU)
	return c
}

// Peer is what has to be known to talk to a peer.
type Peer struct {
	Epoch uint32 // of its life; 0: it will be asked
	MTU   int    // bytes of the longest packet on the way there, at most ours, which 0 stands for
}

// Open says that packets to a peer can be sent from now on. Before, messages to
// it are ErrNoRoom, and what it has sent is not acknowledged. A peer that is
// closed or lost stays so unless Open has a newer epoch of it.
func (c *Core) Open(now Time, number int, at Peer) {
	p := c.peer(number)
	switch {
	case at.Epoch == 0 || at.Epoch == p.epoch:
	case p.epoch == 0:
		p.epoch = at.Epoch
	case after(at.Epoch, p.epoch):
		c.restart(p, at.Epoch)
	}
	p.open = true
	p.out.mtu = uint16(c.o.MTU)
	if at.MTU >= minMTU && at.MTU < c.o.MTU {
		p.out.mtu = uint16(at.MTU)
	}
	p.out.window.Reset(int(p.out.mtu), 0)
	c.settle(now, p)
}

// restart begins with a peer that has another life.
func (c *Core) restart(p *peer, epoch uint32) {
	c.release(p)
	p.reset(p.out.mtu, c.first)
	p.epoch, p.gone = epoch, false
	c.Stats.Restarts++
	c.events.Push(Event{Peer: p.number, Kind: Restarted})
}

// peer returns what is known of a peer, which may be nothing yet.
func (c *Core) peer(number int) *peer {
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

// Close ends all there is with a peer. Its packets are dropped until it has
// another life. Slots that the adapter has stay its until Done.
func (c *Core) Close(number int) { c.close(c.peer(number)) }

// Forget is Close, and forgets that there was such a peer: whoever gets its number
// next is another one.
func (c *Core) Forget(number int) {
	c.close(c.peer(number))
	c.peers[number] = nil
}

func (c *Core) close(p *peer) {
	p.gone, p.waiting, p.starving = true, false, false
	c.release(p)
	p.owe = owed{}
}

// release gives back all that a peer holds.
func (c *Core) release(p *peer) {
	if r := p.out.ring; r != nil {
		for seq := p.out.una; seq != p.out.next; seq++ {
			if r.there&bit(seq) == 0 {
				c.slots.clear(r.slot[place(seq)], kept)
			}
		}
		c.freeOutbox(p)
	}
	p.out.una, p.out.fresh, p.out.flying, p.out.askAt = p.out.next, p.out.next, 0, 0
	if b := p.in.inbox; b != nil {
		for i := range b.packet {
			if b.held&(1<<i) != 0 {
				c.unhold(b, uint32(i))
			}
		}
		c.freeInbox(p)
	}
	c.freeBuffer(p.in.message)
	p.in.message, p.in.length = nil, 0
}

// keep puts something to what is used again, if that is not much already.
func keep[T any](list *[]T, v T) {
	if len(*list) < keptFree {
		*list = append(*list, v)
	}
}

// reuse takes something from it.
func reuse[T any](list *[]T) (v T, ok bool) {
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

func (c *Core) outbox(p *peer) *outbox {
	if p.out.ring == nil {
		b, ok := reuse(&c.outboxes)
		if !ok {
			b = new(outbox)
		}
		b.lost, b.there = 0, 0
		p.out.ring = b
	}
	return p.out.ring
}

func (c *Core) freeOutbox(p *peer) {
	keep(&c.outboxes, p.out.ring)
	p.out.ring = nil
}

func (c *Core) inbox(p *peer) *inbox {
	if p.in.inbox == nil {
		b, ok := reuse(&c.inboxes)
		if !ok {
			b = new(inbox)
		}
		p.in.inbox = b
	}
	return p.in.inbox
}

func (c *Core) freeInbox(p *peer) {
	keep(&c.inboxes, p.in.inbox) // with nothing held
	p.in.inbox = nil
}

func (c *Core) buffer() []byte {
	b, _ := reuse(&c.buffers)
	return b
}

func (c *Core) freeBuffer(b []byte) {
	if cap(b) > 0 {
		keep(&c.buffers, b[:0])
	}
}

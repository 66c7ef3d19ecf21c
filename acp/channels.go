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
	ends    []*Channel          // by id, which others name in immediate data; 0 is nobody's
	free    []uint16            // ids that are not in use any more
	active  []*Channel          // that have to look at memory, or have something to do
	owing   []*Channel          // receiving ends that give slots back with what happens next
	numbers map[end]uint32      // how many were made to and from a rank
	asked   map[asking]asked    // requests that have come before their receiving end was made
	seekers map[asking]*Channel // receiving ends that no request has come for
	placed  uint64              // messages that were put to their place
}

// end is one of the two directions between this rank and another.
type end struct {
	rank  int
	sends bool
}

// asking names the channel that a request is for.
type asking struct {
	rank   int
	number uint32
}

// asked is a request.
type asked struct {
	control GA // of the sending end
	protocol.Ask
}

// askedMax is how many requests are kept for receiving ends that are not made yet. More stay where they
// are, in the connection request buffer, and those who ask have to wait.
const askedMax = 1 << 16

func (c *channels) init() {
	c.ends = []*Channel{nil}
	c.numbers, c.asked, c.seekers = map[end]uint32{}, map[asking]asked{}, map[asking]*Channel{}
}

// add gives an end its id.
func (c *channels) add(ch *Channel) error {
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

func (c *channels) remove(ch *Channel) {
	c.ends[ch.id] = nil
	c.free = append(c.free, ch.id)
}

// activate has step look at an end.
func (c *channels) activate(ch *Channel) {
	if !ch.active {
		ch.active = true
		c.active = append(c.active, ch)
	}
}

// step has all go on that can. Those stay active that only memory will tell something.
func (c *channels) step(p *Process) {
	if len(c.seekers) > 0 {
		c.scan(p)
	}
	if len(c.active) == 0 {
		return
	}
	list := c.active
	c.active = c.active[len(c.active):] // who is activated meanwhile comes behind
	kept := list[:0]
	for _, ch := range list {
		ch.active = false
		if ch.step() && !ch.active {
			ch.active = true
			kept = append(kept, ch)
		}
	}
	c.active = append(kept, c.active...)
}

// scan takes requests out of the connection request buffer. Their details are read from those who ask.
func (c *channels) scan(p *Process) {
	for i := range crbSlots {
		off := crbOffset + 8*i
		ga := GA(p.memory.starter.LoadUint64(off))
		if ga == Null {
			continue
		}
		if len(c.asked) >= askedMax || len(p.memory.landing.free) == 0 {
			return
		}
		atomic.StoreUint64(word(p.memory.starter.Bytes(), off), 0)
		p.turns.events++
		if ga.Rank() < p.size && ga.Region() != 0 {
			p.inspect(ga)
		}
	}
}

// inspect reads the control block of a sending end.
func (p *Process) inspect(control GA) {
	i := &inspection{p: p, control: control, slot: p.memory.landing.take()}
	a := p.newAccess(control, 16, i)
	a.Kind, a.Mem, a.Off, a.N = fabric.Get, p.memory.landing.mr, i.slot*protocol.EntrySize, 16
	p.start(a)
}

// inspection hears what it says.
type inspection struct {
	p       *Process
	control GA
	slot    int
}

func (i *inspection) accessed(_ *access, err error) {
	w := i.p.memory.landing.words(i.slot)
	i.p.freeLanding(i.slot)
	if err != nil {
		return // who has asked is gone, and channels with it fail for that
	}
	q, ok := protocol.ParseAsk([2]uint64(w[:2]), i.p.rank)
	if !ok {
		return
	}
	c := &i.p.channels
	name := asking{i.control.Rank(), q.Number}
	if ch := c.seekers[name]; ch != nil {
		delete(c.seekers, name)
		ch.accept(asked{i.control, q})
		return
	}
	c.asked[name] = asked{i.control, q}
}

// Signal implements fabric.Host.
func (p *Process) Signal(rank int, imm uint32) {
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
	case s == protocol.Filled && ch.recv != nil:
		err = ch.recv.More()
	case s == protocol.Freed && ch.send != nil:
		err = ch.send.Credit(count)
	case s == protocol.Ended && ch.send != nil:
		ch.over = true
	default:
		err = fmt.Errorf("%w: signal %d to the wrong end", ErrBroken, s)
	}
	if err != nil {
		ch.fail(err)
		return
	}
	p.channels.activate(ch)
}

// lost fails all channels with a rank.
func (c *channels) lost(rank int, why error) {
	for _, ch := range c.ends {
		if ch != nil && int(ch.peer) == rank {
			ch.fail(why)
		}
	}
	for name := range c.asked {
		if name.rank == rank {
			delete(c.asked, name)
		}
	}
}

// close fails all channels: who waits does so no longer, and no receive's memory is written to.
func (c *channels) close() {
	for _, ch := range c.ends {
		if ch != nil {
			ch.fail(ErrClosed)
		}
	}
}

// suspect asks the other ends of those channels that somebody waits for.
func (c *channels) suspect(p *Process) {
	for _, ch := range c.ends {
		if ch != nil && ch.err == nil && int(ch.peer) != p.rank && (ch.state == connecting || ch.first != nil || ch.freed) {
			p.ask(int(ch.peer))
		}
	}
}

package acp

import "fmt"

// A copy between two other ranks is relayed by this rank: blocks are read into buffers and written from
// there, several at a time. The buffers are allocated on first use.
const (
	relayBlockSize = 128 << 10 // bytes
	relayCount     = 4
)

// relays holds the relay buffers, and the copies that wait for them.
type relays struct {
	memory  *Region
	free    []int
	waiting []*relay
}

// relay is one relayed copy.
type relay struct {
	*copyOp
	nextOffset  int // offset of the next block to read
	outstanding int // blocks in flight
	err         error
}

// relayBlock is a block in flight.
type relayBlock struct {
	*relay
	buffer  int
	off, n  int
	writing bool // the block is being written
}

// startRelay starts a copy between two other ranks.
func (p *Process) startRelay(c *copyOp) {
	r := &p.relays
	if r.memory == nil {
		memory, err := p.memory.registerRegion(p, make([]byte, relayCount*relayBlockSize))
		if err != nil {
			c.o.finishOp(fmt.Errorf("allocate relay buffers: %w", err))
			return
		}
		r.memory = memory
		for i := range relayCount {
			r.free = append(r.free, i)
		}
	}
	r.waiting = append(r.waiting, &relay{copyOp: c})
	p.scheduleRelays()
}

// scheduleRelays assigns free buffers to waiting copies in round-robin order, so that a long copy does not
// delay short ones.
func (p *Process) scheduleRelays() {
	r := &p.relays
	for len(r.free) > 0 && len(r.waiting) > 0 {
		c := r.waiting[0]
		r.waiting = r.waiting[:copy(r.waiting, r.waiting[1:])]
		last := len(r.free) - 1
		m := &relayBlock{relay: c, buffer: r.free[last], off: c.nextOffset, n: min(relayBlockSize, c.n-c.nextOffset)}
		r.free = r.free[:last]
		c.nextOffset += m.n
		c.outstanding++
		if c.nextOffset < c.n {
			r.waiting = append(r.waiting, c)
		}
		p.startAccess(p.newGet(r.memory, m.buffer*relayBlockSize, c.from.Add(m.off), m.n, m))
	}
}

// onAccessDone implements accessOwner.
func (b *relayBlock) onAccessDone(_ *access, err error) {
	p := b.o.p
	if err == nil && !b.writing {
		b.writing = true
		p.startAccess(p.newPut(b.to.Add(b.off), p.relays.memory, b.buffer*relayBlockSize, b.n, b))
		return
	}
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		b.stopReading()
	}
	p.relays.free = append(p.relays.free, b.buffer)
	b.outstanding--
	if b.outstanding == 0 && (b.nextOffset == b.totalLen() || b.err != nil) {
		b.o.finishOp(b.err)
	}
	p.scheduleRelays()
}

// totalLen returns the length of the copy in bytes.
func (b *relayBlock) totalLen() int { return b.copyOp.n }

// stopReading stops c from reading further blocks.
func (c *relay) stopReading() {
	wait := &c.o.p.relays.waiting
	for i, w := range *wait {
		if w == c {
			*wait = append((*wait)[:i], (*wait)[i+1:]...)
			break
		}
	}
}

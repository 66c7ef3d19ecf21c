package acp

import "fmt"

// A copy between two other ranks comes here and goes on: pieces are read into
// buffers and written from there, several at a time. Buffers are made when they are first needed.
const (
	relayPiece = 128 << 10 // bytes
	relayCount = 4
)

// relays are the buffers, and the copies that use them or wait.
type relays struct {
	memory *Region
	free   []int
	wait   []*relay
}

// relay is such a copy.
type relay struct {
	*copying
	next  int // byte that is to be read next
	moves int // pieces under way
	err   error
}

// piece is one on its way.
type piece struct {
	*relay
	buffer int
	off, n int
	stored bool // it is being written
}

// relay begins a copy between two other ranks.
func (p *Process) relay(c *copying) {
	r := &p.relays
	if r.memory == nil {
		memory, err := p.memory.register(p, make([]byte, relayCount*relayPiece))
		if err != nil {
			c.o.finish(fmt.Errorf("buffers for a copy between other ranks: %w", err))
			return
		}
		r.memory = memory
		for i := range relayCount {
			r.free = append(r.free, i)
		}
	}
	r.wait = append(r.wait, &relay{copying: c})
	p.serveRelays()
}

// serveRelays gives buffers to who waits for them, in turn: a long copy does not keep short ones from
// going on.
func (p *Process) serveRelays() {
	r := &p.relays
	for len(r.free) > 0 && len(r.wait) > 0 {
		c := r.wait[0]
		r.wait = r.wait[:copy(r.wait, r.wait[1:])]
		last := len(r.free) - 1
		m := &piece{relay: c, buffer: r.free[last], off: c.next, n: min(relayPiece, c.n-c.next)}
		r.free = r.free[:last]
		c.next += m.n
		c.moves++
		if c.next < c.n {
			r.wait = append(r.wait, c)
		}
		p.start(p.get(r.memory, m.buffer*relayPiece, c.from.Add(m.off), m.n, m))
	}
}

// accessed implements accessOwner.
func (m *piece) accessed(_ *access, err error) {
	p := m.o.p
	if err == nil && !m.stored {
		m.stored = true
		p.start(p.put(m.to.Add(m.off), p.relays.memory, m.buffer*relayPiece, m.n, m))
		return
	}
	if err != nil {
		if m.err == nil {
			m.err = err
		}
		m.stop()
	}
	p.relays.free = append(p.relays.free, m.buffer)
	m.moves--
	if m.moves == 0 && (m.next == m.whole() || m.err != nil) {
		m.o.finish(m.err)
	}
	p.serveRelays()
}

// whole is the length of the whole copy.
func (m *piece) whole() int { return m.copying.n }

// stop has no more pieces read.
func (c *relay) stop() {
	wait := &c.o.p.relays.wait
	for i, w := range *wait {
		if w == c {
			*wait = append((*wait)[:i], (*wait)[i+1:]...)
			break
		}
	}
}

package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// Moved says that a Fetch or a Store has ended, and its memory is not the net's
// any more. After an error the rank should be Lost.
func (c *Core) Moved(move uint64, err error) {
	l := late{f: (*Core).moved, move: move, err: err}
	if c.postpone(l) {
		return
	}
	c.enter()
	defer c.leave()
	c.moved(l)
}

func (c *Core) moved(l late) {
	r := c.requests.get(l.move)
	if r == nil || r.state != fetching && r.state != storing {
		return
	}
	p := &c.peers[r.peer]
	if r.state == fetching && !r.alone {
		c.push(int(r.peer), outgoing{op: answer, kind: envelope.Finish, id: r.to})
	}
	switch {
	case l.err == nil:
		c.done(r, nil)
	case p.lost != nil:
		c.done(r, p.lost)
	default:
		c.done(r, c.lossOf(int(r.peer), l.err))
	}
}

// Put begins to write r.Buf to memory of another rank, r.Dest, which is told
// nothing. It is done when the memory is written. What is sent afterwards arrives
// behind it.
func (c *Core) Put(r *Request, key envelope.Key) { c.oneSided(r, key, put) }

// Get begins to read memory of another rank, r.Dest, into r.Buf. The rank is
// told nothing.
func (c *Core) Get(r *Request, key envelope.Key) { c.oneSided(r, key, get) }

func (c *Core) oneSided(r *Request, key envelope.Key, o op) {
	c.enter()
	defer c.leave()
	r.peer, r.key, r.Bytes, r.alone = int32(r.Dest), key, len(r.Buf), true
	if r.Bytes == 0 {
		c.done(r, c.peers[r.Dest].lost)
		return
	}
	c.push(r.Dest, outgoing{op: o, r: r})
}

// move begins a Put or a Get whose turn has come.
func (c *Core) move(to int, o outgoing) bool {
	r := o.r
	c.requests.add(r)
	var err error
	state := fetching
	switch o.op {
	case get:
		err = c.net.Fetch(to, r.Buf, r.key, r.id)
	case put:
		state = storing
		err = c.net.Store(to, r.Buf, r.key, r.id)
	case putNotify:
		state = storing
		err = c.net.(Notifier).StoreNotify(to, r.Buf, r.key, r.notice, r.id)
	default:
		err = c.net.(Atomics).Atomic(to, r.Buf, r.key, r.atomic, r.id)
	}
	switch {
	case err == ErrNoRoom:
		return false
	case err == nil:
		r.state = state
	case c.peers[to].lost != nil:
		c.done(r, c.peers[to].lost)
	default:
		c.done(r, fmt.Errorf("rank %d: %w", to, err))
	}
	return true
}

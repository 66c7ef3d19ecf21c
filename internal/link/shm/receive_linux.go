package shm

import (
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/racesync"
)

const (
	looksPerRead  = 16   // looks at the ring of one peer by a ReadBatch that finds nothing
	busySocket    = 4    // empty looks at the rings for one at the socket, which costs a system call, while packets come there
	idleSocket    = 32   // the same while none do
	socketMemory  = 1024 // looks at the socket that find nothing until it counts as idle
	readsPerLook  = 64   // reads of rings that are never empty for one of the socket
	maxActive     = 4    // rings that are looked at each time, however little comes there
	idleAfter     = 1024 // reads that find nothing in a ring until it is looked at less often, if there are more
	idleLooks     = 4    // rings of the others looked at each time
	maxReadRecord = 4    // part of a ring, 1/n, that one ReadBatch returns at most
)

// A reader is the part of a link that receives.
type reader struct {
	readMu   sync.Mutex // held for ReadBatch, by Wait before and after it blocks, and by Close and Stats
	joining  []*incoming
	active   []*incoming // looked at by each ReadBatch
	idle     []*incoming // looked at in turns; their producers wake a sleeper, as they always announce records
	nextIdle int
	leaving  bool        // an active ring is to be removed
	first    int         // of the active rings in the next ReadBatch
	closing  []*incoming // not read any more, but the results of the last ReadBatch may refer to them
	received traffic

	gone       atomic.Int32 // number of peers that have gone since the last look
	emptyLooks int          // at the rings since the last one at the socket
	fullReads  int          // of rings since the last one of the socket
	quietLooks int          // at the socket that found nothing, in a row
}

// An incoming is a ring that a peer fills.
type incoming struct {
	peer  *peer
	src   netip.AddrPort
	ring  consumer
	empty int // reads in a row that found nothing
}

// ReadBatch implements link.Conn.
func (c *conn) ReadBatch(r *link.Datagrams) (int, error) {
	c.readMu.Lock()
	n, err := c.readBatch(r)
	c.readMu.Unlock()
	return n, err
}

// readBatch is ReadBatch with the lock held.
func (c *conn) readBatch(r *link.Datagrams) (int, error) {
	if len(c.active) == 0 && len(c.idle) == 0 && len(c.joining) == 0 || c.closed.Load() {
		return c.Conn.ReadBatch(r)
	}
	if len(c.joining) > 0 || c.fullReads >= readsPerLook {
		if n, err := c.readSocket(r); n > 0 || err != nil || len(r.Refusals()) > 0 {
			return n, err
		}
		c.activateJoining()
	}
	r.Reset()
	for _, in := range c.closing {
		in.peer.closeRing()
	}
	c.closing = c.closing[:0]
	c.readRings(r)
	if n := len(r.Msgs()); n > 0 {
		c.emptyLooks = 0
		c.fullReads++
		return n, nil
	}
	looks := idleSocket
	if c.quietLooks < socketMemory {
		looks = busySocket
	}
	if c.emptyLooks++; c.emptyLooks < looks {
		r.Cheap = true
		return 0, nil
	}
	return c.readSocket(r)
}

// readSocket reads the socket.
func (c *conn) readSocket(r *link.Datagrams) (int, error) {
	c.emptyLooks, c.fullReads = 0, 0
	n, err := c.Conn.ReadBatch(r)
	if n > 0 {
		c.quietLooks = 0
	} else {
		c.quietLooks++
	}
	return n, err
}

// readRings reads the active rings, and looks at some of the idle ones.
func (c *conn) readRings(r *link.Datagrams) {
	if c.gone.Load() > 0 {
		c.activateAll()
	}
	if len(c.idle) > 0 {
		c.lookAtIdle(idleLooks)
	}
	if len(c.active) == 1 && c.active[0].staysEmpty() {
		return
	}
	for i := range c.active {
		if i += c.first; i >= len(c.active) {
			i -= len(c.active)
		}
		in := c.active[i]
		before := len(r.Msgs())
		switch ok := in.readRing(r, &c.received); {
		case !ok:
			c.closing = append(c.closing, in)
			c.leaving = true
		case len(r.Msgs()) > before:
			in.empty = 0
		case len(c.active) > maxActive:
			in.empty++
			c.leaving = c.leaving || in.empty > idleAfter
		}
	}
	if c.first++; c.first >= len(c.active) { // another one comes first the next time
		c.first = 0
	}
	if c.leaving {
		c.removeLeaving()
	}
}

// staysEmpty reports whether looksPerRead looks at a ring find nothing, and its peer lives.
func (in *incoming) staysEmpty() bool {
	in.ring.releaseRecords()
	word := in.ring.wordAt(in.ring.next)
	for range looksPerRead {
		if word.Load() != 0 {
			return false
		}
	}
	return !in.peer.gone.Load()
}

// removeLeaving removes from the active rings those in c.closing, and those that have become idle.
func (c *conn) removeLeaving() {
	c.leaving, c.first = false, 0
	c.active = slices.DeleteFunc(c.active, func(in *incoming) bool {
		if slices.Contains(c.closing, in) {
			return true
		}
		if in.empty <= idleAfter || !in.ring.beginSleep() {
			return false
		}
		c.idle = append(c.idle, in)
		return true
	})
}

// lookAtIdle looks at the next n idle rings.
func (c *conn) lookAtIdle(n int) {
	for range min(n, len(c.idle)) {
		if c.nextIdle >= len(c.idle) {
			c.nextIdle = 0
		}
		in := c.idle[c.nextIdle]
		if in.ring.isEmpty() {
			c.nextIdle++
			continue
		}
		in.ring.endSleep()
		in.empty = 0
		c.active = append(c.active, in)
		last := len(c.idle) - 1
		c.idle[c.nextIdle], c.idle[last] = c.idle[last], nil
		c.idle = c.idle[:last]
	}
}

// activateAll makes every ring active, to find those of peers that have gone.
func (c *conn) activateAll() {
	c.gone.Store(0)
	for _, in := range c.idle {
		in.ring.endSleep()
		in.empty = 0
	}
	c.active = append(c.active, c.idle...)
	c.idle = c.idle[:0]
}

// activateJoining begins to read the rings of new peers, which have sent through the socket before:
// the socket was found empty since.
func (c *conn) activateJoining() {
	c.active = append(c.active, c.joining...)
	c.joining = c.joining[:0]
}

// readRing takes records until r is full, and reports whether the ring stays in use. The records that
// it has taken before may be overwritten.
func (in *incoming) readRing(r *link.Datagrams, received *traffic) bool {
	in.ring.releaseRecords()
	gone := in.peer.gone.Load() // before the ring is found empty
	for room := len(in.ring.records) / maxReadRecord; room > 0 && !r.Full(); {
		w, data, err := in.ring.takeRecord()
		if err != nil {
			return false
		}
		if w == 0 {
			return !gone
		}
		racesync.Acquire()
		room -= len(data)
		d := link.Datagram{Src: in.src, TOS: w.trafficClass(), Buf: data, Seg: w.segmentSize(), Unsealed: w&wordSealed == 0, Unstable: true}
		r.Add(d)
		received.add(d.Count(), len(data))
	}
	return true
}

// Wait implements link.Conn.
func (c *conn) Wait(timeout time.Duration) (bool, error) {
	if !c.beginSleep() {
		return true, nil
	}
	readable, err := c.Conn.Wait(timeout)
	return c.endSleep(readable), err
}

// beginSleep reports whether all rings are empty and their producers will wake this end.
func (c *conn) beginSleep() bool {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if len(c.joining) > 0 || c.gone.Load() > 0 {
		return false
	}
	for i, in := range c.active {
		if !in.ring.beginSleep() {
			for _, in := range c.active[:i] {
				in.ring.endSleep()
			}
			return false
		}
	}
	return true
}

// endSleep reports whether the socket is readable or a ring has a record. The next ReadBatch without
// records reads a readable socket, so that a waiter does not wait again.
func (c *conn) endSleep(readable bool) bool {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if readable {
		c.quietLooks = 0
	}
	for _, in := range c.active {
		in.ring.endSleep()
		readable = readable || !in.ring.isEmpty()
	}
	c.lookAtIdle(len(c.idle))
	c.emptyLooks = idleSocket // the next ReadBatch looks at the socket, which may have ended the wait
	return readable || len(c.joining) > 0 || c.gone.Load() > 0
}

// addIncoming adds the ring of a peer that has connected.
func (c *conn) addIncoming(p *peer, src netip.AddrPort) error {
	r, err := newRing(p.mem)
	if err != nil {
		return err
	}
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if c.closed.Load() {
		return errClosed
	}
	p.onGone = func() {
		c.gone.Add(1)
		c.Conn.Wake()
	}
	c.joining = append(c.joining, &incoming{peer: p, src: src, ring: consumer{ring: r}})
	c.Conn.Wake() // a sleeper has not announced itself in this ring
	return nil
}

// closeIncoming ends the use of all rings. Their memory stays as long as the link is referred to: the
// results of the last ReadBatch may be in use.
func (c *conn) closeIncoming() {
	var memory [][]byte
	for _, list := range [][]*incoming{c.joining, c.active, c.idle, c.closing} {
		for _, in := range list {
			memory = append(memory, in.peer.detachMemory())
			in.peer.closeRing()
		}
	}
	c.joining, c.active, c.idle, c.closing = nil, nil, nil, nil
	if len(memory) > 0 {
		runtime.AddCleanup(c, unmapAll, memory)
	}
}

package shm

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/wire"
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

	maxSources  = 4096                  // addresses whose packets are counted
	joiningWait = 10 * time.Millisecond // for the packets that a peer has sent through the socket before its ring
)

// A reader is the part of a link that receives.
type reader struct {
	readMu   sync.Mutex  // held for ReadBatch, by Wait before and after it blocks, and by Close and Stats
	joining  []*incoming // not read yet
	active   []*incoming // looked at by each ReadBatch
	idle     []*incoming // looked at in turns; their producers wake a sleeper, as they always announce records
	nextIdle int
	leaving  bool        // an active ring is to be removed
	first    int         // of the active rings in the next ReadBatch
	closing  []*incoming // not read any more, but the results of the last ReadBatch may refer to them
	received traffic

	// bySocket has the number of packets from each address through the socket.
	bySocket   map[netip.AddrPort]*uint64
	lastSource netip.AddrPort
	lastCount  *uint64 // that of lastSource
	lateRings  uint64  // rings that were read although packets before them were missing

	gone       atomic.Int32 // number of peers that have gone since the last look
	handedOut  bool         // the last ReadBatch has returned records
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

	earlier int64     // packets that the peer has sent through the socket before this ring, or countUnknown
	readBy  time.Time // although not all of those have come
}

// countUnknown is the number of earlier packets of a peer that does not know which of its packets through
// the socket went to this link.
const countUnknown = -1

// ReadBatch implements link.Conn.
func (c *conn) ReadBatch(r *link.Datagrams) (int, error) {
	c.readMu.Lock()
	n, err := c.readBatch(r)
	c.readMu.Unlock()
	return n, err
}

// readBatch is ReadBatch with the lock held.
func (c *conn) readBatch(r *link.Datagrams) (int, error) {
	if len(c.active) == 0 && len(c.idle) == 0 && len(c.joining) == 0 && len(c.closing) == 0 || c.closed.Load() {
		n, err := c.Conn.ReadBatch(r)
		c.countSources(r)
		return n, err
	}
	if len(c.joining) > 0 {
		c.activateJoining()
	}
	if len(c.joining) > 0 || c.fullReads >= readsPerLook {
		if n, err := c.readSocket(r); n > 0 || err != nil || len(r.Refusals()) > 0 {
			return n, err
		}
	}
	r.Reset()
	for _, in := range c.closing {
		in.peer.closeRing()
	}
	c.closing = c.closing[:0]
	c.readRings(r)
	n := len(r.Msgs())
	c.handedOut = n > 0
	if n > 0 {
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

// readSocket reads the socket. The results of the last ReadBatch are not in use any more.
func (c *conn) readSocket(r *link.Datagrams) (int, error) {
	for _, in := range c.active {
		in.ring.releaseAll()
	}
	c.emptyLooks, c.fullReads = 0, 0
	n, err := c.Conn.ReadBatch(r)
	c.countSources(r)
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
	word := in.ring.wordAt(in.ring.offset)
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
		in.ring.releaseAll()
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

// countSources counts the packets of the socket by their source.
func (c *conn) countSources(r *link.Datagrams) {
	for i := range r.Msgs() {
		d := &r.Msgs()[i]
		if len(d.Buf) < wire.MinPacketLen || c.shared && binary.BigEndian.Uint32(d.Buf[4:])&wire.QPNMask <= wire.QPNGSI {
			continue // of a stranger, or for any adapter at the address
		}
		if d.Src != c.lastSource || c.lastCount == nil {
			c.lastSource, c.lastCount = d.Src, c.sourceCount(d.Src)
		}
		*c.lastCount += uint64(d.Count())
	}
}

// sourceCount returns the counter of an address. If there are too many, it forgets the others.
func (c *conn) sourceCount(src netip.AddrPort) *uint64 {
	n := c.bySocket[src]
	if n == nil {
		if len(c.bySocket) >= maxSources || c.bySocket == nil {
			c.bySocket, c.lastCount = map[netip.AddrPort]*uint64{}, nil
		}
		n = new(uint64)
		c.bySocket[src] = n
	}
	return n
}

// activateJoining begins to read the rings of new peers whose packets through the socket have come. A busy
// system may deliver those after packets of the ring, out of order, or lose them: after joiningWait the
// ring is read in any case.
func (c *conn) activateJoining() {
	var now time.Time
	c.joining = slices.DeleteFunc(c.joining, func(in *incoming) bool {
		if in.peer.gone.Load() && in.ring.isEmpty() { // the peer may have sent through the socket instead
			c.closing = append(c.closing, in)
			return true
		}
		if n := c.bySocket[in.src]; in.earlier != 0 && (n == nil || int64(*n) != in.earlier) {
			if now.IsZero() {
				now = time.Now()
			}
			if now.Before(in.readBy) {
				return false
			}
			c.lateRings++
		}
		if in.earlier > 0 || in.earlier == 0 && c.bySocket[in.src] != nil {
			*c.sourceCount(in.src) = uint64(in.earlier) // without those of an earlier process at this address
		}
		c.active = append(c.active, in)
		return true
	})
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
	ok, longest := c.beginSleep()
	if !ok {
		return true, nil
	}
	if longest > 0 && (timeout < 0 || timeout > longest) {
		timeout = longest
	}
	readable, err := c.Conn.Wait(timeout)
	return c.endSleep(readable), err
}

// beginSleep reports whether all rings are empty and their producers will wake this end, and for how long
// it may sleep because of the rings that it does not read yet, or 0.
func (c *conn) beginSleep() (ok bool, longest time.Duration) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	c.activateJoining()
	if c.gone.Load() > 0 {
		return false, 0
	}
	if len(c.joining) > 0 {
		longest = max(time.Until(c.joining[0].readBy), time.Microsecond) // the first one has waited for longest
	}
	for i, in := range c.active {
		if !c.handedOut {
			in.ring.releaseAll()
		}
		if !in.ring.beginSleep() {
			for _, in := range c.active[:i] {
				in.ring.endSleep()
			}
			return false, 0
		}
	}
	return true, longest
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

// addIncoming adds the ring of a peer that has connected, and has sent a number of packets through the socket
// before, or countUnknown.
func (c *conn) addIncoming(p *peer, src netip.AddrPort, earlier int64) error {
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
	c.joining = append(c.joining, &incoming{peer: p, src: src, ring: consumer{ring: r}, earlier: earlier, readBy: time.Now().Add(joiningWait)})
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

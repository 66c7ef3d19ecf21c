package shm

import (
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/link"
)

const (
	ringSize      = 8 << 20               // bytes of records; larger than the window of a connection, and than a processor's own cache
	fullWait      = 10 * time.Millisecond // for space in a full ring, after which packets are lost, as those of a full socket
	retryInterval = time.Second           // between attempts to reach an address that has no ring
	looksPerRead  = 4                     // empty looks at the rings for one at the socket: a look there costs a system call
)

// A waker is a link whose Wait ends when its descriptor is written (eventfd(2)).
type waker interface{ WakeFD() int }

// conn is a link that sends to some addresses through rings.
type conn struct {
	link.Conn
	local  netip.AddrPort
	wakeFD int
	names  *listener
	closed atomic.Bool

	writeMu  sync.Mutex
	outgoing map[netip.AddrPort]*outgoing
	unringed []int       // groups of the current batch without a ring
	rest     *link.Batch // their packets, if others have one

	readMu     sync.Mutex
	incoming   []*incoming
	emptyLooks int

	counters counters
}

// counters count the traffic of the rings.
type counters struct {
	sentPackets, sentBytes, receivedPackets, receivedBytes, lost atomic.Uint64
}

// An outgoing is the way to one address: a ring, or none until retryAt.
type outgoing struct {
	peer    *peer
	ring    producer
	retryAt time.Time
}

// An incoming is a ring that a peer fills.
type incoming struct {
	peer *peer
	src  netip.AddrPort
	ring consumer
}

// Wrap returns a link that exchanges packets with other wrapped links of this user on this host
// through shared memory. It returns inner as it is where that is not possible.
func Wrap(inner link.Conn) link.Conn {
	w, ok := inner.(waker)
	if !ok {
		return inner
	}
	c := &conn{Conn: inner, local: inner.LocalAddr(), wakeFD: w.WakeFD(), outgoing: map[netip.AddrPort]*outgoing{}}
	names, err := listenAt(c.local, c.wakeFD)
	if err != nil {
		return inner
	}
	c.names = names
	go names.serveHandshakes(c.addIncoming)
	return c
}

// Unwrap returns the link of the socket.
func (c *conn) Unwrap() link.Conn { return c.Conn }

// Caps implements link.Conn.
func (c *conn) Caps() link.Caps {
	caps := c.Conn.Caps()
	caps.Name += "+shm"
	return caps
}

// Stats returns the counters of the socket and of the rings together.
func (c *conn) Stats() link.Stats {
	s := link.StatsOf(c.Conn)
	s.SentPackets += c.counters.sentPackets.Load()
	s.SentBytes += c.counters.sentBytes.Load()
	s.ReceivedPackets += c.counters.receivedPackets.Load()
	s.ReceivedBytes += c.counters.receivedBytes.Load()
	s.SendNoBuffers += c.counters.lost.Load()
	return s
}

// WriteBatch implements link.Conn.
func (c *conn) WriteBatch(b *link.Batch) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.closed.Load() {
		return c.Conn.WriteBatch(b)
	}
	c.unringed = c.unringed[:0]
	sealed := false
	for i := range b.Groups() {
		o := c.findRing(b.Path(i).Dst)
		if o == nil {
			c.unringed = append(c.unringed, i)
			continue
		}
		if !sealed {
			b.Seal(c.local, true)
			sealed = true
		}
		c.writeGroup(o, b, i)
	}
	switch {
	case !sealed:
		return c.Conn.WriteBatch(b)
	case len(c.unringed) == 0:
		return nil
	}
	return c.writeRest(b)
}

// writeRest sends the groups of c.unringed through the socket.
func (c *conn) writeRest(b *link.Batch) error {
	if c.rest == nil {
		c.rest = link.NewBatch(b.Cap())
	}
	c.rest.Reset()
	for _, i := range c.unringed {
		path, buf, seg := b.Group(i)
		for ; len(buf) > 0; buf = buf[min(seg, len(buf)):] {
			c.rest.Append(path, buf[:min(seg, len(buf))])
		}
	}
	err := c.Conn.WriteBatch(c.rest)
	b.AddRefusals(c.rest.Refusals())
	return err
}

// findRing returns the ring to an address, or nil. The first packet to an address asks for a ring.
func (c *conn) findRing(dst netip.AddrPort) *outgoing {
	o := c.outgoing[dst]
	if o == nil {
		o = &outgoing{}
		c.outgoing[dst] = o
	}
	if o.peer != nil && o.peer.gone.Load() {
		c.dropRing(o)
	}
	if o.peer != nil {
		return o
	}
	if dst == c.local || time.Now().Before(o.retryAt) {
		return nil
	}
	p, mem, err := dialPeer(c.local, dst)
	if err == nil {
		o.ring.ring, err = newRing(mem)
	}
	if err != nil {
		o.retryAt = time.Now().Add(retryInterval)
		return nil
	}
	o.peer = p
	return o
}

// dropRing gives up a ring: the peer is gone, or broke it.
func (c *conn) dropRing(o *outgoing) {
	o.peer.closeRing()
	*o = outgoing{retryAt: time.Now().Add(retryInterval)}
}

// writeGroup copies a group into the ring. Packets for which there is no space in time are lost.
func (c *conn) writeGroup(o *outgoing, b *link.Batch, i int) {
	n, seg := b.GroupSize(i)
	room, err := o.ring.reserveRecord(n)
	for start := time.Now(); room == nil && err == nil; room, err = o.ring.reserveRecord(n) {
		if o.peer.gone.Load() || time.Since(start) > fullWait {
			break
		}
		runtime.Gosched()
	}
	if room == nil {
		c.counters.lost.Add(uint64((n + seg - 1) / seg))
		if err != nil {
			c.dropRing(o)
		}
		return
	}
	b.CopyGroup(i, room)
	c.counters.sentPackets.Add(uint64((n + seg - 1) / seg))
	c.counters.sentBytes.Add(uint64(n))
	if o.ring.commitRecord(newWord(n, seg, b.Path(i).TrafficClass)) {
		o.peer.wakeConsumer()
	}
}

// ReadBatch implements link.Conn.
func (c *conn) ReadBatch(r *link.Datagrams) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	r.Reset()
	for i := 0; i < len(c.incoming); i++ {
		in := c.incoming[i]
		if !in.readRing(r, &c.counters) {
			in.peer.closeRing()
			c.incoming = append(c.incoming[:i:i], c.incoming[i+1:]...)
			i--
		}
	}
	if n := len(r.Msgs()); n > 0 {
		return n, nil
	}
	if c.emptyLooks++; len(c.incoming) > 0 && c.emptyLooks%looksPerRead != 0 && !c.closed.Load() {
		return 0, nil
	}
	return c.Conn.ReadBatch(r)
}

// readRing takes records until r is full, and reports whether the ring stays in use.
func (in *incoming) readRing(r *link.Datagrams, counters *counters) bool {
	gone := in.peer.gone.Load() // before the ring is found empty
	for !r.Full() {
		slot := r.Slot(len(r.Msgs()))
		w, err := in.ring.takeRecord(slot)
		if err != nil {
			return false
		}
		if w == 0 {
			return !gone
		}
		d := link.Datagram{Src: in.src, TOS: w.trafficClass(), Buf: slot[:w.byteCount()], Seg: w.segmentSize()}
		r.Add(d)
		counters.receivedPackets.Add(uint64(d.Count()))
		counters.receivedBytes.Add(uint64(w.byteCount()))
	}
	return true
}

// Wait implements link.Conn.
func (c *conn) Wait(timeout time.Duration) (bool, error) {
	if !c.beginSleep() {
		return true, nil
	}
	readable, err := c.Conn.Wait(timeout)
	return c.endSleep() || readable, err
}

// beginSleep reports whether all rings are empty and their producers will wake this end.
func (c *conn) beginSleep() bool {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for i, in := range c.incoming {
		if !in.ring.beginSleep() {
			for _, in := range c.incoming[:i] {
				in.ring.endSleep()
			}
			return false
		}
	}
	return true
}

// endSleep reports whether a ring has a record.
func (c *conn) endSleep() (readable bool) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for _, in := range c.incoming {
		in.ring.endSleep()
		readable = readable || !in.ring.isEmpty() || in.peer.gone.Load()
	}
	return readable
}

// addIncoming adds the ring of a peer that has connected.
func (c *conn) addIncoming(p *peer, src netip.AddrPort, mem []byte) error {
	r, err := newRing(mem)
	if err != nil {
		return err
	}
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if c.closed.Load() {
		return errors.New("shm: the link is closed")
	}
	p.onGone = c.Conn.Wake
	c.incoming = append(c.incoming, &incoming{peer: p, src: src, ring: consumer{ring: r}})
	c.Conn.Wake() // a sleeper has not announced itself in this ring
	return nil
}

// Close implements link.Conn.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return c.Conn.Close()
	}
	c.names.closeSocket()
	err := c.Conn.Close()
	c.writeMu.Lock()
	for _, o := range c.outgoing {
		if o.peer != nil {
			o.peer.closeRing()
		}
	}
	clear(c.outgoing)
	c.writeMu.Unlock()
	c.readMu.Lock()
	for _, in := range c.incoming {
		in.peer.closeRing()
	}
	c.incoming = nil
	c.readMu.Unlock()
	return err
}

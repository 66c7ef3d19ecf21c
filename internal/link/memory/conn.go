package memory

import (
	"cmp"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// A fabric is the network that a Conn is attached to.
type fabric interface {
	// transmit carries one datagram or GSO group, buf, of packets of seg bytes,
	// to its receiver. The caller keeps buf.
	transmit(from *Conn, to *wire.Path, buf []byte, seg int)

	// detach makes the address free again.
	detach(addr netip.AddrPort)

	// blocks reports whether Wait blocks.
	blocks() bool
}

// Conn is one end of an in-memory network: a link.Conn.
type Conn struct {
	fabric  fabric
	pool    *pool
	addr    netip.AddrPort
	options Options

	mu        sync.Mutex
	queue     []*datagram // arrived, not read
	head      int         // queue[:head] has been read
	queued    int         // bytes in the queue
	closed    bool
	stats     link.Stats
	refusedTo map[netip.AddrPort]syscall.Errno // see RefuseTo

	ready chan struct{} // something arrived
	woken chan struct{} // Wake was called
	done  chan struct{} // closed by Close

	wireFree int64  // when the wire to here is free again; used by Network, as the next
	peakWait int64  // maximum time until the wire was free, see TakeQueue
	marked   uint64 // packets marked, see TakeQueue
}

var _ link.Conn = (*Conn)(nil)

func newConn(f fabric, p *pool, addr netip.AddrPort, o Options) *Conn {
	return &Conn{
		fabric: f, pool: p, addr: addr, options: o,
		ready: make(chan struct{}, 1),
		woken: make(chan struct{}, 1),
		done:  make(chan struct{}),
	}
}

// LocalAddr implements link.Conn.
func (c *Conn) LocalAddr() netip.AddrPort { return c.addr }

// Caps implements link.Conn.
func (c *Conn) Caps() link.Caps {
	return link.Caps{
		GSO:        !c.options.NoGSO,
		GRO:        !c.options.NoGRO,
		RecvBuffer: c.options.RecvBuffer,
		SendBuffer: link.DefaultSendBuffer,
		MTU:        c.options.MTU,
		ExactID:    true,
		Name:       "memory",
	}
}

// Stats returns the counters of the link; a call is one datagram or group.
func (c *Conn) Stats() link.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// WriteBatch implements link.Conn. It never blocks.
func (c *Conn) WriteBatch(b *link.Batch) error {
	if c.isClosed() {
		return net.ErrClosed
	}
	gso := !c.options.NoGSO
	b.Seal(c.addr, gso)
	if !gso {
		for i := range b.Len() {
			to, pkt := b.Packet(i)
			c.sendGroup(b, i, to, pkt, len(pkt))
		}
		return nil
	}
	first := 0
	for i := range b.Groups() {
		to, buf, seg := b.Group(i)
		first += c.sendGroup(b, first, to, buf, seg)
	}
	return nil
}

// RefuseTo makes further sends to dst fail with errno, as the system does
// without a route; 0 ends that.
func (c *Conn) RefuseTo(dst netip.AddrPort, errno syscall.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusedTo == nil {
		c.refusedTo = make(map[netip.AddrPort]syscall.Errno)
	}
	c.refusedTo[dst] = errno
}

// sendGroup passes a datagram or group, which begins with packet first of b, to
// the network if it fits the MTU, and returns its number of packets.
func (c *Conn) sendGroup(b *link.Batch, first int, to *wire.Path, buf []byte, seg int) int {
	packets := (len(buf) + seg - 1) / seg
	c.mu.Lock()
	errno, mtu := c.refusedTo[to.Dst], 0
	switch {
	case errno != 0:
		c.stats.SendUnreachable += uint64(packets)
	case seg+headerLen(c.addr.Addr()) > c.options.MTU:
		errno, mtu = syscall.EMSGSIZE, c.options.MTU
		c.stats.SendTooBig += uint64(packets)
	default:
		c.stats.SendCalls++
		c.stats.SentPackets += uint64(packets)
		c.stats.SentBytes += uint64(len(buf))
	}
	c.mu.Unlock()
	if errno == 0 {
		c.fabric.transmit(c, to, buf, seg)
		return packets
	}
	for i := range packets {
		b.AddRefusal(first+i, errno, mtu)
	}
	return packets
}

// countUnreachable counts packets of this sender that had no receiver.
func (c *Conn) countUnreachable(packets int) {
	c.mu.Lock()
	c.stats.SendUnreachable += uint64(packets)
	c.mu.Unlock()
}

// splitArrivals calls arrive for every datagram that c receives of one send:
// the whole group, or each of its packets if c does not merge.
func (c *Conn) splitArrivals(from netip.AddrPort, path *wire.Path, buf []byte, seg int, arrive func(*datagram)) {
	piece := len(buf)
	if c.options.NoGRO {
		piece = seg
	}
	for off := 0; off < len(buf); off += piece {
		d := c.pool.get(buf[off:min(off+piece, len(buf))])
		d.src, d.tos, d.id, d.seg = from, path.TrafficClass, uint16(off/seg), min(seg, len(d.buf))
		d.hops, d.flow = cmp.Or(path.HopLimit, link.HopLimit), 0
		if !from.Addr().Is4() {
			d.flow = path.FlowLabel
		}
		arrive(d)
	}
}

// enqueue puts a datagram into the receive buffer. If the link is closed it
// returns false, and the datagram remains the caller's.
func (c *Conn) enqueue(d *datagram) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.queued > 0 && c.queued+len(d.buf) > c.options.RecvBuffer {
		c.stats.ReceiveOverflow += uint64(d.packetCount())
		c.pool.put(d)
		return true
	}
	if len(c.queue) == cap(c.queue) && c.head > len(c.queue)/2 { // reuse the front
		c.queue = c.queue[:copy(c.queue, c.queue[c.head:])]
		c.head = 0
	}
	c.queue = append(c.queue, d)
	c.queued += len(d.buf)
	notify(c.ready)
	return true
}

// notify puts a token into a channel of capacity one, unless it holds one.
func notify(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// ReadBatch implements link.Conn.
func (c *Conn) ReadBatch(r *link.Datagrams) (int, error) {
	r.Reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	n := 0
	for ; c.head < len(c.queue) && !r.Full(); n++ {
		d := c.queue[c.head]
		c.queue[c.head] = nil
		c.head++
		size := copy(r.Slot(n), d.buf)
		r.Add(link.Datagram{Src: d.src, TOS: d.tos, Buf: r.Slot(n)[:size], Seg: d.seg, ID: d.id, HopLimit: d.hops, FlowLabel: d.flow})
		c.queued -= size
		c.stats.ReceivedDatagrams++
		c.stats.ReceivedPackets += uint64(d.packetCount())
		c.stats.ReceivedBytes += uint64(size)
		c.pool.put(d)
	}
	if n > 0 {
		c.stats.ReceiveCalls++
	}
	return n, nil
}

// Readable reports whether an unread datagram is queued.
func (c *Conn) Readable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head < len(c.queue)
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Wait implements link.Conn. On a Live network it blocks. On a Network, whose
// clock only the driver advances, it returns at once, whatever the timeout.
func (c *Conn) Wait(timeout time.Duration) (bool, error) {
	if c.isClosed() {
		return false, net.ErrClosed
	}
	if !c.fabric.blocks() {
		return c.Readable(), nil
	}
	var expired <-chan time.Time
	if timeout >= 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}
	for !c.Readable() {
		select {
		case <-c.ready: // possibly for datagrams already read
		case <-c.woken:
			return c.Readable(), nil
		case <-expired:
			return c.Readable(), nil
		case <-c.done:
			return false, net.ErrClosed
		}
	}
	return true, nil
}

// Wake implements link.Conn.
func (c *Conn) Wake() { notify(c.woken) }

// Close implements link.Conn. Queued datagrams and those in flight are lost.
func (c *Conn) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.queue, c.head, c.queued = nil, 0, 0
	c.mu.Unlock()
	if !closed {
		c.fabric.detach(c.addr)
		close(c.done)
	}
	return nil
}

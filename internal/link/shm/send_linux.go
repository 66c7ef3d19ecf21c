package shm

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/wire"
)

const (
	ringSize     = 8 << 20               // bytes of records: larger than the window of a connection, and than a processor's own cache
	memoryBudget = 16 << 20              // bytes in use by all rings that a link fills, but for minLimit each
	fullWait     = 10 * time.Millisecond // for space in a full ring, after which packets are lost, as those of a full socket
	minRetry     = 10 * time.Millisecond // until the next attempt to reach an address that has no ring
	maxRetry     = time.Second           // the same where there is no adapter with rings
	maxSlowRetry = 64 * time.Second      // the same where the attempt fails otherwise, perhaps after handshakeMax
	bySlot       = -1                    // shards of an address that nobody has alone
)

// A writer is the part of a link that sends.
type writer struct {
	writeMu      sync.Mutex // held for WriteBatch, and by Close and Stats
	destinations map[netip.AddrPort]*destination
	slotOf       func(qpn uint32) int
	last         *destination // of the last group
	rings        int          // in use
	unringed     []int        // groups of the current batch without a ring
	rest         *link.Batch  // their packets, if others have one
	sent         traffic
	lost         uint64 // packets, because a ring was full
}

// A destination is an address. Its rings are those of the shards of an adapter, selected by the
// destination QPN modulo their number, or, where adapters share the address, those of the slots.
type destination struct {
	addr   netip.AddrPort
	shards int // 0 if unknown, or bySlot: the rings are by slot
	rings  []*outgoing

	// Packets through the socket while shards was 0: to QP 1, and to others.
	earlyGSI, early int64
}

// An outgoing is the way to one link: a ring, or none until retryAt.
type outgoing struct {
	peer     *peer
	ring     producer
	retryAt  time.Time
	backoff  time.Duration
	bySocket int64 // packets through the socket
}

// WriteBatch implements link.Conn.
func (c *conn) WriteBatch(b *link.Batch) error {
	c.writeMu.Lock()
	err := c.writeBatch(b)
	c.writeMu.Unlock()
	return err
}

// writeBatch is WriteBatch with the lock held.
func (c *conn) writeBatch(b *link.Batch) error {
	if c.closed.Load() {
		return c.Conn.WriteBatch(b)
	}
	c.unringed = c.unringed[:0]
	mustSeal, ringed := b.MustSeal(), false
	for i := range b.Groups() {
		o := c.findRing(b.Path(i).Dst, b.Header(i))
		if o == nil {
			c.countUnringed(b, i)
			c.unringed = append(c.unringed, i)
			continue
		}
		if mustSeal && !ringed {
			b.Seal(c.local, true)
		}
		ringed = true
		c.writeGroup(o, b, i, mustSeal)
	}
	switch {
	case !ringed:
		return c.Conn.WriteBatch(b)
	case len(c.unringed) == 0:
		return nil
	}
	return c.writeRest(b)
}

// writeRest sends the groups of c.unringed through the socket.
func (c *conn) writeRest(b *link.Batch) error {
	if c.rest == nil || c.rest.Cap() < b.Cap() {
		c.rest = link.NewBatch(b.Cap())
	}
	c.rest.Reset()
	for _, i := range c.unringed {
		c.rest.AppendGroup(b, i)
	}
	err := c.Conn.WriteBatch(c.rest)
	b.AddRefusals(c.rest.Refusals())
	return err
}

// Connect finds the way to a queue pair at an address before the first packet. WriteBatch does it
// otherwise.
func (c *conn) Connect(dst netip.AddrPort, qpn uint32) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !c.closed.Load() {
		c.findRing(dst, binary.BigEndian.AppendUint32(make([]byte, 4, 8), qpn))
	}
}

// countUnringed counts the packets of a group for which findRing has returned nil.
func (c *conn) countUnringed(b *link.Batch, i int) {
	d, qpn := c.last, binary.BigEndian.Uint32(b.Header(i)[4:])&wire.QPNMask
	bytes, seg := b.GroupSize(i)
	packets := int64((bytes + seg - 1) / seg)
	switch i := c.ringIndex(d, qpn); {
	case i < 0:
	case d.shards != 0:
		d.rings[i].bySocket += packets
	case qpn <= wire.QPNGSI:
		d.earlyGSI += packets
	default:
		d.early += packets
	}
}

// countEarlier returns the number of packets that have gone to a link through the socket, if the adapter
// has the number of shards that it returns, too.
func (c *conn) countEarlier(d *destination, o *outgoing, slot bool) (packets int64, shards int) {
	packets, shards = o.bySocket, max(d.shards, 1)
	if !slot && d.early+d.earlyGSI > 0 {
		packets, shards = packets+d.early+d.earlyGSI, 1
	}
	if slot && d.early > 0 || c.sharded && packets > 0 { // the links of all shards have one address
		packets = countUnknown
	}
	return packets, shards
}

// findRing returns the ring for packets that begin with the header, or nil for the socket. The first
// packet asks for a ring.
func (c *conn) findRing(dst netip.AddrPort, header []byte) *outgoing {
	d := c.last
	if d == nil || d.addr != dst {
		if d = c.destinations[dst]; d == nil {
			d = &destination{addr: dst}
			c.destinations[dst] = d
		}
		c.last = d
	}
	qpn := binary.BigEndian.Uint32(header[4:]) & wire.QPNMask
	i := c.ringIndex(d, qpn)
	if i < 0 {
		return nil
	}
	for len(d.rings) <= i {
		d.rings = append(d.rings, nil)
	}
	o := d.rings[i]
	if o == nil {
		o = &outgoing{}
		d.rings[i] = o
	}
	if o.peer == nil {
		return c.openRing(d, o, i, qpn)
	}
	if o.peer.gone.Load() {
		c.dropRing(d, o)
		return nil
	}
	return o
}

// ringIndex returns the index of the ring for a queue pair, or -1 where the system selects the adapter by
// the contents of the packet.
func (c *conn) ringIndex(d *destination, qpn uint32) int {
	switch {
	case d.shards > 1:
		return int(qpn) % d.shards
	case d.shards == bySlot && qpn <= wire.QPNGSI:
		return -1
	case d.shards == bySlot:
		return c.slotOf(qpn)
	}
	return 0
}

// openRing asks the peer for a ring, unless an attempt has failed recently.
func (c *conn) openRing(d *destination, o *outgoing, i int, qpn uint32) *outgoing {
	if dst := d.addr; dst == c.local && !c.shared || dst.Addr().IsMulticast() {
		return nil
	}
	now := time.Now()
	if now.Before(o.retryAt) {
		return nil
	}
	p, shards, err := c.requestRing(d, o, i, d.shards == bySlot)
	if err != nil && d.shards == 0 && isNoName(err) && qpn > wire.QPNGSI && c.slotOf != nil {
		i = c.slotOf(qpn)
		if p, _, err = c.requestRing(d, o, i, true); err == nil {
			d.shards, d.rings = bySlot, make([]*outgoing, i+1)
			o = &outgoing{}
			d.rings[i] = o
		}
	}
	if err == nil && d.shards == 0 {
		d.shards = shards
		if right := int(qpn) % shards; right != i { // the first ring is that of shard 0
			o.setRing(c, p)
			return c.findRing(d.addr, binary.BigEndian.AppendUint32(make([]byte, 4, 8), qpn))
		}
	}
	if err != nil || !o.setRing(c, p) {
		longest := maxSlowRetry
		if isNoName(err) {
			longest = maxRetry
		}
		o.backoff = min(max(2*o.backoff, minRetry), longest)
		o.retryAt = now.Add(o.backoff)
		d.resetUnused()
		return nil
	}
	return o
}

// requestRing asks a link for a ring. Where there is none, no packet has reached it.
func (c *conn) requestRing(d *destination, o *outgoing, i int, slot bool) (*peer, int, error) {
	earlier, assumed := c.countEarlier(d, o, slot)
	p, shards, err := dialPeer(c.local, d.addr, i, slot, earlier, assumed)
	if err != nil && isNoName(err) {
		o.bySocket, d.earlyGSI = 0, 0
		if c.slotOf == nil {
			d.early = 0
		}
	}
	return p, shards, err
}

// setRing begins to use a ring.
func (o *outgoing) setRing(c *conn, p *peer) bool {
	r, err := newRing(p.mem)
	if err != nil {
		p.closeRing()
		return false
	}
	o.peer, o.ring, o.backoff = p, newProducer(r, backMemory), 0
	c.rings++
	c.shareBudget()
	return true
}

// shareBudget divides the memory among the rings.
func (c *conn) shareBudget() {
	each := uint64(ringSize)
	for each > minLimit && each*uint64(c.rings) > memoryBudget {
		each /= 2
	}
	for _, d := range c.destinations {
		for _, o := range d.rings {
			if o != nil && o.peer != nil {
				o.ring.setMaxLimit(each)
			}
		}
	}
}

// dropRing gives up a ring: the peer is gone, or broke it. Another adapter may have the address next.
func (c *conn) dropRing(d *destination, o *outgoing) {
	o.peer.closeRing()
	c.rings--
	*o = outgoing{retryAt: time.Now().Add(minRetry), bySocket: o.bySocket}
	d.resetUnused()
}

// resetUnused makes the next packet find out how adapters use the address, unless a ring is in use.
func (d *destination) resetUnused() {
	for _, o := range d.rings {
		if o != nil && o.peer != nil {
			return
		}
	}
	d.shards = 0
}

// writeGroup copies a group into the ring. Packets for which there is no space in time are lost.
func (c *conn) writeGroup(o *outgoing, b *link.Batch, i int, sealed bool) {
	n, seg := b.GroupSize(i)
	room, err := o.ring.reserveRecord(n)
	if room == nil {
		room, err = o.awaitRoom(n, err)
	}
	if room == nil {
		c.lost += uint64((n + seg - 1) / seg)
		if err != nil {
			c.dropRing(c.destinations[b.Path(i).Dst], o)
		}
		return
	}
	b.CopyGroup(i, room)
	packets := 1
	if seg < n {
		packets = (n + seg - 1) / seg
	}
	c.sent.add(packets, n)
	racesync.Release()
	if o.ring.commitRecord(newWord(n, seg, b.Path(i).TrafficClass, sealed)) {
		o.peer.wakeConsumer()
	}
}

// awaitRoom is reserveRecord after the ring was found full.
func (o *outgoing) awaitRoom(n int, err error) ([]byte, error) {
	for start := time.Now(); err == nil; {
		if o.peer.gone.Load() || time.Since(start) > fullWait {
			return nil, nil
		}
		runtime.Gosched()
		var room []byte
		if room, err = o.ring.reserveRecord(n); room != nil {
			return room, nil
		}
	}
	return nil, err
}

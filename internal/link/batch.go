package link

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/wire"
)

const (
	// MaxPacket is the largest UDP payload over IPv4: 65535 - 20 - 8. IPv6
	// allows 20 bytes more; one limit for both is worth more than those.
	MaxPacket = 65507

	// maxSegments is UDP_MAX_SEGMENTS of Linux before 6.9 (128 since).
	maxSegments = 64

	// maxGroupBytes bounds the bytes of one GSO send. The kernel builds a single
	// frame of them first, and cuts it up itself, before any interface, if that
	// has 65536 bytes (GSO_LEGACY_MAX_SIZE) with the headers of Ethernet, IPv6
	// and UDP.
	maxGroupBytes = 1<<16 - 1 - 14 - 40 - 8
)

// A Batch collects packets for sending. The caller reserves space with Next and
// writes the packet there; packets lie one behind the other in one buffer, so
// that consecutive packets to one destination leave as one GSO send without
// another copy.
//
// A large payload need not be copied: NextZeroCopy refers to it in place, and a
// link that can gather sends it from there. Its space in the buffer stays
// reserved, and is filled in when the packet's bytes are requested.
//
// A Batch belongs to one goroutine at a time. Once its buffers have grown to
// the size of the traffic it does not allocate.
type Batch struct {
	buf           []byte // packets built so far; Reset grows the capacity
	maxBytes      int    // of buf
	filled        bool   // buf had no room for a packet
	packets       []packet
	groups        []group
	zeroCopyCount int // packets with a zero-copy payload

	separate func(first, later []byte) bool // see Separate

	src     netip.AddrPort // source address of the sealed packets
	gso     bool
	sealed  int // packets [0, sealed) carry an ICRC
	flips   []flip
	flipped int // flips [0, flipped) are in the bytes
	sealers sealerCache

	refusals []Refusal // of the last WriteBatch
}

// A packet is at buf[off:end], in groups[group]. The payload before its ICRC
// may be outside buf.
type packet struct {
	off, end int
	group    int
	payload  []byte // nil if it is in buf
}

// payloadOffsets returns the offsets in buf of the space for a zero-copy
// payload and of the ICRC.
func (p *packet) payloadOffsets() (payload, icrc int) {
	icrc = p.end - wire.ICRCLen
	return icrc - len(p.payload), icrc
}

// A group is a run of packets that GSO can send as one: same destination and IP
// header, all of seg bytes, except that the last may be shorter.
type group struct {
	to           *wire.Path
	first, count int // packets [first, first+count)
	seg          int // size of the first packet
	bytes        int
	closed       bool // ends with a shorter packet: nothing may follow
}

// NewBatch returns a batch for at most n bytes of packets.
func NewBatch(n int) *Batch { return &Batch{buf: make([]byte, 0, n), maxBytes: n} }

// firstBytes is the capacity of a growing batch that has not been full yet.
const firstBytes = MaxPacket

// NewGrowingBatch returns a batch that begins with room for a GSO group, which
// doubles after each batch that was full, up to maxBytes.
func NewGrowingBatch(maxBytes int) *Batch {
	b := NewBatch(min(maxBytes, firstBytes))
	b.maxBytes = maxBytes
	return b
}

// Next reserves space for a packet of n bytes (BTH to ICRC) to the given
// destination and returns it. The caller writes all but the last four bytes,
// the ICRC, which Seal writes; the initial contents are undefined. The slice is
// valid until Reset, and to must not change before that.
//
// Next returns nil when the batch is full: write it, Reset, and retry. It
// panics if a batch of this size can never hold the packet.
func (b *Batch) Next(to *wire.Path, n int) []byte {
	if b.separate != nil {
		b.splitLast()
	}
	off := len(b.buf)
	end := off + n
	if n < wire.MinPacketLen || n > MaxPacket || n > cap(b.buf) {
		panic(fmt.Sprintf("link: packet of %d bytes in a batch of %d; want %d to %d bytes",
			n, cap(b.buf), wire.MinPacketLen, min(MaxPacket, cap(b.buf))))
	}
	if end > cap(b.buf) {
		b.filled = true
		return nil
	}
	b.buf = b.buf[:end]
	b.addToGroup(to, n)
	b.packets = append(b.packets, packet{off: off, end: end, group: len(b.groups) - 1})
	return b.buf[off:end:end]
}

// NextZeroCopy is Next for a packet of head bytes, a payload and the ICRC. It
// returns the space for the head. The payload must not change until Reset.
func (b *Batch) NextZeroCopy(to *wire.Path, head int, payload []byte) []byte {
	room := b.Next(to, head+len(payload)+wire.ICRCLen)
	if room == nil {
		return nil
	}
	b.packets[len(b.packets)-1].payload = payload
	b.zeroCopyCount++
	return room[:head:head]
}

// Cancel removes the packet that Next or NextZeroCopy returned last. The packet
// must not be sealed.
func (b *Batch) Cancel() {
	last := len(b.packets) - 1
	p := &b.packets[last]
	if p.payload != nil {
		p.payload = nil
		b.zeroCopyCount--
	}
	g := &b.groups[p.group]
	g.count--
	g.bytes -= p.end - p.off
	g.closed = false // else the packet would not be in it
	if g.count == 0 {
		b.groups = b.groups[:p.group]
	}
	b.buf = b.buf[:p.off]
	b.packets = b.packets[:last]
}

// HasZeroCopy reports whether the payload of a packet is outside the batch.
func (b *Batch) HasZeroCopy() bool { return b.zeroCopyCount > 0 }

// copyPayload copies the zero-copy payload of packet i into the buffer. If the
// payload cannot be read, it zeroes the packet.
func (b *Batch) copyPayload(i int) {
	p := &b.packets[i]
	if p.payload == nil {
		return
	}
	at, _ := p.payloadOffsets()
	if !place.Load(b.buf[at:at+len(p.payload)], p.payload) {
		b.zeroPacket(i)
		return
	}
	p.payload = nil
	b.zeroCopyCount--
}

// zeroPacket zeroes packet i, whose payload can no longer be read, so that
// every receiver drops it. Its sender detects the fault when it retransmits the
// packet.
func (b *Batch) zeroPacket(i int) {
	p := &b.packets[i]
	clear(b.buf[p.off:p.end])
	p.payload = nil
	b.zeroCopyCount--
}

// addToGroup adds a packet of n bytes to the last group if it fits there, or
// else to a new one.
func (b *Batch) addToGroup(to *wire.Path, n int) {
	if last := len(b.groups) - 1; last >= 0 {
		g := &b.groups[last]
		if g.accepts(n) && g.count < maxSegments && g.bytes+n <= maxGroupBytes && samePath(g.to, to) {
			g.count++
			g.bytes += n
			g.closed = n < g.seg
			return
		}
	}
	b.groups = append(b.groups, group{to: to, first: len(b.packets), count: 1, seg: n, bytes: n})
}

// Separate makes packets to one destination leave in different GSO groups if separate returns
// true for them: a peer whose sockets share an address gets a group in the socket of its first
// packet. A later packet is compared with the first one of the group, when both are complete
// but for the ICRC and zero-copy payloads.
func (b *Batch) Separate(separate func(first, later []byte) bool) { b.separate = separate }

// splitLast begins a new group with the last packet if it must not be in its group.
func (b *Batch) splitLast() {
	last := len(b.packets) - 1
	if last < b.sealed {
		return
	}
	p := &b.packets[last]
	g := &b.groups[p.group]
	first := &b.packets[g.first]
	if g.count == 1 || !b.separate(b.buf[first.off:first.end], b.buf[p.off:p.end]) {
		return
	}
	n := p.end - p.off
	g.count--
	g.bytes -= n
	p.group = len(b.groups)
	b.groups = append(b.groups, group{to: g.to, first: last, count: 1, seg: n, bytes: n})
}

// smallPacket is the size in bytes up to which a shorter packet ends a group of
// one instead of starting a new group: an acknowledgement behind a reply, or
// the second packet of a message with a small MTU.
const smallPacket = 1500

// accepts reports whether a packet of n bytes may follow in the group. A large
// one does not end a group of one: it is a MIDDLE behind a FIRST, which is
// longer by a RETH, and more of its size follow.
func (g *group) accepts(n int) bool {
	return !g.closed && (n == g.seg || n < g.seg && (g.count > 1 || n <= smallPacket))
}

// samePath reports whether packets to a and b can share one send.
func samePath(a, b *wire.Path) bool {
	return a == b || *a == *b
}

// Append copies a complete packet into the batch, for wrappers that filter,
// delay or duplicate packets. It returns false when the batch is full. Seal
// rewrites the ICRC; bit flips recorded for pkt elsewhere are not copied.
func (b *Batch) Append(to *wire.Path, pkt []byte) bool {
	room := b.Next(to, len(pkt))
	if room == nil {
		return false
	}
	copy(room, pkt)
	return true
}

// Reset empties the batch. Slices from Next are invalid from here on.
func (b *Batch) Reset() {
	b.buf = b.buf[:0]
	if b.filled && cap(b.buf) < b.maxBytes {
		b.buf = make([]byte, 0, min(2*cap(b.buf), b.maxBytes))
	}
	b.filled = false
	if b.zeroCopyCount > 0 {
		clear(b.packets) // releases user memory
		b.zeroCopyCount = 0
	}
	b.packets = b.packets[:0]
	b.groups = b.groups[:0]
	b.flips = b.flips[:0]
	b.refusals = b.refusals[:0]
	b.sealed, b.flipped = 0, 0
}

// Len returns the number of packets.
func (b *Batch) Len() int { return len(b.packets) }

// Bytes returns the number of bytes, BTH to ICRC of every packet.
func (b *Batch) Bytes() int { return len(b.buf) }

// Cap returns the capacity in bytes, until Reset.
func (b *Batch) Cap() int { return cap(b.buf) }

// Packet returns packet i, 0 <= i < Len, and its path.
func (b *Batch) Packet(i int) (to *wire.Path, pkt []byte) {
	b.copyPayload(i)
	p := b.packets[i]
	return b.groups[p.group].to, b.buf[p.off:p.end:p.end]
}

// Groups returns the number of GSO groups: the number of sends on a link with
// segmentation offload.
func (b *Batch) Groups() int { return len(b.groups) }

// Group returns group i, 0 <= i < Groups: its packets one behind the other,
// each of seg bytes except that the last may be shorter.
func (b *Batch) Group(i int) (to *wire.Path, buf []byte, seg int) {
	g := &b.groups[i]
	for i := g.first; b.zeroCopyCount > 0 && i < g.first+g.count; i++ {
		b.copyPayload(i)
	}
	off := b.packets[g.first].off
	return g.to, b.buf[off : off+g.bytes : off+g.bytes], g.seg
}

// Path returns the path of group i.
func (b *Batch) Path(i int) *wire.Path { return b.groups[i].to }

// Header returns the BTH of the first packet of group i.
func (b *Batch) Header(i int) []byte {
	off := b.packets[b.groups[i].first].off
	return b.buf[off : off+wire.BTHLen : off+wire.BTHLen]
}

// GroupSize returns the bytes of group i, and of its first packet.
func (b *Batch) GroupSize(i int) (bytes, seg int) { return b.groups[i].bytes, b.groups[i].seg }

// CopyGroup copies the packets of group i, one behind the other, to memory of GroupSize bytes. It
// reads zero-copy payloads in place, and zeroes a packet whose payload cannot be read, so that every
// receiver drops it.
func (b *Batch) CopyGroup(i int, to []byte) {
	g := &b.groups[i]
	packets := b.packets[g.first : g.first+g.count]
	if b.zeroCopyCount == 0 {
		b.copyPackets(packets, to)
		return
	}
	if place.Try(func() { b.copyPackets(packets, to) }) {
		return
	}
	for j := range packets { // one of them cannot be read
		n := packets[j].end - packets[j].off
		if !place.Try(func() { b.copyPackets(packets[j:j+1], to) }) {
			clear(to[:n])
		}
		to = to[n:]
	}
}

// copyPackets copies packets, one behind the other. Reading a payload may be a page fault.
func (b *Batch) copyPackets(packets []packet, to []byte) {
	for j := range packets {
		p := &packets[j]
		if p.payload == nil {
			to = to[copy(to, b.buf[p.off:p.end]):]
			continue
		}
		payload, icrc := p.payloadOffsets()
		to = to[copy(to, b.buf[p.off:payload]):]
		to = to[copy(to, p.payload):]
		to = to[copy(to, b.buf[icrc:p.end]):]
	}
}

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

// Batch lays packets out for sending. The caller asks for room with Next and
// writes the packet there; packets lie one behind the other in one buffer, so
// that consecutive packets to one destination can leave as one GSO send
// without another copy.
//
// A large payload need not be copied: NextWith takes it where it lies, and a link
// that can gather sends it from there. The room for it in the buffer stays, and
// whoever asks for the packet's bytes finds it filled in.
//
// A Batch belongs to one goroutine at a time. Once its buffers have grown to
// the size of the traffic nothing in it allocates.
type Batch struct {
	buf           []byte // packets laid out so far; the capacity never changes
	packets       []packet
	groups        []group
	zeroCopyCount int // packets whose payload lies elsewhere

	src     netip.AddrPort // what the sealed packets were sealed with
	gso     bool
	sealed  int // packets [0, sealed) carry an ICRC
	flips   []flip
	flipped int // flips [0, flipped) are in the bytes
	sealers sealerCache

	refusals []Refusal // of the last WriteBatch
}

// packet is the place of one packet: buf[off:end], in groups[group]. The payload
// before its ICRC may lie elsewhere.
type packet struct {
	off, end int
	group    int
	payload  []byte // nil if it is in buf
}

// payloadOffsets is where the ICRC of a packet starts in buf, and where a payload that
// lies elsewhere has its room.
func (p *packet) payloadOffsets() (payload, icrc int) {
	icrc = p.end - wire.ICRCLen
	return icrc - len(p.payload), icrc
}

// group is a run of packets that GSO can send as one: same destination and IP
// header, all of seg bytes, except that the last may be shorter.
type group struct {
	to           *wire.Path
	first, count int // packets [first, first+count)
	seg          int // size of the first packet
	bytes        int
	closed       bool // ends with a shorter packet: nothing may follow
}

// NewBatch returns a batch that holds at most maxBytes bytes of packets. The
// memory is allocated at once, but the system only backs what is used.
func NewBatch(maxBytes int) *Batch {
	return &Batch{buf: make([]byte, 0, maxBytes)}
}

// Next makes room for a packet of n bytes (BTH to ICRC) to the given
// destination and returns it. The caller fills all but the last four bytes,
// the ICRC, which Seal writes; the bytes hold anything before. The slice is
// valid until Reset, and to must stay unchanged as long.
//
// Next returns nil when the batch is full: write it, Reset, and ask again. It
// panics if no batch of this size could ever hold the packet.
func (b *Batch) Next(to *wire.Path, n int) []byte {
	off := len(b.buf)
	end := off + n
	if n < wire.MinPacketLen || n > MaxPacket || n > cap(b.buf) {
		panic(fmt.Sprintf("link: packet of %d bytes in a batch of %d; want %d to %d bytes",
			n, cap(b.buf), wire.MinPacketLen, min(MaxPacket, cap(b.buf))))
	}
	if end > cap(b.buf) {
		return nil
	}
	b.buf = b.buf[:end]
	b.addToGroup(to, n)
	b.packets = append(b.packets, packet{off: off, end: end, group: len(b.groups) - 1})
	return b.buf[off:end:end]
}

// NextZeroCopy is Next for a packet of head bytes, a payload and the ICRC. The caller
// fills the head, which it gets, and keeps the payload unchanged until Reset.
func (b *Batch) NextZeroCopy(to *wire.Path, head int, payload []byte) []byte {
	room := b.Next(to, head+len(payload)+wire.ICRCLen)
	if room == nil {
		return nil
	}
	b.packets[len(b.packets)-1].payload = payload
	b.zeroCopyCount++
	return room[:head:head]
}

// Cancel takes back the packet that Next or NextWith returned last. It must be
// the last call of them, and the packet must not be sealed.
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

// HasZeroCopy reports whether the payload of a packet lies in memory of others.
func (b *Batch) HasZeroCopy() bool { return b.zeroCopyCount > 0 }

// copyPayload copies the payload of packet i to its room in the buffer. If it cannot
// be read, the packet is damaged.
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

// zeroPacket makes packet i, whose payload cannot be read any more, one of zeros,
// which no receiver takes. It is lost, and its sender finds out when it is to be
// sent again.
func (b *Batch) zeroPacket(i int) {
	p := &b.packets[i]
	clear(b.buf[p.off:p.end])
	p.payload = nil
	b.zeroCopyCount--
}

// addToGroup counts a packet of n bytes to the last group if it fits there, or else
// to a new one.
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

// smallPacket is the size in bytes up to which a packet rather ends a group of
// one than begins a group: an acknowledgement behind a reply, or the second
// packet of a message with so small an MTU that the others fill a group.
const smallPacket = 1500

// accepts reports whether a packet of n bytes may follow in the group. A large
// one does not end a group of one: it is the MIDDLE that follows a FIRST, which
// is longer by a RETH, and more of its size are coming.
func (g *group) accepts(n int) bool {
	return !g.closed && (n == g.seg || n < g.seg && (g.count > 1 || n <= smallPacket))
}

// samePath reports whether packets to a and b can share one send.
func samePath(a, b *wire.Path) bool {
	return a == b || *a == *b
}

// Append copies a finished packet into the batch, the way of wrappers that
// filter, delay or duplicate: they build another batch from what passes. It
// reports false when the batch is full. The ICRC in pkt is not kept, Seal
// writes a new one; bit flips recorded for pkt elsewhere do not come along.
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
	if b.zeroCopyCount > 0 {
		clear(b.packets) // so that nobody's memory is held
		b.zeroCopyCount = 0
	}
	b.packets = b.packets[:0]
	b.groups = b.groups[:0]
	b.flips = b.flips[:0]
	b.refusals = b.refusals[:0]
	b.sealed, b.flipped = 0, 0
}

// Len is the number of packets in the batch.
func (b *Batch) Len() int { return len(b.packets) }

// Bytes is the number of bytes in the batch, BTH to ICRC of every packet.
func (b *Batch) Bytes() int { return len(b.buf) }

// Cap is the number of bytes the batch can hold.
func (b *Batch) Cap() int { return cap(b.buf) }

// Packet returns packet i, 0 <= i < Len, and where it goes.
func (b *Batch) Packet(i int) (to *wire.Path, pkt []byte) {
	b.copyPayload(i)
	p := b.packets[i]
	return b.groups[p.group].to, b.buf[p.off:p.end:p.end]
}

// Groups is the number of GSO groups: how many sends the batch takes on a link
// with segmentation offload.
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

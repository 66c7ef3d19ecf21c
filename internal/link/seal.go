package link

import (
	"net/netip"

	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/wire"
)

// A flip is one bit to invert in one packet: bit 0 is the lowest of byte 0.
type flip struct{ packet, bit int }

// Seal writes the ICRC of every packet that has none yet. The ICRC covers the
// IPv4 header, so it depends on the source address src and on the
// identification that the system will write: the index of the packet in its
// group in a GSO send, and 0 otherwise (unconnected socket, don't-fragment
// set). IPv6 has no identification.
//
// A batch may be sealed again for the other way of sending, as after a fallback
// from GSO; sealing again for the same one costs nothing.
func (b *Batch) Seal(src netip.AddrPort, gso bool) {
	if b.separate != nil {
		b.splitLast()
	}
	if b.sealed > 0 && (b.src != src || b.gso != gso) {
		b.undoFlips()
		b.sealed = 0
	}
	if b.src != src {
		b.src = src
		b.sealers.clear()
	}
	b.gso = gso
	for b.sealed < len(b.packets) {
		if b.zeroCopyCount == 0 {
			b.sealRest()
		} else if !place.Try(b.sealRest) {
			b.zeroPacket(b.sealed)
		}
	}
	b.applyFlips()
}

// sealRest seals the packets from b.sealed on.
func (b *Batch) sealRest() {
	for b.sealed < len(b.packets) {
		b.sealGroup(&b.groups[b.packets[b.sealed].group])
	}
}

// sealGroup seals the packets of g that are not sealed yet: they are the next
// ones of the batch.
func (b *Batch) sealGroup(g *group) {
	s := b.sealers.get(b.src, g.to.Dst)
	for ; b.sealed < g.first+g.count; b.sealed++ {
		p := &b.packets[b.sealed]
		if p.payload == nil {
			s.Put(b.buf[p.off:p.end], b.ID(b.sealed))
			continue
		}
		payload, icrc := p.payloadOffsets()
		s.PutParts(b.buf[p.off:payload], p.payload, b.buf[icrc:p.end], b.ID(b.sealed))
	}
}

// ID returns the IPv4 identification that packet i was last sealed for.
func (b *Batch) ID(i int) uint16 {
	if !b.gso {
		return 0
	}
	return uint16(i - b.groups[b.packets[i].group].first)
}

// Corrupt inverts one bit of packet i after sealing, to inject a transmission
// error. Bit 0 is the lowest bit of the first byte.
func (b *Batch) Corrupt(i int, bit int) {
	b.flips = append(b.flips, flip{packet: i, bit: bit})
	if i < b.sealed {
		b.applyFlips()
	}
}

// MustSeal reports whether a link that needs no ICRC must nevertheless send the one that the packets
// have or will have: a capture has recorded it, or a bit flip is to be found by it.
func (b *Batch) MustSeal() bool { return b.sealed > 0 || len(b.flips) > 0 }

// AppendGroup appends the packets of group i of another batch with their bit flips, to be sealed
// anew, and reports whether they fit.
func (b *Batch) AppendGroup(from *Batch, i int) bool {
	g := &from.groups[i]
	for j := g.first; j < g.first+g.count; j++ {
		_, pkt := from.Packet(j)
		if !b.Append(g.to, pkt) {
			return false
		}
		for k, f := range from.flips {
			if f.packet != j {
				continue
			}
			if k < from.flipped { // the copy has the flip, and is sealed after it
				b.invertBit(flip{packet: len(b.packets) - 1, bit: f.bit})
			}
			b.Corrupt(len(b.packets)-1, f.bit)
		}
	}
	return true
}

// applyFlips applies the bit flips that are recorded but not in the bytes yet.
func (b *Batch) applyFlips() {
	for ; b.flipped < len(b.flips); b.flipped++ {
		b.invertBit(b.flips[b.flipped])
	}
}

// undoFlips reverts the applied flips before the batch is sealed anew.
func (b *Batch) undoFlips() {
	for _, f := range b.flips[:b.flipped] {
		b.invertBit(f)
	}
	b.flipped = 0
}

func (b *Batch) invertBit(f flip) {
	_, pkt := b.Packet(f.packet)
	pkt[f.bit/8] ^= 1 << (f.bit % 8)
}

// A sealerCache caches the sealers of the last few destinations. A batch serves
// a few queue pairs; with more destinations, a sealer is made per group, which
// costs about as much as sealing a small packet.
type sealerCache struct {
	entries [8]struct {
		dst    netip.AddrPort
		sealer wire.ICRC
	}
	used, victim int
}

func (s *sealerCache) clear() { s.used, s.victim = 0, 0 }

// get returns the sealer for src to dst. All entries have the same src: the
// caller clears them when it changes.
func (s *sealerCache) get(src, dst netip.AddrPort) *wire.ICRC {
	for i := range s.used {
		if s.entries[i].dst == dst {
			return &s.entries[i].sealer
		}
	}
	i := s.used
	if i < len(s.entries) {
		s.used++
	} else {
		i = s.victim
		s.victim = (s.victim + 1) % len(s.entries)
	}
	e := &s.entries[i]
	e.dst, e.sealer = dst, wire.NewICRC(src, dst)
	return &e.sealer
}

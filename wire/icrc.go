package wire

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// ICRCLen is the length of the invariant CRC, the last bytes of a packet.
const ICRCLen = 4

// ICRCResult is the outcome of Sealer.Check.
type ICRCResult uint8

// Outcomes of Sealer.Check.
const (
	ICRCBad    ICRCResult = iota // the packet is damaged
	ICRCExact                    // right for the identification asked about
	ICRCMember                   // right for another IPv4 identification
)

// String returns "bad", "exact" or "member".
func (r ICRCResult) String() string {
	switch r {
	case ICRCExact:
		return "exact"
	case ICRCMember:
		return "member"
	}
	return "bad"
}

// A Sealer computes the invariant CRC of the packets of one flow: the CRC-32 of
// Ethernet over a masked image of IP header, UDP header and packet.
//
//	| FF x 8 | IP header, masked | UDP header, checksum FFFF | BTH, byte 4 FF | rest without ICRC |
//	  ^ the same for every packet of a flow, but for lengths and IPv4 identification
//
// A CRC is linear, so the register after the UDP header is that of the flow
// plus what lengths and identification add to it, a handful of table look-ups;
// only the packet itself is hashed.
//
// A Sealer is a value without pointers and may be used by many goroutines.
type Sealer struct {
	base uint32 // register after the UDP header of a packet with lengths and identification 0
	v6   bool
}

// NewSealer returns the Sealer for packets from src to dst, as they are on the
// wire of the packet in question. It covers masked TTL, traffic class, flow
// label and UDP checksum, and assumes DF and no options in the IPv4 header.
func NewSealer(src, dst netip.AddrPort) Sealer {
	var b [8 + IPv6Len + UDPLen]byte
	return newSealer(b[:0], src, dst)
}

func newSealer(b []byte, src, dst netip.AddrPort) Sealer {
	const ones = 0xFFFFFFFF
	b = binary.BigEndian.AppendUint64(b, 1<<64-1)
	s, d := src.Addr().Unmap(), dst.Addr().Unmap()
	v6 := !s.Is4() || !d.Is4()
	if v6 {
		s, d := s.As16(), d.As16()
		b = binary.BigEndian.AppendUint32(b, 0x6FFFFFFF) // version, masked class and flow label
		b = append(b, 0, 0, protoUDP, 0xFF)              // length, protocol, masked hop limit
		b = append(append(b, s[:]...), d[:]...)
	} else {
		s, d := s.As4(), d.As4()
		b = append(b, 0x45, 0xFF, 0, 0)              // version, masked TOS, length
		b = binary.BigEndian.AppendUint32(b, flagDF) // identification, flags
		b = append(b, 0xFF, protoUDP, 0xFF, 0xFF)    // masked TTL, protocol, masked checksum
		b = append(append(b, s[:]...), d[:]...)
	}
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = append(b, 0, 0, 0xFF, 0xFF) // length, masked checksum
	return Sealer{base: ^crc32.ChecksumIEEE(b), v6: v6}
}

// Seal computes the ICRC of pkt, BTH to ICRC, and writes it to its last four
// bytes. id is the identification the IPv4 header will carry; it does not
// matter for IPv6. pkt must hold MinPacketLen bytes.
func (s *Sealer) Seal(pkt []byte, id uint16) {
	body := pkt[:len(pkt)-ICRCLen]
	binary.LittleEndian.PutUint32(pkt[len(body):], s.sum(body, id))
}

// Check compares the ICRC of pkt, BTH to ICRC, with the one computed for the
// IPv4 identification id. When they differ and the flow is IPv4, it looks for
// an identification that explains the difference and returns it: a UDP socket
// does not show the identification, and the peer's kernel may choose any. Of
// random damage one in 65536 passes as ICRCMember.
//
// pkt is written to and restored meanwhile: nobody else may look at it.
func (s *Sealer) Check(pkt []byte, id uint16) (ICRCResult, uint16) {
	if len(pkt) < MinPacketLen {
		return ICRCBad, 0
	}
	body := pkt[:len(pkt)-ICRCLen]
	diff := binary.LittleEndian.Uint32(pkt[len(body):]) ^ s.sum(body, id)
	if diff == 0 {
		return ICRCExact, id
	}
	if s.v6 {
		return ICRCBad, 0
	}
	// Take the difference back to where the identification entered.
	diff = mul(diff, unshift(len(body)+idToBTH))
	if diff>>16 != 0 {
		return ICRCBad, 0
	}
	return ICRCMember, id ^ uint16(diff<<8|diff>>8)
}

// sum returns the ICRC of a packet without its last four bytes.
func (s *Sealer) sum(body []byte, id uint16) uint32 {
	udp := uint16(UDPLen + len(body) + ICRCLen)
	reg := s.base
	if s.v6 {
		reg ^= lengthIPv6.of(udp) ^ lengthUDP.of(udp)
	} else {
		reg ^= lengthIPv4.of(udp+IPv4Len) ^ lengthUDP.of(udp) ^ identification.of(id)
	}
	masked := body[4]
	body[4] = 0xFF
	sum := crc32.Update(^reg, crc32.IEEETable, body)
	body[4] = masked
	return sum
}

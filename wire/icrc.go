package wire

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"net/netip"
)

// ICRCLen is the length of the invariant CRC, the last bytes of a packet.
const ICRCLen = 4

// ICRCResult is the outcome of ICRC.Check.
type ICRCResult uint8

// Outcomes of ICRC.Check.
const (
	ICRCBad    ICRCResult = iota // the packet is damaged
	ICRCExact                    // correct for the given IPv4 identification
	ICRCMember                   // correct for another IPv4 identification
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

// An ICRC computes the invariant CRC of the packets of one flow: the CRC-32 of
// Ethernet over a masked image of IP header, UDP header and packet.
//
//	| FF x 8 | IP header, masked | UDP header, checksum FFFF | BTH, byte 4 FF | rest without ICRC |
//	  ^ the same for every packet of a flow, but for lengths and IPv4 identification
//
// A CRC is linear, so the register after the UDP header is that of the flow plus
// the contributions of lengths and identification, a few table look-ups. Only the
// packet itself is hashed.
//
// An ICRC is a value without pointers and may be used by many goroutines.
//
// Source of the masks: Linux, drivers/infiniband/sw/rxe/rxe_icrc.c.
type ICRC struct {
	base uint32 // register after the UDP header of a packet with lengths and identification 0
	v6   bool
}

// Distances in bytes from the first byte of a field to the BTH.
const (
	totalLengthToBTH   = IPv4Len - 2 + UDPLen
	idToBTH            = IPv4Len - 4 + UDPLen
	payloadLengthToBTH = IPv6Len - 4 + UDPLen
	udpLengthToBTH     = UDPLen - 4
)

// Contributions of the fields that differ between packets of a flow.
var (
	totalLength    = newFieldTable(totalLengthToBTH)
	identification = newFieldTable(idToBTH)
	payloadLength  = newFieldTable(payloadLengthToBTH)
	udpLength      = newFieldTable(udpLengthToBTH)
)

// NewICRC returns the ICRC for packets from src to dst, as they stand in
// the headers of the packet in question. It assumes an IPv4 header without
// options and with DF.
func NewICRC(src, dst netip.AddrPort) ICRC {
	s, d := src.Addr().Unmap(), dst.Addr().Unmap()
	reg := uint32(afterFF)
	v6 := !s.Is4() || !d.Is4()
	if v6 {
		s, d := s.As16(), d.As16()
		reg = hashBytes(reg, 0x6F, 0xFF, 0xFF, 0xFF) // version, masked traffic class and flow label
		reg = hashBytes(reg, 0, 0, protoUDP, 0xFF)   // length, next header, masked hop limit
		reg = hashBytes(hashBytes(reg, s[:]...), d[:]...)
	} else {
		s, d := s.As4(), d.As4()
		reg = hashBytes(reg, 0x45, 0xFF, 0, 0)           // version, masked TOS, length
		reg = hashBytes(reg, 0, 0, flagDF>>8, 0)         // identification, flags
		reg = hashBytes(reg, 0xFF, protoUDP, 0xFF, 0xFF) // masked TTL, protocol, masked checksum
		reg = hashBytes(hashBytes(reg, s[:]...), d[:]...)
	}
	reg = hashBytes(reg, byte(src.Port()>>8), byte(src.Port()), byte(dst.Port()>>8), byte(dst.Port()))
	reg = hashBytes(reg, 0, 0, 0xFF, 0xFF) // length, masked checksum
	return ICRC{base: reg, v6: v6}
}

// afterFF is the register after the eight bytes FF that stand for a masked LRH.
const afterFF = 0xDEBB20E3

// hashBytes updates the register with bytes, one by one. With hash/crc32 the
// headers would escape to the heap.
func hashBytes(reg uint32, p ...byte) uint32 {
	for _, v := range p {
		reg = shift8(reg ^ uint32(v))
	}
	return reg
}

// Put computes the ICRC of pkt, BTH to ICRC, and writes it to its last four
// bytes. id is the identification the IPv4 header will carry; it does not
// matter for IPv6. pkt must hold MinPacketLen bytes.
func (c *ICRC) Put(pkt []byte, id uint16) {
	body := pkt[:len(pkt)-ICRCLen]
	binary.LittleEndian.PutUint32(pkt[len(body):], c.computeICRC(body, id))
}

// PutParts is like Put for a packet in parts: its headers from the BTH on,
// its payload, and the four bytes of the ICRC.
func (c *ICRC) PutParts(head, payload, icrc []byte, id uint16) {
	reg := c.hashBTH(head, len(head)+len(payload), id)
	rest := head[BTHLen:]
	for len(rest) >= 4 {
		reg = shift32(reg ^ binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
	}
	binary.LittleEndian.PutUint32(icrc, ^crcUpdate(hashBytes(reg, rest...), payload))
}

// Check compares the ICRC of pkt, BTH to ICRC, with the one computed for the
// IPv4 identification id. If they differ and the flow is IPv4, it searches
// for an identification that explains the difference and returns it: a UDP socket
// does not report the identification, and the peer's kernel may choose any. This
// halves the protection: one in 65536 randomly damaged packets passes as
// ICRCMember. The identification returned with ICRCBad is 0.
func (c *ICRC) Check(pkt []byte, id uint16) (ICRCResult, uint16) {
	if len(pkt) < MinPacketLen {
		return ICRCBad, 0
	}
	body := pkt[:len(pkt)-ICRCLen]
	diff := binary.LittleEndian.Uint32(pkt[len(body):]) ^ c.computeICRC(body, id)
	if diff == 0 {
		return ICRCExact, id
	}
	if c.v6 {
		return ICRCBad, 0
	}
	// Take the difference back to where the identification entered: only its
	// two bytes may differ there, the first in bits 7..0.
	diff = unshift(diff, len(body)+idToBTH)
	if diff>>16 != 0 {
		return ICRCBad, 0
	}
	return ICRCMember, id ^ bits.ReverseBytes16(uint16(diff))
}

// hashBTH returns the register after the BTH of a packet of n bytes without its
// last four.
func (c *ICRC) hashBTH(bth []byte, n int, id uint16) uint32 {
	udp := uint16(UDPLen + n + ICRCLen)
	reg := c.base
	if c.v6 {
		reg ^= payloadLength.contribution(udp) ^ udpLength.contribution(udp)
	} else {
		reg ^= totalLength.contribution(udp+IPv4Len) ^ udpLength.contribution(udp) ^ identification.contribution(id)
	}
	const masked = 0xFF // BTH byte 4: FECN, BECN, reserved
	reg = shift32(reg ^ binary.LittleEndian.Uint32(bth[0:]))
	reg = shift32(reg ^ (binary.LittleEndian.Uint32(bth[4:]) | masked))
	return shift32(reg ^ binary.LittleEndian.Uint32(bth[8:]))
}

// computeICRC returns the ICRC of a packet without its last four bytes.
func (c *ICRC) computeICRC(body []byte, id uint16) uint32 {
	reg := c.hashBTH(body, len(body), id)
	// crcUpdate is faster from 16 bytes on.
	rest := body[BTHLen:]
	if len(rest) >= 16 {
		return ^crcUpdate(reg, rest)
	}
	for len(rest) >= 4 {
		reg = shift32(reg ^ binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
	}
	return ^hashBytes(reg, rest...)
}

// crcStandard returns the register after p by hash/crc32. It is the register
// itself, not its complement, which hash/crc32 returns.
//
// ICRC calls crcUpdate, which does the same. On amd64 that is assembly,
// where the processor can run it; the build tag purego leaves the assembly out.
func crcStandard(reg uint32, p []byte) uint32 {
	return ^crc32.Update(^reg, crc32.IEEETable, p)
}

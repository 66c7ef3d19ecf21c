package wire

import (
	"encoding/binary"
	"net/netip"
)

// Lengths in bytes of the outer headers of a packet, and of the GRH before the
// payload in a UD receive buffer.
const (
	IPv4Len = 20
	IPv6Len = 40
	UDPLen  = 8
	GRHLen  = 40
)

const (
	protoUDP   = 17
	defaultTTL = 64
	flagDF     = 0x4000
)

// PutGRH writes the IP header of a received datagram, as far as a socket reports
// it, to the first GRHLen bytes of b, a UD receive buffer. udpLen is the length in the
// UDP header: UDPLen and BTH to ICRC.
//
//	IPv6:  | IPv6 header, 40 bytes                     |
//	IPv4:  | 20 zero bytes       | IPv4 header, 20 bytes |
//
// Identification and flow label are 0, the hop limit is 64, and DF is set. If hop
// limit and flow label are known, SetGRHHops sets them. The layout is that of Linux
// rdma_rxe, which zeroes the first 20 bytes for IPv4, which the specification
// leaves undefined.
func PutGRH(b []byte, src, dst netip.Addr, tos uint8, udpLen int) {
	b = b[:GRHLen]
	src, dst = src.Unmap(), dst.Unmap()
	clear(b)
	if !src.Is4() || !dst.Is4() {
		binary.BigEndian.PutUint32(b[0:], 6<<28|uint32(tos)<<20)
		binary.BigEndian.PutUint16(b[4:], uint16(udpLen))
		b[6], b[7] = protoUDP, defaultTTL
		s, d := src.As16(), dst.As16()
		copy(b[8:], s[:])
		copy(b[24:], d[:])
		return
	}
	ip := b[GRHLen-IPv4Len:]
	ip[0], ip[1] = 0x45, tos
	binary.BigEndian.PutUint16(ip[2:], uint16(IPv4Len+udpLen))
	binary.BigEndian.PutUint16(ip[6:], flagDF)
	ip[8], ip[9] = defaultTTL, protoUDP
	s, d := src.As4(), dst.As4()
	copy(ip[12:], s[:])
	copy(ip[16:], d[:])
	binary.BigEndian.PutUint16(ip[10:], headerChecksum(ip))
}

// SetGRHHops sets the hop limit, unless it is 0, and for IPv6 the flow label,
// in a header written by PutGRH.
func SetGRHHops(b []byte, hopLimit uint8, flowLabel uint32) {
	if b[0]>>4 == 6 {
		binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)&^flowLabelMask|flowLabel&flowLabelMask)
		if hopLimit != 0 {
			b[7] = hopLimit
		}
		return
	}
	ip := b[GRHLen-IPv4Len : GRHLen]
	if hopLimit != 0 {
		ip[8] = hopLimit
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], headerChecksum(ip))
	}
}

// flowLabelMask are the bits of a flow label in the first word of an IPv6 header.
const flowLabelMask = 1<<20 - 1

// ParseGRH parses source, destination and traffic class in the first GRHLen bytes of a
// UD receive buffer. ok is false if they contain no IP header.
func ParseGRH(b []byte) (src, dst netip.Addr, tos uint8, ok bool) {
	if len(b) < GRHLen {
		return
	}
	if b[0]>>4 == 6 {
		return netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), b[0]<<4 | b[1]>>4, true
	}
	if ip := b[GRHLen-IPv4Len:]; ip[0] == 0x45 {
		return netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20])), ip[1], true
	}
	return
}

// headerChecksum returns the Internet checksum (RFC 1071) of an IPv4 header.
func headerChecksum(ip []byte) uint16 {
	var sum uint32
	for i := 0; i < IPv4Len; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xFFFF + sum>>16
	}
	return ^uint16(sum)
}

package mad

import (
	"encoding/binary"
	"net/netip"
)

// CMAHeaderLen is the length of RDMA-CM's header in bytes.
const CMAHeaderLen = 36

// UDPQKey is the Q_Key of RDMA-CM's datagram service unless its program
// chooses another (RDMA_UDP_QKEY).
const UDPQKey = 0x01234567

// CMAHeader is the RDMA-CM header: in port spaces TCP, UDP and IPoIB the private
// data of a REQ or SIDR_REQ begins with it. It has the IP addresses and the source
// port.
//
//	0  version 0                          4  source address, 128 bits
//	1  IP version 4 bits, 0               20  destination address, 128 bits
//	2  source port
//
// An IPv4 address is in the last four bytes of its field; the others are 0.
// Replies do not have the header.
type CMAHeader struct {
	Src netip.AddrPort
	Dst netip.Addr // of the same family
}

// Put writes the header to the first CMAHeaderLen bytes of b.
func (h CMAHeader) Put(b []byte) {
	b = b[:CMAHeaderLen]
	clear(b)
	binary.BigEndian.PutUint16(b[2:], h.Src.Port())
	if src := h.Src.Addr().Unmap(); src.Is4() {
		b[1] = 0x40
		s, d := src.As4(), h.Dst.Unmap().As4()
		copy(b[16:], s[:])
		copy(b[32:], d[:])
	} else {
		b[1] = 0x60
		s, d := src.As16(), h.Dst.As16()
		copy(b[4:], s[:])
		copy(b[20:], d[:])
	}
}

// ParseCMAHeader reads the header from b. ok is false if b is too short or
// begins otherwise: another version, another IP version than 4 and 6.
func ParseCMAHeader(b []byte) (h CMAHeader, ok bool) {
	if len(b) < CMAHeaderLen || b[0] != 0 {
		return h, false
	}
	var src netip.Addr
	switch b[1] >> 4 {
	case 4:
		src, h.Dst = netip.AddrFrom4([4]byte(b[16:20])), netip.AddrFrom4([4]byte(b[32:36]))
	case 6:
		src, h.Dst = netip.AddrFrom16([16]byte(b[4:20])), netip.AddrFrom16([16]byte(b[20:36]))
	default:
		return h, false
	}
	h.Src, h.Dst = netip.AddrPortFrom(src.Unmap(), binary.BigEndian.Uint16(b[2:])), h.Dst.Unmap()
	return h, true
}

package bsdh

import (
	"encoding/binary"
	"net/netip"
)

// HelloBytes is the length of a Hello: all private data of a REQ.
const HelloBytes = 92

// Version is the protocol version of Hello and HelloAck in OFED and FreeBSD, with
// the major version in the high four bits. Topspin's version was 0x11, with the same
// messages.
const Version = 0x22

// Capabilities are the capabilities of a socket, 4 bits.
type Capabilities uint8

// Capabilities.
const (
	CapInvalidate         Capabilities = 1 << iota // INVALIDATE_CAP: accepts SENDs with invalidate
	CapExtendedMaxAdverts                          // EXTENDED_MAXADVERTS: ExtMaxAdverts is valid
)

// Hello requests a connection. It is the private data of a REQ, without the RDMA-CM
// header. These are the offsets of the hello header (HH), which
// follows the base header:
//
//	 0  version: major 4, minor 4      14  reserved
//	 1  IP version 4, capabilities 4   16  source address, 128 bits
//	 2  reserved                       32  destination address, 128 bits
//	 3  MaxAdverts                     48  reserved
//	 4  DesRemRcvSz                    50  ExtMaxAdverts
//	 8  LocalRcvSz                     52  reserved; Extension between softrnics
//	12  local port                     76  end
//
// An IPv4 address is in the last four bytes of its field; the others are 0.
type Hello struct {
	Version       uint8 // Version
	MaxAdverts    uint8 // maximum outstanding RDMA advertisements to the sender, at least 1
	Capabilities  Capabilities
	ExtMaxAdverts uint16 // instead of MaxAdverts, with CapExtendedMaxAdverts

	DesRemRcvSz uint32 // requested size of the receiver's buffers in bytes
	LocalRcvSz  uint32 // size of each of the sender's receive buffers, headers included
	Bufs        uint16 // receives that the sender has posted, from the base header

	LocalPort uint16     // the sender's
	Src, Dst  netip.Addr // the sender's and the receiver's

	Extension Extension
}

// Append appends the message, HelloBytes with its base header, to b.
func (h *Hello) Append(b []byte) []byte {
	b = Header{MID: MIDHello, Bufs: h.Bufs, Len: HelloBytes}.Append(b)
	version, src, dst := encodeAddrs(h.Src, h.Dst)
	b = append(b, h.Version, version<<4|byte(h.Capabilities)&0xF, 0, h.MaxAdverts)
	b = binary.BigEndian.AppendUint32(b, h.DesRemRcvSz)
	b = binary.BigEndian.AppendUint32(b, h.LocalRcvSz)
	b = binary.BigEndian.AppendUint16(b, h.LocalPort)
	b = append(b, 0, 0)
	b = append(b, src[:]...)
	b = append(b, dst[:]...)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, h.ExtMaxAdverts)
	return h.Extension.appendTo(b)
}

// helloFields is the length of Hello in early OFED, which ends after its last field.
// Later bytes are 0.
const helloFields = HeaderBytes + 48

// ParseHello decodes a Hello from the private data of a REQ and ignores bytes after
// it. It returns an error if the private data is not a Hello, is neither IPv4 nor
// IPv6, or permits no advertisement. The caller checks Version.
func ParseHello(private []byte) (h Hello, err error) {
	if err := checkHello(private, MIDHello, helloFields, HelloBytes); err != nil {
		return h, err
	}
	base := parseHeader((*[HeaderBytes]byte)(private))
	b := private[HeaderBytes:]
	h = Hello{
		Version: b[0], Capabilities: Capabilities(b[1] & 0xF), MaxAdverts: b[3],
		DesRemRcvSz: binary.BigEndian.Uint32(b[4:]), LocalRcvSz: binary.BigEndian.Uint32(b[8:]), Bufs: base.Bufs,
		LocalPort: binary.BigEndian.Uint16(b[12:]),
	}
	switch version := b[1] >> 4; version {
	case 4:
		h.Src, h.Dst = netip.AddrFrom4([4]byte(b[28:32])), netip.AddrFrom4([4]byte(b[44:48]))
	case 6:
		h.Src, h.Dst = netip.AddrFrom16([16]byte(b[16:32])).Unmap(), netip.AddrFrom16([16]byte(b[32:48])).Unmap()
	default:
		return Hello{}, malformedError("Hello of IP version %d, want 4 or 6", version)
	}
	if h.MaxAdverts == 0 {
		return Hello{}, malformedError("Hello with MaxAdverts 0: want at least 1")
	}
	if base.Len == HelloBytes {
		h.ExtMaxAdverts = binary.BigEndian.Uint16(b[50:])
		h.Extension = parseExtension(b[52:])
	}
	return h, nil
}

// checkHello performs the checks common to Hello and HelloAck. In early OFED both
// end after their last field.
func checkHello(private []byte, m MID, fields, size int) error {
	if len(private) < size {
		return malformedError("%d bytes of private data, %v takes %d", len(private), m, size)
	}
	h := parseHeader((*[HeaderBytes]byte)(private))
	if h.MID != m {
		return malformedError("private data begins with %v instead of %v", h.MID, m)
	}
	if h.Len < uint32(fields) || h.Len > uint32(size) {
		return malformedError("%v of length %d: want %d to %d", m, h.Len, fields, size)
	}
	return nil
}

// encodeAddrs returns the IP version and the encoded fields of two addresses: IPv4 if
// both are IPv4.
func encodeAddrs(src, dst netip.Addr) (version byte, s, d [16]byte) {
	src, dst = src.Unmap(), dst.Unmap()
	if !src.Is4() || !dst.Is4() {
		return 6, src.As16(), dst.As16()
	}
	s4, d4 := src.As4(), dst.As4()
	copy(s[12:], s4[:])
	copy(d[12:], d4[:])
	return 4, s, d
}

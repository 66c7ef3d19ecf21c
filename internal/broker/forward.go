package broker

import (
	"encoding/binary"
	"net/netip"

	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// The kernel selects the socket of several packets that it has merged (GSO, GRO) by the first
// one. The process that gets them sends those of other slots on, in an envelope that keeps
// their source, to its own address: only members of the address can send from there.
//
//	 0  opcode 0xFF             2  IPv4 identification    8  source port
//	 1  traffic class           4  0                     10  source address
//	32  the packet, from the BTH to the ICRC
//
// Opcodes from 0xC0 on are for the manufacturer (IBTA volume 1, 9.2.1). The program in the
// kernel selects the slot by the packet inside.

// EnvelopeLen is the length of an envelope without the packet, in bytes.
const EnvelopeLen = 32

const envelopeOpcode = 0xFF

// IsEnvelope reports whether a datagram is an envelope.
func IsEnvelope(b []byte) bool { return len(b) > EnvelopeLen+wire.ICRCLen && b[0] == envelopeOpcode }

// PutEnvelope writes the header of an envelope to the first EnvelopeLen bytes of b.
func PutEnvelope(b []byte, src netip.AddrPort, tos uint8, id uint16) {
	b = b[:EnvelopeLen]
	clear(b)
	b[0], b[1] = envelopeOpcode, tos
	binary.BigEndian.PutUint16(b[2:], id)
	binary.BigEndian.PutUint16(b[8:], src.Port())
	ip := src.Addr().As16()
	copy(b[10:], ip[:])
}

// OpenEnvelope returns the source, traffic class, identification and packet of an envelope
// with an ICRC of its own.
func OpenEnvelope(b []byte) (src netip.AddrPort, tos uint8, id uint16, pkt []byte) {
	ip := netip.AddrFrom16([16]byte(b[10:26])).Unmap()
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[8:])), b[1], binary.BigEndian.Uint16(b[2:]), b[EnvelopeLen : len(b)-wire.ICRCLen]
}

// IsForSlot reports whether a packet belongs to a slot. That is not known of datagrams to QP 1
// without a communication ID: the kernel knows the slot of their service.
func IsForSlot(pkt []byte, slot int) bool {
	if len(pkt) < wire.BTHLen {
		return true // no packet; any slot may drop it
	}
	if qpn := binary.BigEndian.Uint32(pkt[qpnOffset:]) & wire.QPNMask; qpn != wire.QPNGSI {
		return QPNSlot(qpn) == slot
	}
	id := ownIDOffset
	if len(pkt) < serviceOffset || pkt[classOffset] != classCM {
		return false
	}
	switch mad.Attr(binary.BigEndian.Uint16(pkt[attrOffset:])) {
	case mad.AttrREQ, mad.AttrSIDRReq:
		return false
	case mad.AttrSIDRRep:
		id = sidrIDOffset
	}
	return int(binary.BigEndian.Uint32(pkt[id:])>>idShift) == slot
}

// MustSeparate reports whether two packets to one address, where they are sent to different
// slots if it is shared, must not be merged.
func MustSeparate(first, later []byte) bool {
	const topByte = qpnOffset + 1
	return (first[topByte]^later[topByte])>>(8-SlotBits) != 0 || isGSI(first) || isGSI(later) ||
		first[0] == envelopeOpcode || later[0] == envelopeOpcode
}

func isGSI(pkt []byte) bool {
	return binary.BigEndian.Uint32(pkt[qpnOffset:])&wire.QPNMask == wire.QPNGSI
}

package broker

import (
	"encoding/binary"
	"net/netip"

	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// The kernel selects the socket of several packets that it has merged (GSO, GRO) by the first
// one. The process that gets them encapsulates those of other slots with their source, and sends
// them to its own address: only members of the address can send from there.
//
//	 0  opcode 0xFF               4  0                       8  source port
//	 1  traffic class             6  slot + 1, or 0         10  source address
//	 2  IPv4 identification       7  0                      32  the packet, from the BTH to the ICRC
//
// Opcodes from 0xC0 on are for the manufacturer (IBTA volume 1, 9.2.1). The program in the
// kernel selects the explicit slot, or else that of the packet inside.

// EncapsulationLen is the length of the header before an encapsulated packet, in bytes.
const EncapsulationLen = 32

const (
	encapsulationOpcode     = 0xFF
	encapsulationSlotOffset = 6
)

// SlotOfPacket stands for the slot to which an encapsulated packet belongs.
const SlotOfPacket = -1

// IsEncapsulated reports whether a datagram is an encapsulated packet.
func IsEncapsulated(b []byte) bool {
	return len(b) > EncapsulationLen+wire.ICRCLen && b[0] == encapsulationOpcode
}

// PutEncapsulation writes the header of an encapsulated packet for a slot to the first
// EncapsulationLen bytes of b.
func PutEncapsulation(b []byte, slot int, src netip.AddrPort, tos uint8, id uint16) {
	b = b[:EncapsulationLen]
	clear(b)
	b[0], b[1], b[encapsulationSlotOffset] = encapsulationOpcode, tos, byte(slot+1)
	binary.BigEndian.PutUint16(b[2:], id)
	binary.BigEndian.PutUint16(b[8:], src.Port())
	ip := src.Addr().As16()
	copy(b[10:], ip[:])
}

// Decapsulate returns the packet in a datagram, with its source, traffic class and
// identification. The datagram ends with an ICRC of its own.
func Decapsulate(b []byte) (src netip.AddrPort, tos uint8, id uint16, pkt []byte) {
	ip := netip.AddrFrom16([16]byte(b[10:26])).Unmap()
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[8:])), b[1], binary.BigEndian.Uint16(b[2:]), b[EncapsulationLen : len(b)-wire.ICRCLen]
}

// IsForSlot reports whether a packet belongs to a slot. That is not known of datagrams to QP 1
// without a communication ID of ours: the kernel knows the slot of their service.
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
	own := binary.BigEndian.Uint32(pkt[id:])
	return own != 0 && int(own>>idShift) == slot
}

// IsMisdirected reports whether a packet is to a queue pair of another slot, other than QP 1.
func IsMisdirected(pkt []byte, slot int) bool {
	return len(pkt) >= wire.BTHLen && !isGSI(pkt) && !IsForSlot(pkt, slot)
}

// IsWithdrawal reports whether a packet is a REJ without an ID of ours: the peer withdraws a
// request before it has got our ID. The slot that has the request is unknown, so that all slots
// with a connection manager must get it.
func IsWithdrawal(pkt []byte) bool {
	return len(pkt) >= serviceOffset && isGSI(pkt) && pkt[classOffset] == classCM &&
		mad.Attr(binary.BigEndian.Uint16(pkt[attrOffset:])) == mad.AttrREJ && binary.BigEndian.Uint32(pkt[ownIDOffset:]) == 0
}

// MustSeparate reports whether two packets to one address, where they are sent to different
// slots if it is shared, must not be merged.
func MustSeparate(first, later []byte) bool {
	const topByte = qpnOffset + 1
	return (first[topByte]^later[topByte])>>(8-SlotBits) != 0 || isGSI(first) || isGSI(later) ||
		first[0] == encapsulationOpcode || later[0] == encapsulationOpcode
}

func isGSI(pkt []byte) bool {
	return binary.BigEndian.Uint32(pkt[qpnOffset:])&wire.QPNMask == wire.QPNGSI
}

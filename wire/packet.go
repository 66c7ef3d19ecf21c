package wire

import (
	"encoding/binary"
	"net/netip"
)

// Packet is a parsed packet. It refers to the bytes from which it was parsed, which the
// caller must not change while the Packet is in use. Methods decode the extended
// headers.
type Packet struct {
	BTH  BTH
	Info *Info // of BTH.Opcode

	Src, Dst netip.AddrPort // of the datagram, canonical, set by the receiving link
	TOS      uint8          // IPv4 TOS or IPv6 traffic class as received

	HopLimit  uint8  // as received; 0 if the link does not report it
	FlowLabel uint32 // IPv6 flow label as received, or 0

	Raw     []byte // BTH to ICRC
	Payload []byte // without padding and ICRC

	headers []byte // the start of Raw, or a copy of it: see ParseUnstable
}

// MaxHeaderLen is an upper limit of Info.HeaderLen in bytes.
const MaxHeaderLen = 64

// MinPacketLen is the length in bytes of the shortest datagram that can be a
// packet: BTH and ICRC.
const MinPacketLen = BTHLen + ICRCLen

// Parse makes p a view of raw, a datagram from BTH to ICRC, and does not modify
// Src, Dst and TOS. It returns DropNone, or the reason if raw is not a valid packet.
// In this case the BTH is set if raw contains it, so that the drop can be counted
// for its queue pair, and Payload is nil.
//
// Parse performs the checks that need no queue pair: lengths, opcode, transport
// version, padding. It does not check the ICRC.
func (p *Packet) Parse(raw []byte) Drop { return p.parse(raw, raw) }

// ParseUnstable is Parse of bytes that another process may change meanwhile: it copies the headers
// to own, and p refers to them there. Only Raw and Payload refer to the unstable bytes.
func (p *Packet) ParseUnstable(raw []byte, own *[MaxHeaderLen]byte) Drop {
	n := min(len(raw), len(own))
	copy(own[:n], raw)
	return p.parse(raw, own[:n])
}

// parse makes p a view of raw, which begins with the headers or is as long and began with them when
// they were copied.
func (p *Packet) parse(raw, headers []byte) Drop {
	p.Raw, p.Payload, p.headers = raw, nil, headers
	if len(raw) < MinPacketLen {
		p.BTH, p.Info = BTH{Opcode: NoOpcode}, NoOpcode.Info()
		return DropTruncated
	}
	p.BTH.decode(headers)
	info := p.BTH.Opcode.Info()
	p.Info = info
	n := len(raw) - ICRCLen - info.HeaderLen // payload and padding
	pad := int(p.BTH.Pad)
	switch {
	case !info.Valid:
		return DropBadOpcode
	case p.BTH.TVer != 0:
		return DropBadVersion
	case p.BTH.DestQPN == 0:
		return DropUnknownQPN
	case n < 0:
		return DropTruncated
	case pad > n:
		return DropBadPad
	case info.payload == payloadNone && n != 0:
		return DropBadLength
	}
	p.Payload = raw[info.HeaderLen : info.HeaderLen+n-pad]
	return DropNone
}

// LengthFits reports whether payload and padding conform to the opcode for a path
// MTU of mtu bytes, which Parse does not know. The responder of a connection
// rejects a nonconforming packet with NakInvalidRequest.
func (p *Packet) LengthFits(mtu int) bool {
	n := len(p.Payload)
	least, most := p.Info.PayloadRange(mtu)
	return least <= n && n <= most && int(p.BTH.Pad) == PadFor(n)
}

// extendedHeaders returns the bytes after BTH and, in datagrams, DETH, in a FLUSH
// FETH.
func (p *Packet) extendedHeaders() []byte {
	switch {
	case p.Info.DETH:
		return p.headers[BTHLen+DETHLen:]
	case p.Info.FETH:
		return p.headers[BTHLen+FETHLen:]
	}
	return p.headers[BTHLen:]
}

// FETH decodes the header. Info.FETH must be true.
func (p *Packet) FETH() FETH { return parseFETH(p.headers[BTHLen:]) }

// SackETH decodes the header. Info.SackETH must be true.
func (p *Packet) SackETH() SackETH { return parseSackETH(p.extendedHeaders()[AETHLen:]) }

// RETH decodes the header. Info.RETH must be true.
func (p *Packet) RETH() RETH { return parseRETH(p.extendedHeaders()) }

// AETH decodes the header. Info.AETH must be true.
func (p *Packet) AETH() AETH { return parseAETH(p.extendedHeaders()) }

// AtomicETH decodes the header. Info.AtomicETH must be true.
func (p *Packet) AtomicETH() AtomicETH { return parseAtomicETH(p.extendedHeaders()) }

// AtomicAckETH decodes the header. Info.AtomicAckETH must be true.
func (p *Packet) AtomicAckETH() AtomicAckETH { return parseAtomicAckETH(p.extendedHeaders()[AETHLen:]) }

// Imm decodes the immediate data, the last header. Info.Imm must be true.
func (p *Packet) Imm() uint32 { return binary.BigEndian.Uint32(p.headers[p.Info.HeaderLen-ImmLen:]) }

// IETH decodes the header, the last one. Info.IETH must be true.
func (p *Packet) IETH() IETH { return parseIETH(p.headers[p.Info.HeaderLen-IETHLen:]) }

// DETH decodes the header. Info.DETH must be true.
func (p *Packet) DETH() DETH { return ParseDETH(p.headers[BTHLen:]) }

const cnpReserved = 16

// CNPLen is the length of a congestion notification packet in bytes, BTH to
// ICRC.
const CNPLen = BTHLen + cnpReserved + ICRCLen

// PutCNP writes a congestion notification packet for the sender's QP destQPN to
// b, which must hold CNPLen bytes: all but the ICRC, which [ICRC.Put] adds.
//
//	BTH (opcode 0x81, BECN 1, PSN 0) | 16 zero bytes | ICRC
//
// Source: scapy, scapy/contrib/roce.py, and a capture from a ConnectX-4 Lx.
func PutCNP(b []byte, destQPN uint32) {
	b = b[:CNPLen]
	clear(b[BTHLen : CNPLen-ICRCLen])
	h := BTH{Opcode: CNP, PKey: DefaultPKey, BECN: true, DestQPN: destQPN}
	h.Put(b)
}

// PSN is a packet sequence number of 24 bits, which wraps around. The upper 8 bits are
// 0.
type PSN uint32

// PSNMask is the mask of the 24 bits of a PSN.
const PSNMask = 1<<24 - 1

// Add returns the PSN n packets after p; n may be negative.
func (p PSN) Add(n int) PSN { return PSN(uint32(p)+uint32(n)) & PSNMask }

// Sub returns the distance from q to p in packets, from -2^23 to 2^23-1. It is negative
// if p is older than q.
func (p PSN) Sub(q PSN) int { return int(int32(uint32(p-q)<<8) >> 8) }

// Less reports whether p is older than q. It is not an order for PSNs that are 2^23
// apart, so windows must be smaller.
func (p PSN) Less(q PSN) bool { return int32(uint32(p-q)<<8) < 0 }

// LessEq reports whether p is older than q or equal to it.
func (p PSN) LessEq(q PSN) bool { return p == q || p.Less(q) }

// A Path is a resolved address vector: the UDP address of the peer's adapter and
// fields of the IP header.
//
// A Path is shared by many packets and must not change until all packets built for
// it were sent.
type Path struct {
	Dst          netip.AddrPort // peer adapter, canonical; port 4791 unless several adapters share one address
	TrafficClass uint8          // IPv4 TOS or IPv6 traffic class: DSCP in bits 7..2, ECN in bits 1..0
	HopLimit     uint8          // IPv4 TTL or IPv6 hop limit; 0 means 64, or the system's default for a multicast group
	FlowLabel    uint32         // IPv6 flow label, 20 bits; 0 means the system's default
}

package wire

import "encoding/binary"

// BTHLen is the length of the base transport header in bytes.
const BTHLen = 12

// BTH is the base transport header, the first header of every packet.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-+-+---+-------+-------------------------------+
//	|    OpCode     |S|M|Pad| TVer  |             P_Key             |
//	+-+-+-----------+-+-+---+-------+-------------------------------+
//	|F|B|  reserved |              Destination QPN                  |
//	+-+-+-----------+-----------------------------------------------+
//	|A|M| reserved  |           Packet Sequence Number              |
//	+-+-+-----------+-----------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type BTH struct {
	Opcode  Opcode
	SE      bool   // solicited event: the receiver's completion may wake it
	MigReq  bool   // path migration state; ignored
	Pad     uint8  // bytes of zero after the payload, 0..3
	TVer    uint8  // transport version, 0
	PKey    uint16 // partition key; 0xFFFF is the default partition, full member
	FECN    bool   // congestion seen on the way here
	BECN    bool   // congestion seen on the way back; set in a CNP
	DestQPN uint32 // 24 bits; 1 is the GSI, 0xFFFFFF multicast
	AckReq  bool   // requests an acknowledgement of this packet
	More    bool   // reserved bit, used between softrnics only: the next packet continues the message
	PSN     PSN
}

// DefaultPKey is the default partition with full membership.
const DefaultPKey = 0xFFFF

// QPNs with a meaning of their own. QPN 0, the SMI, does not exist on RoCE.
const (
	QPNGSI       = 1        // general services interface: connection management
	QPNMulticast = 0xFFFFFF // destination of multicast datagrams
	QPNMask      = 1<<24 - 1
)

// Put writes the header to the first BTHLen bytes of b. Bits beyond a field's
// width are cut off.
func (h *BTH) Put(b []byte) {
	b = b[:BTHLen]
	b[0] = byte(h.Opcode)
	b[1] = boolBit(h.SE)<<7 | boolBit(h.MigReq)<<6 | h.Pad&3<<4 | h.TVer&15
	binary.BigEndian.PutUint16(b[2:], h.PKey)
	binary.BigEndian.PutUint32(b[4:], uint32(boolBit(h.FECN)<<7|boolBit(h.BECN)<<6)<<24|h.DestQPN&QPNMask)
	binary.BigEndian.PutUint32(b[8:], uint32(boolBit(h.AckReq)<<7|boolBit(h.More)<<6)<<24|uint32(h.PSN)&PSNMask)
}

// ParseBTH reads the header from b, which must hold BTHLen bytes. Reserved bits
// are ignored.
func ParseBTH(b []byte) (h BTH) {
	h.decode(b)
	return h
}

func (h *BTH) decode(b []byte) {
	b = b[:BTHLen]
	flags, qpn, psn := b[1], binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	h.Opcode = Opcode(b[0])
	h.SE = flags&0x80 != 0
	h.MigReq = flags&0x40 != 0
	h.Pad = flags >> 4 & 3
	h.TVer = flags & 15
	h.PKey = binary.BigEndian.Uint16(b[2:])
	h.FECN = qpn&(1<<31) != 0
	h.BECN = qpn&(1<<30) != 0
	h.DestQPN = qpn & QPNMask
	h.AckReq = psn&(1<<31) != 0
	h.More = psn&(1<<30) != 0
	h.PSN = PSN(psn & PSNMask)
}

func boolBit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// PadFor returns the number of pad bytes, 0..3, that follow n payload bytes.
func PadFor(n int) int { return -n & 3 }

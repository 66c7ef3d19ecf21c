package mad

import "encoding/binary"

// LIDPermissive is the value of both LIDs of a routed path in Linux. LIDs have no
// meaning on RoCE.
const LIDPermissive = 0xFFFF

// pathLen is the length of a path in a REQ.
const pathLen = 44

// Path is one of the two paths in a REQ, seen from its sender.
type Path struct {
	LocalLID, RemoteLID uint16
	LocalGID, RemoteGID [16]byte // of the REQ's sender and of its receiver
	FlowLabel           uint32   // 20 bits
	PacketRate          uint8    // 6 bits
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8 // 4 bits
	SubnetLocal         bool
	AckTimeout          uint8 // 5 bits: 4.096 us * 2^AckTimeout, for the receiver of the REQ
}

func (p *Path) encode(b []byte) {
	b = b[:pathLen]
	binary.BigEndian.PutUint16(b[0:], p.LocalLID)
	binary.BigEndian.PutUint16(b[2:], p.RemoteLID)
	copy(b[4:], p.LocalGID[:])
	copy(b[20:], p.RemoteGID[:])
	binary.BigEndian.PutUint32(b[36:], p.FlowLabel<<12|uint32(p.PacketRate&0x3F))
	b[40] = p.TrafficClass
	b[41] = p.HopLimit
	b[42] = p.SL<<4 | boolBit(p.SubnetLocal)<<3
	b[43] = p.AckTimeout << 3
}

func parsePath(b []byte) (p Path) {
	b = b[:pathLen]
	p.LocalLID = binary.BigEndian.Uint16(b[0:])
	p.RemoteLID = binary.BigEndian.Uint16(b[2:])
	copy(p.LocalGID[:], b[4:])
	copy(p.RemoteGID[:], b[20:])
	flow := binary.BigEndian.Uint32(b[36:])
	p.FlowLabel = flow >> 12
	p.PacketRate = uint8(flow) & 0x3F
	p.TrafficClass = b[40]
	p.HopLimit = b[41]
	p.SL = b[42] >> 4
	p.SubnetLocal = b[42]&8 != 0
	p.AckTimeout = b[43] >> 3
	return p
}

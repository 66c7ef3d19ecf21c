package mad

import "encoding/binary"

// REPPrivateLen is the length of the private data of a REP in bytes.
const REPPrivateLen = 196

// REP accepts the connection requested by a REQ.
//
//	 0  local communication id        20  starting PSN, 24 bits
//	 4  remote communication id       24  responder resources
//	 8  local Q_Key                   25  initiator depth
//	12  local QPN, 24 bits            26  target ACK delay 5, failover 2, flow control 1
//	15  vendor id, high               27  RNR retry count 3, SRQ 1
//	16  local EECN, 24 bits           28  local CA GUID, 64 bits
//	19  vendor id, middle             36  private data
//	23  vendor id, low
type REP struct {
	LocalID, RemoteID uint32 // communication ids of the sender and of the receiver
	QKey              uint32 // 0 for connections
	QPN               uint32 // the sender's queue pair, 24 bits
	VendorID          uint32 // 24 bits, 0
	LocalEECN         uint32 // 24 bits; between softrnics see RecvBuffer
	StartingPSN       uint32 // 24 bits: PSN of the receiver's first request

	ResponderResources uint8 // reads and atomics that the sender serves at a time
	InitiatorDepth     uint8 // maximum number of outstanding reads and atomics of the sender
	TargetAckDelay     uint8 // 5 bits: the sender's delay before it acknowledges, 4.096 us * 2^n
	Failover           uint8 // 2 bits: 1 means that alternate paths are not supported
	FlowControl        bool  // the sender's acknowledgements carry end-to-end credits
	RNRRetry           uint8 // 3 bits, of the receiver's queue pair
	SRQ                bool  // the sender's queue pair has a shared receive queue
	CAGUID             uint64

	PrivateData []byte // up to REPPrivateLen
}

func (m *REP) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	putIDs(b, m.LocalID, m.RemoteID)
	binary.BigEndian.PutUint32(b[8:], m.QKey)
	putUint24(b[12:], m.QPN)
	b[15], b[19], b[23] = byte(m.VendorID>>16), byte(m.VendorID>>8), byte(m.VendorID)
	putUint24(b[16:], m.LocalEECN)
	putUint24(b[20:], m.StartingPSN)
	b[24] = m.ResponderResources
	b[25] = m.InitiatorDepth
	b[26] = m.TargetAckDelay<<3 | m.Failover&3<<1 | boolBit(m.FlowControl)
	b[27] = m.RNRRetry<<5 | boolBit(m.SRQ)<<4
	binary.BigEndian.PutUint64(b[28:], m.CAGUID)
	copy(b[36:], m.PrivateData)
}

func (m *REP) parseBody(b []byte) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	m.QKey = binary.BigEndian.Uint32(b[8:])
	m.QPN = getUint24(b[12:])
	m.VendorID = uint32(b[15])<<16 | uint32(b[19])<<8 | uint32(b[23])
	m.LocalEECN = getUint24(b[16:])
	m.StartingPSN = getUint24(b[20:])
	m.ResponderResources = b[24]
	m.InitiatorDepth = b[25]
	m.TargetAckDelay = b[26] >> 3
	m.Failover = b[26] >> 1 & 3
	m.FlowControl = b[26]&1 != 0
	m.RNRRetry = b[27] >> 5
	m.SRQ = b[27]&0x10 != 0
	m.CAGUID = binary.BigEndian.Uint64(b[28:])
	m.PrivateData = b[36:]
}

package mad

import "encoding/binary"

// A Transport is the transport service that a REQ requests.
type Transport uint8

// Transport services. The other values of the field are RD, which no adapter
// implements any more, and an extension for XRC.
const (
	TransportRC Transport = 0
	TransportUC Transport = 1
)

// REQPrivateLen is the length of the private data of a REQ in bytes, including the
// RDMA-CM header.
const REQPrivateLen = 92

// REQ requests a connection. Its sender is the active side, its receiver the
// passive side.
//
//	 0  local communication id        43  remote response timeout 5, transport 2, flow control 1
//	 5  vendor id, 24 bits            44  starting PSN, 24 bits
//	 8  service id, 64 bits           47  local response timeout 5, retry count 3
//	16  local CA GUID, 64 bits        48  P_Key
//	28  local Q_Key                   50  path MTU 4, RDC 1, RNR retry count 3
//	32  local QPN, 24 bits            51  max CM retries 4, SRQ 1, extended transport 3
//	35  responder resources           52  primary path
//	36  local EECN, 24 bits           96  alternate path
//	39  initiator depth              140  private data
//	40  remote EECN, 24 bits
type REQ struct {
	LocalID   uint32 // the sender's communication id
	VendorID  uint32 // 24 bits, of enhanced connection establishment; 0
	ServiceID ServiceID
	CAGUID    uint64 // of the sender's adapter
	QKey      uint32 // 0 for connections
	QPN       uint32 // the sender's queue pair, 24 bits

	ResponderResources uint8 // reads and atomics that the sender serves at a time
	InitiatorDepth     uint8 // maximum number of outstanding reads and atomics of the sender

	// LocalEECN and RemoteEECN, 24 bits, are numbers of end-to-end contexts,
	// which only reliable datagrams have. Between softrnics LocalEECN carries
	// the receive buffer of the sender's socket, see RecvBuffer.
	LocalEECN, RemoteEECN uint32

	RemoteResponseTimeout uint8 // 5 bits: maximum time until the receiver's reply, 4.096 us * 2^n
	LocalResponseTimeout  uint8 // 5 bits: maximum time until the sender's reply to a REP
	MaxCMRetries          uint8 // 4 bits: maximum retransmissions of a message

	Transport         Transport // 2 bits
	ExtendedTransport uint8     // 3 bits: 1 is XRC, if Transport is 3
	FlowControl       bool      // the sender's acknowledgements carry end-to-end credits
	RDC               bool      // reliable datagrams only
	SRQ               bool      // the sender's queue pair has a shared receive queue

	StartingPSN uint32 // 24 bits: PSN of the receiver's first request
	RetryCount  uint8  // 3 bits, of the receiver's queue pair
	RNRRetry    uint8  // 3 bits, of the receiver's queue pair
	PKey        uint16
	MTU         uint8 // 4 bits, path MTU in verbs' encoding

	Primary, Alternate Path

	PrivateData []byte // up to REQPrivateLen
}

func (m *REQ) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	binary.BigEndian.PutUint32(b[0:], m.LocalID)
	putUint24(b[5:], m.VendorID)
	binary.BigEndian.PutUint64(b[8:], uint64(m.ServiceID))
	binary.BigEndian.PutUint64(b[16:], m.CAGUID)
	binary.BigEndian.PutUint32(b[28:], m.QKey)
	putUint24(b[32:], m.QPN)
	b[35] = m.ResponderResources
	putUint24(b[36:], m.LocalEECN)
	b[39] = m.InitiatorDepth
	putUint24(b[40:], m.RemoteEECN)
	b[43] = m.RemoteResponseTimeout<<3 | uint8(m.Transport&3)<<1 | boolBit(m.FlowControl)
	putUint24(b[44:], m.StartingPSN)
	b[47] = m.LocalResponseTimeout<<3 | m.RetryCount&7
	binary.BigEndian.PutUint16(b[48:], m.PKey)
	b[50] = m.MTU<<4 | boolBit(m.RDC)<<3 | m.RNRRetry&7
	b[51] = m.MaxCMRetries<<4 | boolBit(m.SRQ)<<3 | m.ExtendedTransport&7
	m.Primary.encode(b[52:])
	m.Alternate.encode(b[96:])
	copy(b[140:], m.PrivateData)
}

func (m *REQ) parseBody(b []byte) {
	b = b[:BodyLen]
	m.LocalID = binary.BigEndian.Uint32(b[0:])
	m.VendorID = getUint24(b[5:])
	m.ServiceID = ServiceID(binary.BigEndian.Uint64(b[8:]))
	m.CAGUID = binary.BigEndian.Uint64(b[16:])
	m.QKey = binary.BigEndian.Uint32(b[28:])
	m.QPN = getUint24(b[32:])
	m.ResponderResources = b[35]
	m.LocalEECN = getUint24(b[36:])
	m.InitiatorDepth = b[39]
	m.RemoteEECN = getUint24(b[40:])
	m.RemoteResponseTimeout = b[43] >> 3
	m.Transport = Transport(b[43] >> 1 & 3)
	m.FlowControl = b[43]&1 != 0
	m.StartingPSN = getUint24(b[44:])
	m.LocalResponseTimeout = b[47] >> 3
	m.RetryCount = b[47] & 7
	m.PKey = binary.BigEndian.Uint16(b[48:])
	m.MTU = b[50] >> 4
	m.RDC = b[50]&8 != 0
	m.RNRRetry = b[50] & 7
	m.MaxCMRetries = b[51] >> 4
	m.SRQ = b[51]&8 != 0
	m.ExtendedTransport = b[51] & 7
	m.Primary = parsePath(b[52:])
	m.Alternate = parsePath(b[96:])
	m.PrivateData = b[140:]
}

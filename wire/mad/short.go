package mad

// Private data of the short messages, in bytes.
const (
	RTUPrivateLen  = 224
	DREQPrivateLen = 220
	DREPPrivateLen = 224
	MRAPrivateLen  = 222
)

// RTU ("ready to use") acknowledges a REP to the passive side.
//
//	0  local communication id    8  private data
//	4  remote communication id
type RTU struct {
	LocalID, RemoteID uint32
	PrivateData       []byte // up to RTUPrivateLen
}

func (m *RTU) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	putIDs(b, m.LocalID, m.RemoteID)
	copy(b[8:], m.PrivateData)
}

func (m *RTU) parseBody(b []byte) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	m.PrivateData = b[8:]
}

// DREQ requests to disconnect a connection.
//
//	0  local communication id     8  remote QPN, 24 bits
//	4  remote communication id   12  private data
type DREQ struct {
	LocalID, RemoteID uint32
	RemoteQPN         uint32 // the receiver's queue pair; Linux ignores a DREQ with another one
	PrivateData       []byte // up to DREQPrivateLen
}

func (m *DREQ) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	putIDs(b, m.LocalID, m.RemoteID)
	putUint24(b[8:], m.RemoteQPN)
	copy(b[12:], m.PrivateData)
}

func (m *DREQ) parseBody(b []byte) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	m.RemoteQPN = getUint24(b[8:])
	m.PrivateData = b[12:]
}

// DREP is the reply to a DREQ. Its layout is that of RTU.
type DREP struct {
	LocalID, RemoteID uint32
	PrivateData       []byte // up to DREPPrivateLen
}

func (m *DREP) putBody(b []byte) { (*RTU)(m).putBody(b) }

func (m *DREP) parseBody(b []byte) { (*RTU)(m).parseBody(b) }

// MessageKind is the kind of the message to which an MRA or a REJ replies.
type MessageKind uint8

// Kinds of messages to which MRA and REJ reply.
const (
	KindREQ   MessageKind = 0
	KindREP   MessageKind = 1
	KindOther MessageKind = 2 // MRA: LAP; REJ: no particular message
)

// MRA ("message receipt acknowledgement") announces that the reply will take longer
// than the timeout in the message.
//
//	0  local communication id    8  message 2 bits
//	4  remote communication id   9  service timeout 5 bits
//	                            10  private data
type MRA struct {
	LocalID, RemoteID uint32
	Message           MessageKind // 2 bits
	ServiceTimeout    uint8       // 5 bits: 4.096 us * 2^ServiceTimeout
	PrivateData       []byte
}

func (m *MRA) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	putIDs(b, m.LocalID, m.RemoteID)
	b[8] = uint8(m.Message) << 6
	b[9] = m.ServiceTimeout << 3
	copy(b[10:], m.PrivateData)
}

func (m *MRA) parseBody(b []byte) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	m.Message = MessageKind(b[8] >> 6)
	m.ServiceTimeout = b[9] >> 3
	m.PrivateData = b[10:]
}

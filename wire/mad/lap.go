package mad

import "encoding/binary"

// LAP requests an alternate path. The only supported reply is "not supported", so
// only the fields that it needs are decoded.
type LAP struct {
	LocalID, RemoteID uint32
}

func (m *LAP) parseBody(b []byte) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
}

// An APStatus is the status in the reply to a LAP (enum ib_cm_apr_status).
type APStatus uint8

// Status codes for implementations without alternate paths.
const (
	APRInvalidCommID APStatus = 1
	APRUnsupported   APStatus = 2
)

// APR is the reply to a LAP.
//
//	0  local communication id     8  length of additional information
//	4  remote communication id    9  status
type APR struct {
	LocalID, RemoteID uint32
	Status            APStatus
}

func (m *APR) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	putIDs(b, m.LocalID, m.RemoteID)
	b[9] = uint8(m.Status)
}

func (m *APR) parseBody(b []byte) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	m.Status = APStatus(b[9])
}

// putBody omits the requested path.
func (m *LAP) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	binary.BigEndian.PutUint32(b[0:], m.LocalID)
	binary.BigEndian.PutUint32(b[4:], m.RemoteID)
}

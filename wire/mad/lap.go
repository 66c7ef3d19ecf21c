package mad

import "encoding/binary"

// LAP asks for an alternate path. Nobody answers it with more than "not
// supported" here, so only what such an answer needs is read.
type LAP struct {
	LocalID, RemoteID uint32
}

// ParseLAP reads the body of a LAP from b, which must hold BodyLen bytes.
func ParseLAP(b []byte) (m LAP) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	return m
}

// APStatus is the answer to a LAP (enum ib_cm_apr_status).
type APStatus uint8

// Answers that can be given without alternate paths.
const (
	APRInvalidCommID APStatus = 1
	APRUnsupported   APStatus = 2
)

// APR answers a LAP.
//
//	0  local communication id     8  length of additional information
//	4  remote communication id    9  status
type APR struct {
	LocalID, RemoteID uint32
	Status            APStatus
}

// Put implements Message.
func (m *APR) Put(b []byte) {
	b = b[:BodyLen]
	clear(b)
	putIDs(b, m.LocalID, m.RemoteID)
	b[9] = uint8(m.Status)
}

// ParseAPR reads the body of an APR from b, which must hold BodyLen bytes.
func ParseAPR(b []byte) (m APR) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	m.Status = APStatus(b[9])
	return m
}

// Put implements Message. The path that is asked for is left out.
func (m *LAP) Put(b []byte) {
	b = b[:BodyLen]
	clear(b)
	binary.BigEndian.PutUint32(b[0:], m.LocalID)
	binary.BigEndian.PutUint32(b[4:], m.RemoteID)
}

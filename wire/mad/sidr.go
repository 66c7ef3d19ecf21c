package mad

import (
	"encoding/binary"
	"strconv"
)

// Private data in bytes; that of a SIDR_REQ includes the RDMA-CM header.
const (
	SIDRReqPrivateLen = 216
	SIDRRepPrivateLen = 136
	sidrInfoLen       = 72
)

// SIDRReq ("service id resolution request") requests the datagram queue pair of a
// service.
//
//	0  request id    8  service id, 64 bits
//	4  P_Key        16  private data
type SIDRReq struct {
	RequestID uint32
	PKey      uint16
	ServiceID ServiceID

	PrivateData []byte // up to SIDRReqPrivateLen
}

func (m *SIDRReq) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	binary.BigEndian.PutUint32(b[0:], m.RequestID)
	binary.BigEndian.PutUint16(b[4:], m.PKey)
	binary.BigEndian.PutUint64(b[8:], uint64(m.ServiceID))
	copy(b[16:], m.PrivateData)
}

func (m *SIDRReq) parseBody(b []byte) {
	b = b[:BodyLen]
	m.RequestID = binary.BigEndian.Uint32(b[0:])
	m.PKey = binary.BigEndian.Uint16(b[4:])
	m.ServiceID = ServiceID(binary.BigEndian.Uint64(b[8:]))
	m.PrivateData = b[16:]
}

// SIDRRep is the reply to a SIDR_REQ.
//
//	0  request id                                  12  service id, 64 bits
//	4  status                                      20  Q_Key
//	5  length of additional information            24  additional information
//	6  vendor id, high and middle                  96  private data
//	8  QPN, 24 bits; then vendor id, low
type SIDRRep struct {
	RequestID uint32
	Status    SIDRStatus
	QPN       uint32 // 24 bits
	VendorID  uint32 // 24 bits, 0
	ServiceID ServiceID
	QKey      uint32
	Info      []byte

	PrivateData []byte // up to SIDRRepPrivateLen
}

func (m *SIDRRep) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	binary.BigEndian.PutUint32(b[0:], m.RequestID)
	b[4] = uint8(m.Status)
	b[5] = uint8(copy(b[24:24+sidrInfoLen], m.Info))
	binary.BigEndian.PutUint16(b[6:], uint16(m.VendorID>>8))
	putUint24(b[8:], m.QPN)
	b[11] = uint8(m.VendorID)
	binary.BigEndian.PutUint64(b[12:], uint64(m.ServiceID))
	binary.BigEndian.PutUint32(b[20:], m.QKey)
	copy(b[96:], m.PrivateData)
}

func (m *SIDRRep) parseBody(b []byte) {
	b = b[:BodyLen]
	m.RequestID = binary.BigEndian.Uint32(b[0:])
	m.Status = SIDRStatus(b[4])
	m.VendorID = uint32(binary.BigEndian.Uint16(b[6:]))<<8 | uint32(b[11])
	m.QPN = getUint24(b[8:])
	m.ServiceID = ServiceID(binary.BigEndian.Uint64(b[12:]))
	m.QKey = binary.BigEndian.Uint32(b[20:])
	m.Info = b[24 : 24+min(int(b[5]), sidrInfoLen)]
	m.PrivateData = b[96:]
}

// SIDRStatus is the status in the reply to a SIDR_REQ (enum ib_cm_sidr_status).
type SIDRStatus uint8

// Statuses. Package cm sends SIDRSuccess, SIDRUnsupported and SIDRReject; the others
// come from other implementations only.
const (
	SIDRSuccess SIDRStatus = iota
	SIDRUnsupported
	SIDRReject
	SIDRNoQP
	SIDRRedirect
	SIDRUnsupportedVersion
)

var sidrStatuses = [...]struct{ name, meaning string }{
	SIDRSuccess:            {"success", "the response has the queue pair that serves the port"},
	SIDRUnsupported:        {"unsupported", "the peer serves no datagrams on this port"},
	SIDRReject:             {"rejected", "the program at the peer rejected the request; its private data may have the reason"},
	SIDRNoQP:               {"no QP", "the peer has no queue pair for the service"},
	SIDRRedirect:           {"redirected", "the peer redirects the request to another address"},
	SIDRUnsupportedVersion: {"unsupported version", "the peer has another version of connection management"},
}

// String returns the name of the status, for example "no QP".
func (s SIDRStatus) String() string {
	if int(s) < len(sidrStatuses) {
		return sidrStatuses[s].name
	}
	return "SIDR status " + strconv.Itoa(int(s))
}

// Description describes the status to the requesting side.
func (s SIDRStatus) Description() string {
	if int(s) < len(sidrStatuses) {
		return sidrStatuses[s].meaning
	}
	return "a status that the standard does not know"
}

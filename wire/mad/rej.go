package mad

import (
	"encoding/binary"
	"strconv"
)

// Lengths in bytes.
const (
	REJPrivateLen = 148
	REJInfoLen    = 72
)

// REJ rejects a connection request.
//
//	0  local communication id       9  length of additional information, 7 bits
//	4  remote communication id     10  reason
//	8  message rejected, 2 bits    12  additional reject information
//	                               84  private data
type REJ struct {
	LocalID  uint32 // 0 if the sender has none
	RemoteID uint32 // 0 if the reason is RejTimeout and the receiver's is not known
	Which    Which  // 2 bits
	Reason   Reason
	Info     []byte // up to REJInfoLen; its meaning depends on the reason

	PrivateData []byte // up to REJPrivateLen
}

// Put implements Message.
func (m *REJ) Put(b []byte) {
	b = b[:BodyLen]
	clear(b)
	putIDs(b, m.LocalID, m.RemoteID)
	b[8] = uint8(m.Which) << 6
	n := copy(b[12:12+REJInfoLen], m.Info)
	b[9] = uint8(n) << 1
	binary.BigEndian.PutUint16(b[10:], uint16(m.Reason))
	copy(b[84:], m.PrivateData)
}

// ParseREJ reads the body of a REJ from b, which must hold BodyLen bytes. An
// announced length of the information beyond its field is cut to the field.
func ParseREJ(b []byte) (m REJ) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	m.Which = Which(b[8] >> 6)
	m.Info = b[12 : 12+min(int(b[9]>>1), REJInfoLen)]
	m.Reason = Reason(binary.BigEndian.Uint16(b[10:]))
	m.PrivateData = b[84:]
	return m
}

// A Reason is the reason of a REJ (enum ib_cm_rej_reason).
type Reason uint16

// Reasons. Package cm sends RejNoResources, RejTimeout, RejUnsupported,
// RejInvalidCommID, RejInvalidServiceID, RejInvalidTransport, RejStaleConn,
// RejInvalidGID, RejInvalidMTU, RejNoRespResources and RejConsumer. The others come
// from other implementations only: they are about alternate paths, redirection,
// reliable datagrams and fields of InfiniBand paths, which cm does not check.
const (
	RejNoQP                Reason = 1
	RejNoEEC               Reason = 2
	RejNoResources         Reason = 3
	RejTimeout             Reason = 4
	RejUnsupported         Reason = 5
	RejInvalidCommID       Reason = 6
	RejInvalidCommInstance Reason = 7
	RejInvalidServiceID    Reason = 8
	RejInvalidTransport    Reason = 9
	RejStaleConn           Reason = 10
	RejRDCNotExist         Reason = 11
	RejInvalidGID          Reason = 12
	RejInvalidLID          Reason = 13
	RejInvalidSL           Reason = 14
	RejInvalidTrafficClass Reason = 15
	RejInvalidHopLimit     Reason = 16
	RejInvalidPacketRate   Reason = 17
	RejInvalidAltGID       Reason = 18
	RejInvalidAltLID       Reason = 19
	RejInvalidAltSL        Reason = 20
	RejInvalidAltTraffic   Reason = 21
	RejInvalidAltHopLimit  Reason = 22
	RejInvalidAltRate      Reason = 23
	RejPortCMRedirect      Reason = 24
	RejPortRedirect        Reason = 25
	RejInvalidMTU          Reason = 26
	RejNoRespResources     Reason = 27
	RejConsumer            Reason = 28
	RejInvalidRNRRetry     Reason = 29
	RejDuplicateCommID     Reason = 30
	RejInvalidClassVersion Reason = 31
	RejInvalidFlowLabel    Reason = 32
	RejInvalidAltFlowLabel Reason = 33
	RejServiceHandoff      Reason = 34
	RejVendorOption        Reason = 35
)

var reasons = [...]struct{ name, meaning string }{
	RejNoQP:                {"no QP", "the peer has no queue pair left"},
	RejNoEEC:               {"no EEC", "the peer has no end-to-end context left (reliable datagrams only)"},
	RejNoResources:         {"no resources", "the peer has no room for the connection, for instance because its backlog is full; try again later"},
	RejTimeout:             {"timeout", "the peer gave up waiting"},
	RejUnsupported:         {"unsupported", "the peer does not support what the message asks for"},
	RejInvalidCommID:       {"invalid communication id", "the peer does not know, or does not know any more, the connection that the message belongs to"},
	RejInvalidCommInstance: {"invalid communication instance", "the message does not fit the state that the connection has at the peer"},
	RejInvalidServiceID:    {"invalid service id", "nobody listens on that port at the peer"},
	RejInvalidTransport:    {"invalid transport type", "the service is not offered on this transport; RC or UC is the other choice"},
	RejStaleConn:           {"stale connection", "the peer still has an earlier connection of this queue pair or communication id; it is ended now, try again with a new queue pair"},
	RejRDCNotExist:         {"RDC does not exist", "there is no reliable datagram channel"},
	RejInvalidGID:          {"invalid GID", "the GID of the primary path is not one that the peer accepts"},
	RejInvalidLID:          {"invalid LID", "the LID of the primary path is not one that the peer accepts"},
	RejInvalidSL:           {"invalid SL", "the service level of the primary path is not one that the peer accepts"},
	RejInvalidTrafficClass: {"invalid traffic class", "the traffic class of the primary path is not one that the peer accepts"},
	RejInvalidHopLimit:     {"invalid hop limit", "the hop limit of the primary path is not one that the peer accepts"},
	RejInvalidPacketRate:   {"invalid packet rate", "the packet rate of the primary path is not one that the peer accepts"},
	RejInvalidAltGID:       {"invalid alternate GID", "the GID of the alternate path is not one that the peer accepts"},
	RejInvalidAltLID:       {"invalid alternate LID", "the LID of the alternate path is not one that the peer accepts"},
	RejInvalidAltSL:        {"invalid alternate SL", "the service level of the alternate path is not one that the peer accepts"},
	RejInvalidAltTraffic:   {"invalid alternate traffic class", "the traffic class of the alternate path is not one that the peer accepts"},
	RejInvalidAltHopLimit:  {"invalid alternate hop limit", "the hop limit of the alternate path is not one that the peer accepts"},
	RejInvalidAltRate:      {"invalid alternate packet rate", "the packet rate of the alternate path is not one that the peer accepts"},
	RejPortCMRedirect:      {"port and CM redirection", "the peer wants the connection on another port, through another connection manager"},
	RejPortRedirect:        {"port redirection", "the peer wants the connection on another port"},
	RejInvalidMTU:          {"invalid path MTU", "the path MTU is larger than the peer's; ask for a smaller one"},
	RejNoRespResources:     {"insufficient responder resources", "fewer reads and atomics are served at a time than the other side insists on"},
	RejConsumer:            {"consumer reject", "the program at the peer refused; its private data may say why"},
	RejInvalidRNRRetry:     {"invalid RNR retry count", "the RNR retry count is not one that the peer accepts"},
	RejDuplicateCommID:     {"duplicate local communication id", "the communication id is in use already"},
	RejInvalidClassVersion: {"invalid class version", "the peer speaks another version of connection management"},
	RejInvalidFlowLabel:    {"invalid flow label", "the flow label of the primary path is not one that the peer accepts"},
	RejInvalidAltFlowLabel: {"invalid alternate flow label", "the flow label of the alternate path is not one that the peer accepts"},
	RejServiceHandoff:      {"service handoff", "the service moved to another adapter"},
	RejVendorOption:        {"vendor option not supported", "the peer does not support an option of enhanced connection establishment"},
}

// String returns the name of the reason, for example "stale connection".
func (r Reason) String() string {
	if int(r) < len(reasons) && r > 0 {
		return reasons[r].name
	}
	return "reason " + strconv.Itoa(int(r))
}

// Description returns an explanation of the reason for the rejected side.
func (r Reason) Description() string {
	if int(r) < len(reasons) && r > 0 {
		return reasons[r].meaning
	}
	return "a reason that the standard does not know"
}

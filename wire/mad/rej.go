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
	LocalID  uint32      // 0 if the sender has none
	RemoteID uint32      // 0 if the reason is RejTimeout and the receiver's is not known
	Message  MessageKind // 2 bits
	Reason   Reason
	Info     []byte // up to REJInfoLen; its meaning depends on the reason

	PrivateData []byte // up to REJPrivateLen
}

func (m *REJ) putBody(b []byte) {
	b = b[:BodyLen]
	clear(b)
	putIDs(b, m.LocalID, m.RemoteID)
	b[8] = uint8(m.Message) << 6
	n := copy(b[12:12+REJInfoLen], m.Info)
	b[9] = uint8(n) << 1
	binary.BigEndian.PutUint16(b[10:], uint16(m.Reason))
	copy(b[84:], m.PrivateData)
}

func (m *REJ) parseBody(b []byte) {
	b = b[:BodyLen]
	m.LocalID, m.RemoteID = getIDs(b)
	m.Message = MessageKind(b[8] >> 6)
	m.Info = b[12 : 12+min(int(b[9]>>1), REJInfoLen)]
	m.Reason = Reason(binary.BigEndian.Uint16(b[10:]))
	m.PrivateData = b[84:]
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
	RejNoResources:         {"no resources", "the peer has no resources for the connection, for instance because its backlog is full; retry later"},
	RejTimeout:             {"timeout", "the peer timed out"},
	RejUnsupported:         {"unsupported", "the peer does not support the request"},
	RejInvalidCommID:       {"invalid communication id", "the peer does not have the connection of the message, or no longer has it"},
	RejInvalidCommInstance: {"invalid communication instance", "the message is not valid in the state of the connection at the peer"},
	RejInvalidServiceID:    {"invalid service id", "the peer does not listen on this port"},
	RejInvalidTransport:    {"invalid transport type", "the service does not exist on this transport; the alternatives are RC and UC"},
	RejStaleConn:           {"stale connection", "the peer had an earlier connection of this queue pair or communication id, which is now closed; retry with a new queue pair"},
	RejRDCNotExist:         {"RDC does not exist", "there is no reliable datagram channel"},
	RejInvalidGID:          {"invalid GID", "the peer does not accept the GID of the primary path"},
	RejInvalidLID:          {"invalid LID", "the peer does not accept the LID of the primary path"},
	RejInvalidSL:           {"invalid SL", "the peer does not accept the service level of the primary path"},
	RejInvalidTrafficClass: {"invalid traffic class", "the peer does not accept the traffic class of the primary path"},
	RejInvalidHopLimit:     {"invalid hop limit", "the peer does not accept the hop limit of the primary path"},
	RejInvalidPacketRate:   {"invalid packet rate", "the peer does not accept the packet rate of the primary path"},
	RejInvalidAltGID:       {"invalid alternate GID", "the peer does not accept the GID of the alternate path"},
	RejInvalidAltLID:       {"invalid alternate LID", "the peer does not accept the LID of the alternate path"},
	RejInvalidAltSL:        {"invalid alternate SL", "the peer does not accept the service level of the alternate path"},
	RejInvalidAltTraffic:   {"invalid alternate traffic class", "the peer does not accept the traffic class of the alternate path"},
	RejInvalidAltHopLimit:  {"invalid alternate hop limit", "the peer does not accept the hop limit of the alternate path"},
	RejInvalidAltRate:      {"invalid alternate packet rate", "the peer does not accept the packet rate of the alternate path"},
	RejPortCMRedirect:      {"port and CM redirection", "the peer redirects the connection to another port and connection manager"},
	RejPortRedirect:        {"port redirection", "the peer redirects the connection to another port"},
	RejInvalidMTU:          {"invalid path MTU", "the path MTU is larger than the peer's; request a smaller one"},
	RejNoRespResources:     {"insufficient responder resources", "the other side requires more concurrent reads and atomics than are served"},
	RejConsumer:            {"consumer reject", "the program at the peer rejected the request; its private data may have the reason"},
	RejInvalidRNRRetry:     {"invalid RNR retry count", "the peer does not accept the RNR retry count"},
	RejDuplicateCommID:     {"duplicate local communication id", "the communication id is in use already"},
	RejInvalidClassVersion: {"invalid class version", "the peer has another version of connection management"},
	RejInvalidFlowLabel:    {"invalid flow label", "the peer does not accept the flow label of the primary path"},
	RejInvalidAltFlowLabel: {"invalid alternate flow label", "the peer does not accept the flow label of the alternate path"},
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

package protocol

import (
	"net/netip"
	"strconv"

	"github.com/softrnic/softrnic/wire/mad"
)

// An EventKind identifies the kind of an Event.
type EventKind uint8

// Kinds of events.
const (
	EventRequest      EventKind = iota + 1 // passive: a REQ arrived; reply with Accept or Reject
	EventWithdrawn                         // passive: the request ended before its reply
	EventReply                             // active: the REP arrived; reply with Ready or Reject
	EventEstablished                       // passive: the RTU, or its equivalent, arrived
	EventRejected                          // the peer sent a REJ
	EventUnreachable                       // no reply after all retransmissions
	EventDisconnected                      // the peer disconnected; its DREP is sent
	EventReleased                          // Disconnect is complete
	EventSIDRRequest                       // a SIDR_REQ arrived; reply with ReplySIDR
	EventSIDRReply                         // the SIDR_REP arrived
)

var eventNames = [...]string{
	EventRequest: "request", EventWithdrawn: "withdrawn", EventReply: "reply", EventEstablished: "established",
	EventRejected: "rejected", EventUnreachable: "unreachable", EventDisconnected: "disconnected",
	EventReleased: "released", EventSIDRRequest: "SIDR request", EventSIDRReply: "SIDR reply",
}

// String returns the name of the event kind.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && k > 0 {
		return eventNames[k]
	}
	return "event " + strconv.Itoa(int(k))
}

// An Event reports a change of a connection or request to the application. Its slices are views
// of the datagram passed to Handle, which must remain unchanged until the event is consumed.
type Event struct {
	Kind EventKind
	ID   uint32         // of the connection or the SIDR request
	Peer netip.AddrPort // address of the peer's adapter

	REQ     mad.REQ       // EventRequest
	REP     mad.REP       // EventReply
	SIDRReq mad.SIDRReq   // EventSIDRRequest
	SIDRRep mad.SIDRRep   // EventSIDRReply
	CMA     mad.CMAHeader // EventRequest, EventSIDRRequest: if the port space has the header; for SDP from the Hello

	Reason  mad.Reason // EventRejected; EventDisconnected after a REJ or a newer connection
	Info    []byte     // EventRejected
	Private []byte     // of the message that caused the event, without RDMA-CM's header

	// Err is set with EventUnreachable if messages to the peer are refused; nil if the peer is
	// silent.
	Err error

	// TimedOut is set with EventReleased if the peer never sent the DREP.
	TimedOut bool
}

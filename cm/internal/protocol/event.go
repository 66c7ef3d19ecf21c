package protocol

import (
	"net/netip"
	"strconv"

	"github.com/softrnic/softrnic/wire/mad"
)

// EventKind is what an Event reports.
type EventKind uint8

// Events.
const (
	EventRequest      EventKind = iota + 1 // passive: a REQ came; Accept or Reject
	EventWithdrawn                         // passive: the request ended before it was answered
	EventReply                             // active: the REP came; Ready or Reject
	EventEstablished                       // passive: the RTU came, or what stands for it
	EventRejected                          // the peer refused
	EventUnreachable                       // the peer did not answer, however often it was asked
	EventDisconnected                      // the peer ended the connection; it has its DREP
	EventReleased                          // what Disconnect began is done
	EventSIDRRequest                       // a SIDR_REQ came; Reply
	EventSIDRReply                         // the SIDR_REP came
)

var eventNames = [...]string{
	EventRequest: "request", EventWithdrawn: "withdrawn", EventReply: "reply", EventEstablished: "established",
	EventRejected: "rejected", EventUnreachable: "unreachable", EventDisconnected: "disconnected",
	EventReleased: "released", EventSIDRRequest: "SIDR request", EventSIDRReply: "SIDR reply",
}

// String is the event in a word or two.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && k > 0 {
		return eventNames[k]
	}
	return "event " + strconv.Itoa(int(k))
}

// Event is something that the program has to know. Slices in it are views of
// the datagram that was handed to Handle, which must not change before the
// events are taken.
type Event struct {
	Kind EventKind
	ID   uint32         // the connection or the SIDR request
	Peer netip.AddrPort // its adapter

	REQ     mad.REQ       // EventRequest
	REP     mad.REP       // EventReply
	SIDRReq mad.SIDRReq   // EventSIDRRequest
	SIDRRep mad.SIDRRep   // EventSIDRReply
	CMA     mad.CMAHeader // EventRequest, EventSIDRRequest: if the port space has it; of SDP, from the Hello

	Reason  mad.Reason // EventRejected; EventDisconnected if by a REJ or a newer connection
	Info    []byte     // EventRejected
	Private []byte     // of the message behind the event, without RDMA-CM's header

	// Err, of EventUnreachable, is why messages to the peer are refused; nil if it is silent.
	Err error

	// TimedOut, of EventReleased, tells that the peer never confirmed.
	TimedOut bool
}

package verbs

// EventType is the kind of an asynchronous event (enum ibv_event_type).
type EventType uint8

// The types of events that devices of this module raise. EventPortActive, EventPortErr
// and EventGIDChange follow the interface with the device's address, on Linux only.
const (
	EventCQErr            EventType = 0
	EventQPFatal          EventType = 1
	EventQPReqErr         EventType = 2
	EventQPAccessErr      EventType = 3
	EventCommEst          EventType = 4
	EventSQDrained        EventType = 5
	EventDeviceFatal      EventType = 8
	EventPortActive       EventType = 9
	EventPortErr          EventType = 10
	EventSRQLimitReached  EventType = 15
	EventQPLastWQEReached EventType = 16
	EventGIDChange        EventType = 18
)

// The types of events that devices of this module never raise, because the objects or
// features do not exist on RoCE or in this module. The table in docs/verbs.md has the
// reason for each.
const (
	EventPathMig          EventType = 6
	EventPathMigErr       EventType = 7
	EventLIDChange        EventType = 11
	EventPKeyChange       EventType = 12
	EventSMChange         EventType = 13
	EventSRQErr           EventType = 14
	EventClientReregister EventType = 17
	EventWQFatal          EventType = 19
)

// An AsyncEvent is an asynchronous event of a device (struct ibv_async_event). The
// field of the object that the type concerns is set.
type AsyncEvent struct {
	Type    EventType
	QP      QP
	CQ      CQ
	SRQ     SRQ
	Port    int
	Failure *Failure // details of errors; may be nil
}

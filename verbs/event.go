package verbs

// EventType is the kind of an asynchronous event (enum ibv_event_type).
type EventType uint8

const (
	EventCQErr EventType = iota
	EventQPFatal
	EventQPReqErr
	EventQPAccessErr
	EventCommEst
	EventSQDrained
	EventPathMig
	EventPathMigErr
	EventDeviceFatal
	EventPortActive
	EventPortErr
	EventLIDChange
	EventPKeyChange
	EventSMChange
	EventSRQErr
	EventSRQLimitReached
	EventQPLastWQEReached
	EventClientReregister
	EventGIDChange
	EventWQFatal
)

// AsyncEvent is something that happened to an object of a device (struct
// ibv_async_event). The field that the type speaks of is set.
type AsyncEvent struct {
	Type EventType
	QP   QP
	CQ   CQ
	SRQ  SRQ
	Port int
	Why  *Failure // for errors, what happened; may be nil
}

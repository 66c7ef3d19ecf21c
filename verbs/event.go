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

var eventTexts = [...]valueText{
	EventCQErr: {"CQ_ERR",
		"a completion queue overran and lost completions; it can only be closed, and its queue pairs enter the error state; create queues with an entry for every request that may be outstanding"},
	EventQPFatal: {"QP_FATAL",
		"the adapter failed to write a completion, or failed otherwise, and the queue pair is in the error state; reset or close it"},
	EventQPReqErr: {"QP_REQ_ERR",
		"the peer sent a request that is invalid for the transport, and the queue pair is in the error state; the state of the two queue pairs differs, or the peer is faulty"},
	EventQPAccessErr: {"QP_ACCESS_ERR",
		"the peer accessed memory without permission, and the queue pair is in the error state; check the key, range and access flags that the peer has"},
	EventCommEst: {"COMM_EST",
		"the first packet arrived at a queue pair in StateRTR: the peer has established the connection, even if its last handshake message was lost"},
	EventSQDrained: {"SQ_DRAINED",
		"the send queue is drained after a transition to StateSQD; attributes may be modified"},
	EventPathMig: {"PATH_MIG",
		"the connection migrated to its alternate path"},
	EventPathMigErr: {"PATH_MIG_ERR",
		"the connection failed to migrate to its alternate path"},
	EventDeviceFatal: {"DEVICE_FATAL",
		"the device failed with all its objects; close it and open it again"},
	EventPortActive: {"PORT_ACTIVE",
		"the port is up and carries traffic"},
	EventPortErr: {"PORT_ERR",
		"the port is down; its connections time out unless it comes up again"},
	EventLIDChange: {"LID_CHANGE",
		"the local identifier of the port changed (InfiniBand links only)"},
	EventPKeyChange: {"PKEY_CHANGE",
		"the table of partition keys of the port changed"},
	EventSMChange: {"SM_CHANGE",
		"the subnet manager changed (InfiniBand links only)"},
	EventSRQErr: {"SRQ_ERR",
		"a shared receive queue failed and accepts no more receives; its queue pairs fail as well"},
	EventSRQLimitReached: {"SRQ_LIMIT_REACHED",
		"a shared receive queue has fewer receives than its limit; post more and set the limit again, because the event is raised once"},
	EventQPLastWQEReached: {"QP_LAST_WQE_REACHED",
		"a queue pair in the error state consumes no more receives of its shared receive queue; all its receive completions are queued, and it may be closed"},
	EventClientReregister: {"CLIENT_REREGISTER",
		"the subnet manager requests that multicast groups are joined and services registered again (InfiniBand links only)"},
	EventGIDChange: {"GID_CHANGE",
		"the table of GIDs of the port changed; addresses known to peers may be stale"},
	EventWQFatal: {"WQ_FATAL",
		"a receive work queue without a queue pair failed (receive-side scaling only)"},
}

// String returns the name of the constant in libibverbs without IBV_EVENT_, for
// example "SRQ_LIMIT_REACHED".
func (t EventType) String() string { return lookupText(eventTexts[:], t, "EventType").name }

func (t EventType) descriptionText() string {
	return lookupText(eventTexts[:], t, "EventType").description
}

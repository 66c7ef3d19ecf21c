package verbs

var eventTexts = [...]valueText{
	EventCQErr: {"CQ_ERR",
		"a completion queue overran and lost completions; it can only be destroyed, and its queue pairs go to the error state; make queues as deep as all requests that can be outstanding on them"},
	EventQPFatal: {"QP_FATAL",
		"the adapter could not write a completion or failed in another way, and the queue pair is in the error state; reset or destroy it"},
	EventQPReqErr: {"QP_REQ_ERR",
		"the peer sent a request that is invalid for the transport, and the queue pair is in the error state; the two ends are out of step or the peer is faulty"},
	EventQPAccessErr: {"QP_ACCESS_ERR",
		"the peer tried to reach memory that it may not, and the queue pair is in the error state; check the key, range and access flags that it was given"},
	EventCommEst: {"COMM_EST",
		"the first packet arrived on a queue pair in StateRTR: the peer considers the connection established, even if its last handshake message was lost"},
	EventSQDrained: {"SQ_DRAINED",
		"the send queue stands still after a change to StateSQD; attributes may be changed now"},
	EventPathMig: {"PATH_MIG",
		"the connection moved to its alternate path"},
	EventPathMigErr: {"PATH_MIG_ERR",
		"the connection could not move to its alternate path"},
	EventDeviceFatal: {"DEVICE_FATAL",
		"the device failed and nothing on it works any more; close it and open it anew"},
	EventPortActive: {"PORT_ACTIVE",
		"the port came up and carries traffic"},
	EventPortErr: {"PORT_ERR",
		"the port went down; connections on it will time out unless it comes back"},
	EventLIDChange: {"LID_CHANGE",
		"the local identifier of the port changed (InfiniBand links only)"},
	EventPKeyChange: {"PKEY_CHANGE",
		"the table of partition keys of the port changed"},
	EventSMChange: {"SM_CHANGE",
		"another subnet manager took over (InfiniBand links only)"},
	EventSRQErr: {"SRQ_ERR",
		"a shared receive queue failed and takes no more receives; its queue pairs will fail, too"},
	EventSRQLimitReached: {"SRQ_LIMIT_REACHED",
		"fewer receives than the limit are left in a shared receive queue; post more and set the limit again, for it fires once"},
	EventQPLastWQEReached: {"QP_LAST_WQE_REACHED",
		"a queue pair in the error state takes nothing more from its shared receive queue; all its receive completions are queued and it may be destroyed"},
	EventClientReregister: {"CLIENT_REREGISTER",
		"the subnet manager asks to join multicast groups and register services again (InfiniBand links only)"},
	EventGIDChange: {"GID_CHANGE",
		"the table of GIDs of the port changed; addresses given to peers may be stale"},
	EventWQFatal: {"WQ_FATAL",
		"a receive work queue without a queue pair failed (receive-side scaling only)"},
}

// String returns the name of the constant in libibverbs without IBV_EVENT_, for
// example "SRQ_LIMIT_REACHED".
func (t EventType) String() string { return lookupText(eventTexts[:], t, "EventType").name }

// Description describes the event and the reaction expected of the program.
func (t EventType) Description() string { return lookupText(eventTexts[:], t, "EventType").description }

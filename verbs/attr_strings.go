package verbs

var accessTexts = [...]valueText{
	{"LOCAL_WRITE", "the adapter may write to the memory: receives, read results, old values of atomics"},
	{"REMOTE_WRITE", "peers may write"},
	{"REMOTE_READ", "peers may read"},
	{"REMOTE_ATOMIC", "peers may run atomics"},
	{"MW_BIND", "memory windows may be bound"},
	{"ZERO_BASED", "addresses count from 0"},
}

// String lists the flags as libibverbs names them without IBV_ACCESS_, joined
// by "|".
func (f AccessFlags) String() string { return flagText(accessTexts[:], f, "AccessFlags").name }

// Description describes the permissions of the flags.
func (f AccessFlags) Description() string {
	return flagText(accessTexts[:], f, "AccessFlags").description
}

var qpTypeTexts = [...]valueText{
	GSI: {"GSI", "general services interface: datagrams of the management on queue pair 1"},
	RC:  {"RC", "reliable connection: every request once, in order, acknowledged"},
	UC:  {"UC", "unreliable connection: whole messages in order or not at all, nothing acknowledged"},
	UD:  {"UD", "unreliable datagram: single packets to and from any number of peers"},
}

// String is the name of the type: "RC", "UC", "UD" or "GSI".
func (t QPType) String() string { return lookupText(qpTypeTexts[:], t, "QPType").name }

// Description describes the service of the type.
func (t QPType) Description() string { return lookupText(qpTypeTexts[:], t, "QPType").description }

var qpStateTexts = [...]valueText{
	StateReset: {"RESET", "nothing may be posted and no packet is heeded"},
	StateInit:  {"INIT", "receives may be posted, no packet is heeded yet"},
	StateRTR:   {"RTR", "ready to receive: packets of the peer are served, sends may not be posted"},
	StateRTS:   {"RTS", "ready to send: everything works"},
	StateSQD:   {"SQD", "send queue drained: started requests finish, new ones wait"},
	StateSQE:   {"SQE", "send queue error: an unreliable send failed, later ones are flushed, receiving goes on"},
	StateErr:   {"ERR", "error: everything that is queued or posted is flushed and no packet is heeded"},
}

// String is the name of the constant in libibverbs without IBV_QPS_, for
// example "RTS".
func (s QPState) String() string { return lookupText(qpStateTexts[:], s, "QPState").name }

// Description describes the behavior of a queue pair in the state.
func (s QPState) Description() string { return lookupText(qpStateTexts[:], s, "QPState").description }

var qpAttrTexts = [...]valueText{
	0:  {"STATE", "State: the state to go to"},
	1:  {"CUR_STATE", "CurState: the state that the caller believes to be the current one"},
	2:  {"EN_SQD_ASYNC_NOTIFY", "EnSQDAsyncNotify: an event when the send queue is drained"},
	3:  {"ACCESS_FLAGS", "AccessFlags: what the peer may do"},
	4:  {"PKEY_INDEX", "PKeyIndex: entry of the partition key table"},
	5:  {"PORT", "PortNum: our port"},
	6:  {"QKEY", "QKey: what a datagram must carry to be accepted"},
	7:  {"AV", "AV: address of the peer"},
	8:  {"PATH_MTU", "PathMTU: payload of a full packet"},
	9:  {"TIMEOUT", "Timeout: how long to wait for an acknowledgement"},
	10: {"RETRY_CNT", "RetryCnt: repetitions without an acknowledgement before giving up"},
	11: {"RNR_RETRY", "RNRRetry: waits for a receive of the peer before giving up"},
	12: {"RQ_PSN", "RQPSN: first packet sequence number that the peer sends"},
	13: {"MAX_QP_RD_ATOMIC", "MaxRdAtomic: reads and atomics that we may have outstanding"},
	15: {"MIN_RNR_TIMER", "MinRNRTimer: how long the peer shall wait when we have no receive"},
	16: {"SQ_PSN", "SQPSN: first packet sequence number that we send"},
	17: {"MAX_DEST_RD_ATOMIC", "MaxDestRdAtomic: reads and atomics that we serve at a time"},
	20: {"DEST_QPN", "DestQPN: number of the peer's queue pair"},
}

// String lists the attributes as libibverbs names them without IBV_QP_,
// joined by "|", for example "STATE|PKEY_INDEX|PORT".
func (m QPAttrMask) String() string { return flagText(qpAttrTexts[:], m, "QPAttrMask").name }

// Description describes the fields of QPAttr that the mask selects.
func (m QPAttrMask) Description() string {
	return flagText(qpAttrTexts[:], m, "QPAttrMask").description
}

var srqAttrTexts = [...]valueText{
	{"MAX_WR", "MaxWR: receives that fit into the queue"},
	{"LIMIT", "Limit: number of receives below which an event is raised"},
}

// String lists the attributes as libibverbs names them without IBV_SRQ_,
// joined by "|".
func (m SRQAttrMask) String() string { return flagText(srqAttrTexts[:], m, "SRQAttrMask").name }

// Description describes the fields of SRQAttr that the mask selects.
func (m SRQAttrMask) Description() string {
	return flagText(srqAttrTexts[:], m, "SRQAttrMask").description
}

var portStateTexts = [...]valueText{
	PortNOP:         {"PORT_NOP", "the state is unknown or not to be changed"},
	PortDown:        {"PORT_DOWN", "no link"},
	PortInit:        {"PORT_INIT", "link is up, only management gets through"},
	PortArmed:       {"PORT_ARMED", "configured, waiting for the order to carry traffic"},
	PortActive:      {"PORT_ACTIVE", "carries traffic"},
	PortActiveDefer: {"PORT_ACTIVE_DEFER", "carried traffic, link is lost for a moment"},
}

// String is the name of the constant in libibverbs without IBV_, as
// ibv_devinfo prints it, for example "PORT_ACTIVE".
func (s PortState) String() string { return lookupText(portStateTexts[:], s, "PortState").name }

// Description describes the behavior of a port in the state.
func (s PortState) Description() string {
	return lookupText(portStateTexts[:], s, "PortState").description
}

var mtuTexts = [...]valueText{
	MTU256:  {"256", "a packet carries up to 256 bytes"},
	MTU512:  {"512", "a packet carries up to 512 bytes"},
	MTU1024: {"1024", "a packet carries up to 1024 bytes"},
	MTU2048: {"2048", "a packet carries up to 2048 bytes"},
	MTU4096: {"4096", "a packet carries up to 4096 bytes"},
}

// String is the MTU in bytes, for example "1024".
func (m MTU) String() string { return lookupText(mtuTexts[:], m, "MTU").name }

// Description describes the limit that the MTU sets.
func (m MTU) Description() string { return lookupText(mtuTexts[:], m, "MTU").description }

var atomicCapTexts = [...]valueText{
	AtomicNone: {"ATOMIC_NONE", "no atomics"},
	AtomicHCA:  {"ATOMIC_HCA", "atomic towards other requests through the same device"},
	AtomicGlob: {"ATOMIC_GLOB", "atomic towards the processor and every device"},
}

// String is the name of the constant in libibverbs without IBV_, as
// ibv_devinfo prints it, for example "ATOMIC_HCA".
func (c AtomicCap) String() string { return lookupText(atomicCapTexts[:], c, "AtomicCap").name }

// Description says against whom atomics are atomic.
func (c AtomicCap) Description() string {
	return lookupText(atomicCapTexts[:], c, "AtomicCap").description
}

var gidTypeTexts = [...]valueText{
	GIDRoCEv2: {"RoCE v2", "an IP address, reached by RDMA packets in UDP"},
}

// String is the kind as ibv_devinfo prints it: "RoCE v2".
func (t GIDType) String() string { return lookupText(gidTypeTexts[:], t, "GIDType").name }

// Description says how such a GID is reached.
func (t GIDType) Description() string { return lookupText(gidTypeTexts[:], t, "GIDType").description }

package verbs

var accessTexts = [...]valueText{
	{"LOCAL_WRITE", "the adapter may write to the memory: receives, read results, old values of atomics"},
	{"REMOTE_WRITE", "peers may write"},
	{"REMOTE_READ", "peers may read"},
	{"REMOTE_ATOMIC", "peers may run atomics"},
	{"MW_BIND", "memory windows may be bound"},
	{"ZERO_BASED", "addresses count from 0"},
	{"ON_DEMAND", "the memory need not be mapped yet"},

	8: {"FLUSH_GLOBAL", "peers may request that writes are visible to all"},
	9: {"FLUSH_PERSISTENT", "peers may request that writes survive a loss of power"},
}

// String lists the flags as libibverbs names them without IBV_ACCESS_, joined
// by "|".
func (f AccessFlags) String() string { return flagText(accessTexts[:], f, "AccessFlags").name }

func (f AccessFlags) descriptionText() string {
	return flagText(accessTexts[:], f, "AccessFlags").description
}

var qpTypeTexts = [...]valueText{
	GSI: {"GSI", "general services interface: management datagrams on queue pair 1"},
	RC:  {"RC", "reliable connection: every request is executed once, in order, and acknowledged"},
	UC:  {"UC", "unreliable connection: messages arrive complete and in order or are lost, without acknowledgements"},
	UD:  {"UD", "unreliable datagram: single packets to and from any number of peers"},
}

// String is the name of the type: "RC", "UC", "UD" or "GSI".
func (t QPType) String() string { return lookupText(qpTypeTexts[:], t, "QPType").name }

func (t QPType) descriptionText() string { return lookupText(qpTypeTexts[:], t, "QPType").description }

var qpStateTexts = [...]valueText{
	StateReset: {"RESET", "no request may be posted, packets are dropped"},
	StateInit:  {"INIT", "receives may be posted, packets are dropped"},
	StateRTR:   {"RTR", "ready to receive: packets of the peer are processed, sends may not be posted"},
	StateRTS:   {"RTS", "ready to send: all operations are possible"},
	StateSQD:   {"SQD", "send queue drained: started requests finish, new ones wait"},
	StateSQE:   {"SQE", "send queue error: an unreliable send failed, later ones are flushed, receives continue"},
	StateErr:   {"ERR", "error: all requests and receives are flushed, packets are dropped"},
}

// String is the name of the constant in libibverbs without IBV_QPS_, for
// example "RTS".
func (s QPState) String() string { return lookupText(qpStateTexts[:], s, "QPState").name }

func (s QPState) descriptionText() string {
	return lookupText(qpStateTexts[:], s, "QPState").description
}

var qpAttrTexts = [...]valueText{
	0:  {"STATE", "State: the new state"},
	1:  {"CUR_STATE", "CurState: the current state that the caller expects"},
	2:  {"EN_SQD_ASYNC_NOTIFY", "EnSQDAsyncNotify: an event when the send queue is drained"},
	3:  {"ACCESS_FLAGS", "AccessFlags: operations permitted to the peer"},
	4:  {"PKEY_INDEX", "PKeyIndex: entry of the partition key table"},
	5:  {"PORT", "PortNum: the local port"},
	6:  {"QKEY", "QKey: the key that a datagram must have"},
	7:  {"AV", "AV: address of the peer"},
	8:  {"PATH_MTU", "PathMTU: maximum payload of a packet"},
	9:  {"TIMEOUT", "Timeout: time to wait for an acknowledgement"},
	10: {"RETRY_CNT", "RetryCnt: retransmissions without an acknowledgement before the request fails"},
	11: {"RNR_RETRY", "RNRRetry: RNR NAKs before the request fails"},
	12: {"RQ_PSN", "RQPSN: first packet sequence number that the peer sends"},
	13: {"MAX_QP_RD_ATOMIC", "MaxRdAtomic: maximum reads and atomics outstanding at the peer"},
	15: {"MIN_RNR_TIMER", "MinRNRTimer: time that the peer waits when no receive is posted here"},
	16: {"SQ_PSN", "SQPSN: first packet sequence number sent"},
	17: {"MAX_DEST_RD_ATOMIC", "MaxDestRdAtomic: maximum reads and atomics of the peer served at a time"},
	20: {"DEST_QPN", "DestQPN: number of the peer's queue pair"},
}

// String lists the attributes as libibverbs names them without IBV_QP_,
// joined by "|", for example "STATE|PKEY_INDEX|PORT".
func (m QPAttrMask) String() string { return flagText(qpAttrTexts[:], m, "QPAttrMask").name }

func (m QPAttrMask) descriptionText() string {
	return flagText(qpAttrTexts[:], m, "QPAttrMask").description
}

var srqAttrTexts = [...]valueText{
	{"MAX_WR", "MaxWR: maximum number of receives in the queue"},
	{"LIMIT", "Limit: number of receives below which an event is raised"},
}

// String lists the attributes as libibverbs names them without IBV_SRQ_,
// joined by "|".
func (m SRQAttrMask) String() string { return flagText(srqAttrTexts[:], m, "SRQAttrMask").name }

func (m SRQAttrMask) descriptionText() string {
	return flagText(srqAttrTexts[:], m, "SRQAttrMask").description
}

var portStateTexts = [...]valueText{
	PortNOP:         {"PORT_NOP", "the state is unknown or does not change"},
	PortDown:        {"PORT_DOWN", "no link"},
	PortInit:        {"PORT_INIT", "the link is up for management packets only"},
	PortArmed:       {"PORT_ARMED", "configured, not yet active"},
	PortActive:      {"PORT_ACTIVE", "carries traffic"},
	PortActiveDefer: {"PORT_ACTIVE_DEFER", "active, with the link temporarily lost"},
}

// String is the name of the constant in libibverbs without IBV_, as
// ibv_devinfo prints it, for example "PORT_ACTIVE".
func (s PortState) String() string { return lookupText(portStateTexts[:], s, "PortState").name }

func (s PortState) descriptionText() string {
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

func (m MTU) descriptionText() string { return lookupText(mtuTexts[:], m, "MTU").description }

var atomicCapTexts = [...]valueText{
	AtomicNone: {"ATOMIC_NONE", "no atomics"},
	AtomicHCA:  {"ATOMIC_HCA", "atomic with respect to other requests through the same device"},
	AtomicGlob: {"ATOMIC_GLOB", "atomic with respect to the processors and all devices"},
}

// String is the name of the constant in libibverbs without IBV_, as
// ibv_devinfo prints it, for example "ATOMIC_HCA".
func (c AtomicCap) String() string { return lookupText(atomicCapTexts[:], c, "AtomicCap").name }

func (c AtomicCap) descriptionText() string {
	return lookupText(atomicCapTexts[:], c, "AtomicCap").description
}

var gidTypeTexts = [...]valueText{
	GIDRoCEv2: {"RoCE v2", "an IP address, reached by RDMA packets in UDP"},
}

// String is the kind as ibv_devinfo prints it: "RoCE v2".
func (t GIDType) String() string { return lookupText(gidTypeTexts[:], t, "GIDType").name }

func (t GIDType) descriptionText() string {
	return lookupText(gidTypeTexts[:], t, "GIDType").description
}

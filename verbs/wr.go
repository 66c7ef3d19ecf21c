package verbs

// A WROpcode is the operation of a send work request (enum ibv_wr_opcode, with
// the same values).
type WROpcode uint8

const (
	WRRDMAWrite        WROpcode = 0 // write local memory to remote memory
	WRRDMAWriteWithImm WROpcode = 1 // the same, with immediate data, which consumes a receive of the peer
	WRSend             WROpcode = 2 // send a message, which consumes a receive of the peer
	WRSendWithImm      WROpcode = 3 // the same, with immediate data
	WRRDMARead         WROpcode = 4 // read remote memory into local memory
	WRAtomicCmpSwap    WROpcode = 5 // if *remote == CompareAdd then *remote = Swap; store the old value in local memory
	WRAtomicFetchAdd   WROpcode = 6 // *remote += CompareAdd; store the old value in local memory
	WRLocalInv         WROpcode = 7 // invalidate a local memory window
	WRBindMW           WROpcode = 8 // bind a memory window
	WRSendWithInv      WROpcode = 9 // send a message that also invalidates a memory window of the peer

	// Requests of IBTA release 1.5 (annex A19). A peer that does not have them
	// rejects them, see DeviceAttr.AtomicWrite and FlushGlobal.
	WRFlush       WROpcode = 14 // wait until earlier writes to remote memory are visible or persistent
	WRAtomicWrite WROpcode = 15 // write 8 bytes to remote memory at once
)

// SendFlags modify a send work request (enum ibv_send_flags). A request without
// flags produces a completion. Only on a queue pair with
// QPInitAttr.SelectiveSignaling does a successful request need SendSignaled for it.
type SendFlags uint8

const (
	SendFence     SendFlags = 1 << iota // start only when all earlier reads and atomics are complete
	SendSignaled                        // produce a completion on success; needed with QPInitAttr.SelectiveSignaling only
	SendSolicited                       // raise a solicited event at the peer, if the message consumes a receive
	SendInline                          // the data is InlineData, which PostSend copies; SGList must be empty

	// SendDelayAck allows messages of RC and RDMA writes of a DatagramRDMA to
	// complete some milliseconds late, so that the peer can coalesce the
	// acknowledgement. It is softrnic's own: libibverbs has no such flag.
	SendDelayAck SendFlags = 1 << 7
)

// SGE is a scatter/gather element: Length bytes at Addr of the region with
// key LKey (struct ibv_sge). MR.SGE makes one.
type SGE struct {
	Addr   uint64
	Length uint32 // bytes; 0 is an empty element, not 2^31 bytes
	LKey   uint32
}

// SendWR is a send work request (struct ibv_send_wr). It produces a completion in
// the queue pair's SendCQ, except if it succeeds without SendSignaled on a queue pair
// with QPInitAttr.SelectiveSignaling. Fields that the opcode does not use are
// ignored. SGList and InlineData may be reused when PostSend returns; the memory that
// the SGEs refer to belongs to the adapter until the completion.
type SendWR struct {
	WRID   uint64 // returned in the completion
	Opcode WROpcode
	Flags  SendFlags
	SGList []SGE

	InlineData []byte // with SendInline: the message

	Imm    uint32 // WithImm: immediate data in host byte order (imm_data is in network byte order)
	InvKey uint32 // SendWithInv: rkey of a window of the peer; LocalInv: rkey of a local window

	RemoteAddr uint64 // RDMA, atomics and Flush; for atomics and AtomicWrite a multiple of 8
	RKey       uint32 // RDMA, atomics and Flush

	CompareAdd uint64 // CmpSwap: compare operand; FetchAdd: addend
	Swap       uint64 // CmpSwap: new value

	AH         AH     // UD: destination
	RemoteQPN  uint32 // UD: destination queue pair
	RemoteQKey uint32 // UD: destination Q_Key; if its top bit is set, the Q_Key of the queue pair is sent instead

	Bind  BindMW // BindMW
	Flush Flush  // Flush
}

// Flush describes a WRFlush (arguments of ibv_wr_flush).
type Flush struct {
	Placement   FlushPlacement
	Selectivity FlushSelectivity
	Length      uint32 // bytes from RemoteAddr; with FlushRegion it does not matter
}

// FlushPlacement is a set of properties that the data has when a WRFlush is complete
// (enum ibv_placement_type).
type FlushPlacement uint8

const (
	FlushGlobal     FlushPlacement = 1 << iota // visible to all that access the memory
	FlushPersistent                            // kept when power fails
)

// FlushSelectivity is the memory that a WRFlush concerns (enum
// ibv_selectivity_level).
type FlushSelectivity uint8

const (
	FlushRange  FlushSelectivity = iota // Length bytes at RemoteAddr
	FlushRegion                         // the region with RKey (IBV_FLUSH_MR)
)

// BindMW describes the binding of a WRBindMW (ibv_mw_bind_info, with the window and its
// new key).
type BindMW struct {
	MW     MW
	RKey   uint32 // new key: same upper 24 bits as MW.RKey, other low byte (IncRKey)
	MR     MR     // must have AccessMWBind; windows of type 1: not AccessZeroBased
	Addr   uint64 // first address within MR
	Length uint64 // bytes; 0 leaves a window of type 1 unbound, and fails for one of type 2
	Access AccessFlags
}

// RecvWR is a receive work request (struct ibv_recv_wr).
type RecvWR struct {
	WRID   uint64
	SGList []SGE // may be empty, for example for RDMA writes with immediate data
}

// IncRKey returns the key with the next low byte (ibv_inc_rkey).
func IncRKey(rkey uint32) uint32 { return rkey&^0xff | (rkey+1)&0xff }

var wrOpcodeTexts = [...]valueText{
	WRRDMAWrite:        {"RDMA_WRITE", "write local memory to remote memory, without a completion at the peer"},
	WRRDMAWriteWithImm: {"RDMA_WRITE_WITH_IMM", "write local memory to remote memory, then complete a receive of the peer with 32 bits"},
	WRSend:             {"SEND", "send a message into the peer's next receive"},
	WRSendWithImm:      {"SEND_WITH_IMM", "send a message and 32 bits into the peer's next receive"},
	WRRDMARead:         {"RDMA_READ", "read remote memory into local memory"},
	WRAtomicCmpSwap:    {"ATOMIC_CMP_AND_SWP", "replace 8 bytes of remote memory if they equal the expected value, and fetch the old value"},
	WRAtomicFetchAdd:   {"ATOMIC_FETCH_AND_ADD", "add to 8 bytes of remote memory, and fetch the old value"},
	WRLocalInv:         {"LOCAL_INV", "invalidate the RKey of a local memory window"},
	WRBindMW:           {"BIND_MW", "bind a memory window to a part of a region"},
	WRSendWithInv:      {"SEND_WITH_INV", "send a message and invalidate the RKey of a memory window of the peer"},
	WRFlush:            {"FLUSH", "wait until earlier writes to remote memory are visible or persistent"},
	WRAtomicWrite:      {"ATOMIC_WRITE", "write 8 bytes to remote memory at once, after all earlier requests"},
}

var flushPlacementTexts = [...]valueText{
	{"GLOBAL", "the data is visible to all that access the memory"},
	{"PERSISTENT", "the data is kept when power fails"},
}

// String lists the properties as libibverbs names them without IBV_FLUSH_, joined by
// "|".
func (p FlushPlacement) String() string {
	return flagText(flushPlacementTexts[:], p, "FlushPlacement").name
}

func (p FlushPlacement) descriptionText() string {
	return flagText(flushPlacementTexts[:], p, "FlushPlacement").description
}

var flushSelectivityTexts = [...]valueText{
	{"RANGE", "the memory at RemoteAddr"},
	{"MR", "the memory region with RKey"},
}

// String is the name of the constant in libibverbs without IBV_FLUSH_, for example "RANGE".
func (s FlushSelectivity) String() string {
	return lookupText(flushSelectivityTexts[:], s, "FlushSelectivity").name
}

func (s FlushSelectivity) descriptionText() string {
	return lookupText(flushSelectivityTexts[:], s, "FlushSelectivity").description
}

// String is the name of the constant in libibverbs without IBV_WR_, for
// example "ATOMIC_CMP_AND_SWP".
func (o WROpcode) String() string { return lookupText(wrOpcodeTexts[:], o, "WROpcode").name }

func (o WROpcode) descriptionText() string {
	return lookupText(wrOpcodeTexts[:], o, "WROpcode").description
}

var sendFlagTexts = [...]valueText{
	{"FENCE", "start only when all earlier reads and atomics are complete"},
	{"SIGNALED", "report success with a completion as well"},
	{"SOLICITED", "raise a solicited event at the peer"},
	{"INLINE", "copy the data while posting, so that its buffer is free at once"},
	7: {"DELAY_ACK", "permit the peer to delay the acknowledgement"}, // ours
}

// String lists the flags as libibverbs names them without IBV_SEND_, joined
// by "|".
func (f SendFlags) String() string { return flagText(sendFlagTexts[:], f, "SendFlags").name }

func (f SendFlags) descriptionText() string {
	return flagText(sendFlagTexts[:], f, "SendFlags").description
}

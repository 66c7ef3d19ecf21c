package verbs

// A WROpcode is the operation of a send work request (enum ibv_wr_opcode, with
// the same values).
type WROpcode uint8

const (
	WRRDMAWrite        WROpcode = 0 // write local memory to remote memory
	WRRDMAWriteWithImm WROpcode = 1 // the same, and complete a receive at the peer with 32 bits
	WRSend             WROpcode = 2 // message into a receive of the peer
	WRSendWithImm      WROpcode = 3 // the same with 32 bits of immediate data
	WRRDMARead         WROpcode = 4 // read remote memory into local memory
	WRAtomicCmpSwap    WROpcode = 5 // if *remote == Compare then *remote = Swap; old value to local memory
	WRAtomicFetchAdd   WROpcode = 6 // *remote += Add; old value to local memory
	WRLocalInv         WROpcode = 7 // invalidate a memory window of ours
	WRBindMW           WROpcode = 8 // bind a memory window
	WRSendWithInv      WROpcode = 9 // message that also invalidates a memory window of the peer
)

// SendFlags modify a send work request (enum ibv_send_flags). No flag is needed
// for a completion: every request completes, except on a queue pair that was
// created with QPInitAttr.SelectiveSignaling. There a request that succeeds
// completes only with SendSignaled, and one without it completes only if it fails.
type SendFlags uint8

const (
	SendFence     SendFlags = 1 << iota // start only when all earlier reads and atomics are complete
	SendSignaled                        // complete on success, with QPInitAttr.SelectiveSignaling; others always do
	SendSolicited                       // raise a solicited event at the peer (messages that take a receive)
	SendInline                          // data is copied out of InlineData during PostSend, no SGE

	// SendDelayAck allows messages of RC and RDMA writes of a DatagramRDMA to
	// complete some milliseconds late, so that the peer can coalesce the
	// acknowledgement. It is softrnic's own: libibverbs has no such flag.
	SendDelayAck SendFlags = 1 << 7
)

// SGE is a scatter/gather element: Length bytes at Addr of the region with
// key LKey (struct ibv_sge). MR.SGE makes one.
type SGE struct {
	Addr   uint64
	Length uint32 // bytes; 0 means 0 here
	LKey   uint32
}

// SendWR is a send work request (struct ibv_send_wr). Each produces a completion
// in the queue pair's SendCQ, unless the queue pair was created with
// QPInitAttr.SelectiveSignaling: then only requests with SendSignaled in Flags do,
// and those that fail. The opcode decides which fields count; the others are
// ignored. SGList and InlineData may be reused when PostSend returns; the memory
// that the SGEs name may not until the completion.
type SendWR struct {
	WRID   uint64 // returned in the completion
	Opcode WROpcode
	Flags  SendFlags
	SGList []SGE

	InlineData []byte // the message itself, with SendInline; then SGList must be empty

	Imm    uint32 // WithImm: delivered as it is (host value, big-endian on the wire)
	InvKey uint32 // SendWithInv: rkey at the peer; LocalInv: rkey of a window here

	RemoteAddr uint64 // RDMA and atomics; atomics need a multiple of 8
	RKey       uint32 // RDMA and atomics

	CompareAdd uint64 // CmpSwap: compare operand; FetchAdd: addend
	Swap       uint64 // CmpSwap: new value

	AH         AH     // UD: destination
	RemoteQPN  uint32 // UD: destination queue pair
	RemoteQKey uint32 // UD: destination Q_Key; if the top bit is set, the local Q_Key is sent

	Bind BindMW // BindMW
}

// BindMW describes the binding of a WRBindMW (struct ibv_bind_mw's bind_info).
type BindMW struct {
	MW     MW
	RKey   uint32 // new key: same upper 24 bits as MW.RKey, other low byte (IncRKey)
	MR     MR     // must have AccessMWBind
	Addr   uint64 // first address within MR
	Length uint64 // bytes, not 0
	Access AccessFlags
}

// RecvWR is a receive work request (struct ibv_recv_wr).
type RecvWR struct {
	WRID   uint64
	SGList []SGE // may be empty for a write with immediate
}

// IncRKey returns the key with the next low byte (ibv_inc_rkey).
func IncRKey(rkey uint32) uint32 { return rkey&^0xff | (rkey+1)&0xff }

package verbs

import (
	"strconv"
	"time"
)

// AccessFlags grant access to memory, or through a queue pair (enum
// ibv_access_flags, with the same values).
type AccessFlags uint32

const (
	AccessLocalWrite   AccessFlags = 1 << 0 // receives and results of reads and atomics may be stored
	AccessRemoteWrite  AccessFlags = 1 << 1 // needs AccessLocalWrite
	AccessRemoteRead   AccessFlags = 1 << 2
	AccessRemoteAtomic AccessFlags = 1 << 3 // needs AccessLocalWrite
	AccessMWBind       AccessFlags = 1 << 4 // memory windows may be bound to the region
	AccessZeroBased    AccessFlags = 1 << 5 // addresses are offsets in the region

	// AccessOnDemand defers the check of the memory to its first use: it need not be mapped yet
	// (on-demand paging). Memory is never pinned, with or without the flag.
	AccessOnDemand AccessFlags = 1 << 6

	AccessFlushGlobal     AccessFlags = 1 << 8 // FLUSH with FlushGlobal
	AccessFlushPersistent AccessFlags = 1 << 9 // FLUSH with FlushPersistent; see DeviceAttr.FlushPersistent
)

// AccessOptional are the flags that an adapter without the feature ignores
// (IBV_ACCESS_OPTIONAL_RANGE), such as relaxed ordering on the PCI bus. This
// module implements none of them.
const AccessOptional AccessFlags = 0x3ff00000

// AccessRemote is the set of all remote permissions except those of FLUSH.
const AccessRemote = AccessRemoteWrite | AccessRemoteRead | AccessRemoteAtomic

// QPType is the transport service of a queue pair (enum ibv_qp_type; GSI as
// in the kernel).
type QPType uint8

const (
	GSI QPType = 1 // general services interface: UD, number 1, Q_Key 0x80010000
	RC  QPType = 2 // reliable connection
	UC  QPType = 3 // unreliable connection
	UD  QPType = 4 // unreliable datagram
)

// QPState is a state of a queue pair (enum ibv_qp_state).
type QPState uint8

const (
	StateReset QPState = iota
	StateInit          // receives may be posted
	StateRTR           // ready to receive
	StateRTS           // ready to send
	StateSQD           // send queue drains
	StateSQE           // send queue error (UC, UD)
	StateErr
)

// A QPAttrMask selects attributes of QPAttr (enum ibv_qp_attr_mask).
type QPAttrMask uint32

const (
	AttrState            QPAttrMask = 1 << 0
	AttrCurState         QPAttrMask = 1 << 1
	AttrEnSQDAsyncNotify QPAttrMask = 1 << 2
	AttrAccessFlags      QPAttrMask = 1 << 3
	AttrPKeyIndex        QPAttrMask = 1 << 4
	AttrPort             QPAttrMask = 1 << 5
	AttrQKey             QPAttrMask = 1 << 6
	AttrAV               QPAttrMask = 1 << 7
	AttrPathMTU          QPAttrMask = 1 << 8
	AttrTimeout          QPAttrMask = 1 << 9
	AttrRetryCnt         QPAttrMask = 1 << 10
	AttrRNRRetry         QPAttrMask = 1 << 11
	AttrRQPSN            QPAttrMask = 1 << 12
	AttrMaxQPRdAtomic    QPAttrMask = 1 << 13
	AttrMinRNRTimer      QPAttrMask = 1 << 15
	AttrSQPSN            QPAttrMask = 1 << 16
	AttrMaxDestRdAtomic  QPAttrMask = 1 << 17
	AttrDestQPN          QPAttrMask = 1 << 20
)

// MTU is a path MTU in the encoding of the verbs (enum ibv_mtu).
type MTU uint8

const (
	MTU256 MTU = iota + 1
	MTU512
	MTU1024
	MTU2048
	MTU4096
)

// Bytes returns the payload of a full packet, or 0 for an invalid MTU.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// MarshalText encodes the MTU in bytes, 0 if it is unset or invalid.
func (m MTU) MarshalText() ([]byte, error) {
	return strconv.AppendInt(nil, int64(m.Bytes()), 10), nil
}

// UnmarshalText parses an MTU in bytes, for example "1024"; 0 is unset.
func (m *MTU) UnmarshalText(text []byte) error {
	for v := MTU(0); v <= MTU4096; v++ {
		if string(text) == strconv.Itoa(v.Bytes()) {
			*m = v
			return nil
		}
	}
	return &OpError{Op: "parse MTU", Object: quoteTruncated(string(text)), Err: ErrInvalid,
		Detail: "want 256, 512, 1024, 2048 or 4096"}
}

// AHAttr is an address vector (struct ibv_ah_attr).
type AHAttr struct {
	DGID         GID
	UDPPort      uint16 // of the peer's adapter; 0 means 4791
	SGIDIndex    int    // local entry of the GID table
	TrafficClass uint8
	FlowLabel    uint32 // IPv6: low 20 bits, 0 for the system's choice; IPv4 has none
	HopLimit     uint8  // IPv4 TTL or IPv6 hop limit; 0 means 64
	SL           uint8  // stored and not used: TrafficClass has the priority of RoCE v2, and a UDP socket cannot set a VLAN's
	PortNum      uint8  // local port, 0 means 1

	// PeerBuffer is the size in bytes of the peer's socket receive buffer
	// (its PortAttr.RecvBuffer). It bounds the bytes that an RC queue pair has
	// in flight (UC has no bound), and marks the peer as a softrnic adapter, to
	// which long writes are sent as one WRITE ONLY per packet. Use 0 for all
	// other peers.
	PeerBuffer uint32

	// Selective selects selective retransmission for an RC queue pair. Both ends
	// must select it, which needs a softrnic at both: see Endpoint.Selective.
	Selective bool
}

// QPAttr are the changeable attributes of a queue pair (struct ibv_qp_attr).
type QPAttr struct {
	State            QPState
	CurState         QPState
	PathMTU          MTU
	QKey             uint32
	RQPSN            uint32 // first PSN expected from the peer, 24 bits
	SQPSN            uint32 // first PSN sent, 24 bits
	DestQPN          uint32
	AccessFlags      AccessFlags // remote access of the peer through this queue pair
	AV               AHAttr
	PKeyIndex        uint16
	EnSQDAsyncNotify bool  // raise EventSQDrained; also if a Modify to StateSQD does not select it
	SQDraining       bool  // query only
	MaxRdAtomic      uint8 // maximum number of outstanding reads and atomics; 0 is refused while some are queued
	MaxDestRdAtomic  uint8 // maximum number of the peer's reads and atomics served at a time
	MinRNRTimer      uint8 // code 0..31 sent in RNR NAKs; 0 is 655 ms
	PortNum          uint8
	Timeout          uint8 // local ACK timeout: 4.096 us * 2^Timeout, at least 16.8 ms (code 12); 0 means none
	RetryCnt         uint8 // 0..7
	RNRRetry         uint8 // 0..7, 7 means forever
}

// QPCap are the sizes of a queue pair (struct ibv_qp_cap).
type QPCap struct {
	MaxSendWR     int // requests
	MaxRecvWR     int // requests; ignored with an SRQ
	MaxSendSGE    int // elements per request
	MaxRecvSGE    int // elements per request; ignored with an SRQ
	MaxInlineData int // bytes
}

// QPInitAttr describes a queue pair to create (struct ibv_qp_init_attr).
type QPInitAttr struct {
	Type   QPType
	SendCQ CQ
	RecvCQ CQ
	SRQ    SRQ // or nil
	Cap    QPCap

	// SelectiveSignaling makes a successful send request produce a completion
	// only if it has SendSignaled (sq_sig_all = 0). By default every send
	// request does. A failed request always does.
	SelectiveSignaling bool

	// SignalAll selects the default explicitly (sq_sig_all = 1). It is an
	// ErrInvalid together with SelectiveSignaling.
	SignalAll bool

	// MaxDatagramRDMA is the maximum number of RDMA requests and atomics in
	// flight on a UD queue pair; 0 disables them, see DatagramRDMA. Queue pairs
	// of adapters without that feature do not implement DatagramRDMA.
	MaxDatagramRDMA int

	// NoCredits disables end-to-end credits of an RC queue pair: its
	// acknowledgements advertise none, and those of the peer are ignored.
	NoCredits bool

	// Congestion names the congestion control of an RC queue pair: "off", "auto",
	// "dcqcn" or "delay" on a softrnic, "" for that of the device. Others are an
	// ErrInvalid.
	Congestion string
}

// SRQInitAttr describes a shared receive queue to create.
type SRQInitAttr struct {
	MaxWR  int
	MaxSGE int
	Limit  int // arms EventSRQLimitReached; 0 is off
}

// SRQAttr are the attributes of a shared receive queue (struct ibv_srq_attr).
type SRQAttr struct {
	MaxWR  int
	MaxSGE int
	Limit  int
}

// An SRQAttrMask selects attributes of SRQAttr (enum ibv_srq_attr_mask).
type SRQAttrMask uint8

const (
	SRQMaxWR SRQAttrMask = 1 << iota
	SRQLimit
)

// DeviceAttr describes a device (struct ibv_device_attr).
type DeviceAttr struct {
	FWVer           string
	NodeGUID        uint64
	SysImageGUID    uint64
	VendorID        uint32
	VendorPartID    uint32
	HWVer           uint32
	MaxMRSize       uint64
	MaxQP           int
	MaxQPWR         int
	MaxSGE          int
	MaxSGERd        int
	MaxCQ           int
	MaxCQE          int
	MaxMR           int
	MaxMW           int
	MaxPD           int
	MaxAH           int
	MaxSRQ          int
	MaxSRQWR        int
	MaxSRQSGE       int
	MaxQPRdAtom     int // reads and atomics of the peer served at a time
	MaxQPInitRdAtom int // outstanding reads and atomics
	MaxInlineData   int
	MaxMcastGrp     int
	MaxPKeys        int
	PhysPortCnt     int
	LocalCAAckDelay uint8
	AtomicCap       AtomicCap

	// OrderedWrites reports that remote writes become visible to a processor that polls memory in
	// the order of their requests, and each in the way that MR.LoadUint64 documents. The standard
	// leaves the order open (IBTA 9.5, o9-20).
	OrderedWrites bool

	// AtomicWrite reports that the device executes WRAtomicWrite of a peer
	// (IBV_DEVICE_ATOMIC_WRITE), and FlushGlobal and FlushPersistent that it executes WRFlush
	// with such a placement (IBV_DEVICE_FLUSH_GLOBAL, IBV_DEVICE_FLUSH_PERSISTENT).
	AtomicWrite, FlushGlobal, FlushPersistent bool
}

// AtomicCap is the scope of atomics (enum ibv_atomic_cap).
type AtomicCap uint8

const (
	AtomicNone AtomicCap = iota
	AtomicHCA            // atomic with respect to atomics by the same device
	AtomicGlob           // atomic also with respect to atomic instructions of the processor
)

// PortState is the state of a port (enum ibv_port_state).
type PortState uint8

// The states of a port. RoCE has only PortDown and PortActive: the others are steps
// of InfiniBand's subnet manager.
const (
	PortNOP PortState = iota
	PortDown
	PortInit
	PortArmed
	PortActive
	PortActiveDefer
)

// PortAttr describes a port (struct ibv_port_attr).
type PortAttr struct {
	State        PortState
	MaxMTU       MTU
	ActiveMTU    MTU
	GIDTableLen  int
	PKeyTableLen int
	MaxMsgSize   uint32
	LID, SMLID   uint16
	LMC          uint8
	MaxVLNum     uint8
	ActiveWidth  uint8
	ActiveSpeed  uint8
	PhysState    uint8
	LinkLayer    string // "Ethernet"
	BadPKeyCntr  uint32
	QKeyViolCntr uint32
	UDPPort      uint16 // UDP port of the adapter
	RecvBuffer   uint32 // bytes of the socket's receive buffer: a peer's AHAttr.PeerBuffer
	Selective    bool   // RC queue pairs can retransmit selectively: see AHAttr.Selective
}

// GIDType is the kind of a GID table entry.
type GIDType uint8

// GIDRoCEv2 is the only kind of GID of a softrnic port.
const GIDRoCEv2 GIDType = 2

// GIDEntry is one row of a GID table (struct ibv_gid_entry).
type GIDEntry struct {
	GID   GID
	Index int
	Port  int
	Type  GIDType
}

// AckTimeout returns the time of a Timeout code: 4.096 us * 2^code, or 0 (no
// timeout) for code 0. Adapters round short ones up: rnic waits at least 16.8
// ms, the time of code 12 (qp.MinAckTimeout).
func AckTimeout(code uint8) time.Duration {
	if code == 0 {
		return 0
	}
	return 4096 * time.Nanosecond << (code & 31)
}

package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/congestion"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A Config describes the queue pair that New creates.
type Config struct {
	Num       uint32 // 24 bits
	Type      verbs.QPType
	Host      Host
	Memory    Memory
	Cap       verbs.QPCap // checked by the device
	Shared    SharedQueue // or nil
	SignalAll bool
	NoCredits bool
	MaxRDMA   int // maximum outstanding RDMA operations of a UD queue pair; 0 disables RDMA over UD

	// ConfirmSends delays the completion of UC and UD requests until
	// ConfirmSent is called, after their packets were sent or refused.
	// Otherwise they complete when their packets are built.
	ConfirmSends bool

	// LocalBuffer is the size of the adapter's receive buffer in bytes. It
	// bounds the read data in flight.
	LocalBuffer int

	// PortMTU is the active MTU of the port in bytes, the maximum payload of a
	// datagram; 0 means MaxMTU.
	PortMTU int

	// Congestion is the congestion control of an RC queue pair.
	Congestion congestion.Mode

	// Pool has memory for selective retransmission. Calls on queue pairs with the same
	// pool must be serialized. If it is nil, the queue pair has a pool of its own.
	Pool *SelectivePool

	// Stream makes an RC queue pair use a TCP connection (iWARP), see AttachStream.
	Stream bool
}

// A Core is a queue pair without I/O: work queues, state machine, requester and
// responder. Its inputs are requests, packets and the time; its outputs are
// packets, completions and a deadline. It is not safe for concurrent use.
//
// After PostSend, HandlePacket, Advance or Modify, call Drain until it returns
// false, and call DrainAck when the acknowledgement should not be delayed any
// longer.
type Core struct {
	host      Host
	mem       Memory
	shared    SharedQueue
	num       uint32
	typ       verbs.QPType
	class     wire.Class
	pkey      uint16
	transport transport
	state     verbs.QPState

	signalAll    bool
	countsWrites bool // writes count as messages that were sent (UC)
	noCredits    bool
	confirmSends bool
	attr         verbs.QPAttr
	cap          verbs.QPCap
	path         wire.Path // of the peer (RC, UC)
	mtu          uint32    // of the path
	portMTU      uint32
	maxMessage   uint32 // of a SEND or WRITE
	fixedQKey    uint32 // of GSI, else 0

	requester
	responder

	rdma   *rdma          // RDMA over UD; nil if disabled
	sel    *selective     // RC: selective retransmission; nil if disabled
	pool   *SelectivePool // or nil
	stream *streamState   // RC over TCP; nil otherwise

	counters Counters
	recorder flightRecorder
}

// A requester is the sending half of a Core.
type requester struct {
	sq              sendQueue
	cur             uint32   // request to send next, between sq.head and sq.tail
	next            wire.PSN // next PSN to send; less than top during retransmission
	una             wire.PSN // oldest unacknowledged PSN
	top             wire.PSN // one past the highest PSN sent
	endPos          uint64   // window coordinate one past the last started request
	burst           uint32   // packets built in a row
	sinceAckReq     uint32   // packets since the last requested acknowledgement
	softrnicPeer    bool     // the peer is a softrnic, see splitsWrite and ackDeferrable
	forceAckReq     bool     // the next packet requests an acknowledgement: it is a probe
	peerDelaysAcks  bool     // the peer also sends unrequested acknowledgements, after AckDelay
	ackReqInFlight  bool     // lastAckReq is valid
	probing         bool     // send one packet only, then continue at resume
	probeUnanswered bool     // a probe of a SEND or WRITE is unanswered
	stalled         bool     // a credit stall was counted for the request at cur
	drained         bool     // the SQ_DRAINED event was raised
	cautious        uint32   // remaining messages of cautiousMessages
	lastAckReq      wire.PSN // last PSN that requested an acknowledgement
	resume          wire.PSN // next PSN after a probe
	probePSN        wire.PSN // PSN of that probe

	rdOut     uint32 // reads (parts of them) and atomics outstanding
	rdBytes   uint32 // bytes of reads outstanding
	readPart  uint32 // longer reads are split into requests of this many bytes
	readLimit uint32 // upper bound of readWindow in bytes

	lastRefusal *verbs.RefusedError // RC: last refused packet since the last progress, or nil
	unsent      []unsentPacket      // UC, UD: refused packets of unconfirmed requests

	window     reliability.Window
	readWindow reliability.Window // window of read responses
	retry      reliability.Retry
	rtt        reliability.RTT
	credits    reliability.Credits

	rateControl
}

// A responder is the receiving half of a Core.
type responder struct {
	rq   recvQueue
	recv reliability.Receiver

	cnpDue      bool
	peerSeen    bool // a packet was received
	zeroCredits bool // the last acknowledgement advertised no credit
	established bool // the COMM_EST event was raised

	acks    reliability.Acks
	res     reliability.Resources
	msg     inboundMessage
	cnpLast reliability.Time
}

// New returns a queue pair in StateReset.
func New(cfg Config) *Core {
	c := &Core{
		host: cfg.Host, mem: cfg.Memory, shared: cfg.Shared, num: cfg.Num, typ: cfg.Type,
		signalAll: cfg.SignalAll, noCredits: cfg.NoCredits, cap: cfg.Cap, pool: cfg.Pool, pkey: wire.DefaultPKey,
	}
	c.sq.limit, c.sq.maxSGE, c.sq.maxInline = uint32(cfg.Cap.MaxSendWR), max(1, cfg.Cap.MaxSendSGE), cfg.Cap.MaxInlineData
	c.rq.limit, c.rq.maxSGE = uint32(cfg.Cap.MaxRecvWR), max(1, cfg.Cap.MaxRecvSGE)
	c.readLimit = readLimit(cfg.LocalBuffer)
	c.portMTU = MaxMTU
	if cfg.PortMTU > 0 {
		c.portMTU = uint32(cfg.PortMTU)
	}
	c.mode = cfg.Congestion
	c.chooseTransport(cfg)
	c.resetAll()
	return c
}

// chooseTransport sets the transport of the type.
func (c *Core) chooseTransport(cfg Config) {
	c.maxMessage, c.confirmSends = MaxMessage, cfg.ConfirmSends
	switch cfg.Type {
	case verbs.RC:
		c.class, c.transport, c.confirmSends = wire.ClassRC, rc{c}, false
		if cfg.Stream {
			c.stream, c.transport = new(streamState), stream{c}
		}
	case verbs.UC:
		c.class, c.transport, c.countsWrites = wire.ClassUC, uc{unreliable{c}}, true
	default:
		c.class, c.transport, c.maxMessage = wire.ClassUD, ud{unreliable{c}}, c.portMTU
		switch {
		case cfg.Type == verbs.GSI:
			c.fixedQKey = GSIQKey
		case cfg.MaxRDMA > 0:
			c.rdma = newRDMA(cfg.MaxRDMA)
			c.transport = udRDMA{ud{unreliable{c}}}
		}
	}
}

// readLimit returns the maximum read data in flight for a receive buffer, which
// holds twice its nominal size (see reliability.Window).
func readLimit(buffer int) uint32 {
	if buffer <= 0 {
		return reliability.DefaultWindow
	}
	return uint32(min(max(2*buffer, 16<<10), reliability.MaxWindow))
}

// Type returns the transport type.
func (c *Core) Type() verbs.QPType { return c.typ }

// State returns the current state.
func (c *Core) State() verbs.QPState { return c.state }

// Counters returns the counters.
func (c *Core) Counters() Counters { return c.counters }

// InFlight returns the number of unacknowledged bytes in the window. Each
// packet counts with its payload and PacketCost.
func (c *Core) InFlight() int { return c.transport.inFlight() }

// PeerPath returns the path to the peer of a connected queue pair.
func (c *Core) PeerPath() wire.Path { return c.path }

// Query returns the current attributes.
func (c *Core) Query() verbs.QPAttr {
	a := c.attr
	a.State, a.CurState = c.state, c.state
	a.SQDraining = c.state == sSQD && !c.sqIdle()
	a.SQPSN, a.RQPSN = uint32(c.next), uint32(c.recv.Expected())
	return a
}

// Cap returns the sizes of the queue pair.
func (c *Core) Cap() verbs.QPCap { return c.cap }

// Queued returns the number of send and receive requests not yet complete.
func (c *Core) Queued() (send, recv int) { return c.sq.len(), c.rq.len() }

// CanComplete reports whether send requests are outstanding, and whether a
// receive is posted or in use by an incomplete message. If neither holds,
// nothing completes before the next post. Receives of a shared queue do not
// count.
func (c *Core) CanComplete() (send, recv bool) {
	return c.sq.len() > 0 || c.transport.hasOutstanding(), c.rq.len() > 0 || c.msg.held
}

// resetAll discards all requests and attributes.
func (c *Core) resetAll() {
	c.ReleaseSharedRecv()
	c.transport.reset()
	c.state = sReset
	c.attr = verbs.QPAttr{}
	c.path = wire.Path{}
	c.mtu = c.portMTU // final for datagrams
	c.sq.reset()
	c.rq.reset()
	c.cur, c.next, c.una, c.top, c.endPos, c.sinceAckReq = 0, 0, 0, 0, 0, 0
	c.forceAckReq, c.probing, c.probeUnanswered, c.stalled, c.drained = false, false, false, false, false
	c.rdOut, c.rdBytes, c.softrnicPeer = 0, 0, false
	c.peerDelaysAcks, c.cautious, c.ackReqInFlight = false, 0, false
	c.lastRefusal, c.unsent = nil, nil
	c.peerSeen = false
	c.retry.Stop()
	c.rtt = reliability.RTT{}
	c.window, c.readWindow = reliability.Window{}, reliability.Window{}
	c.stopRateControl()
	c.acks = reliability.Acks{}
	c.recv.Reset(0)
	c.res.Reset(0)
	c.msg = inboundMessage{wqe: RecvWQE{SGList: c.msg.wqe.SGList[:0]}}
	c.cnpDue, c.cnpLast, c.zeroCredits, c.established = false, 0, false, false
	c.dropSelective()
	c.recorder.addState(0, sReset)
}

// String returns the type and number of the queue pair, for errors.
func (c *Core) String() string { return fmt.Sprintf("%v QP 0x%x", c.typ, c.num) }

// Counters are the counters of a queue pair in packets or events. Names follow
// Linux's rdma_rxe where it has a counterpart (rxe_hw_counters.c).
type Counters struct {
	SentPkts             uint64
	RcvdPkts             uint64
	SentBytes            uint64 // payload
	RcvdBytes            uint64 // payload
	DuplicateRequest     uint64 // requests received before
	OutOfSeqRequest      uint64 // gaps in the request PSNs, each counted once
	RcvdRNRErr           uint64 // RNR NAKs received
	SendRNRErr           uint64 // RNR NAKs sent
	RcvdSeqErr           uint64 // sequence NAKs received
	SendSeqErr           uint64 // sequence NAKs sent
	AckDeferred          uint64 // acknowledgements saved by coalescing
	RetryExceededErr     uint64
	RetryRNRExceededErr  uint64
	CompleterRetryErr    uint64 // go-backs
	SendErr              uint64 // send requests that failed
	Retransmitted        uint64 // retransmitted packets
	Timeouts             uint64 // local ACK timeouts
	Probes               uint64 // probes sent before the timeout
	RDMASends            uint64 // messages sent, without retransmissions
	RDMARecvs            uint64 // messages received
	CNPSent, CNPReceived uint64
	ECNMarked            uint64 // packets that arrived with the congestion mark
	CreditStalls         uint64 // messages that waited for a credit
	Unsignaled           uint64 // requests that succeeded without a completion
	RateReductions       uint64 // reductions by congestion control
	PacingStalls         uint64 // times that packets waited for the pacer
	SentSacks            uint64 // selective acknowledgements sent
	RcvdSacks            uint64 // selective acknowledgements received
	KeptRequests         uint64 // request packets kept that arrived ahead of the expected one
}

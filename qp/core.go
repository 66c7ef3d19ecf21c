package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// Time is a point on the adapter's clock, in nanoseconds.
type Time = reliability.Time

// Config says what queue pair to make.
type Config struct {
	Num       uint32 // 24 bits
	Type      verbs.QPType
	Host      Host
	Memory    Memory
	Cap       verbs.QPCap // checked by the device
	Shared    SharedQueue // or nil
	SignalAll bool
	NoCredits bool
	MaxRDMA   int // operations that a UD queue pair may have under way; 0: it has none

	// ConfirmSends has requests of UC and UD complete when ConfirmSent is called, after
	// their packets have left or been refused, instead of when they are laid out.
	ConfirmSends bool

	// LocalBuffer is what the adapter's own receive buffer holds, in bytes:
	// it bounds the data that reads ask for at a time.
	LocalBuffer int

	// PortMTU is the active MTU of the port in bytes, which a datagram may not
	// exceed; 0 means MaxMTU.
	PortMTU int
}

// Core is a queue pair without I/O: work queues, state machine, requester and
// responder. Requests, packets and the time go in; packets, completions and a
// deadline come out. A Core is owned by one goroutine at a time.
//
// After any call that may have made packets ready (PostSend, HandlePacket,
// Advance, Modify), call Drain until it returns false, and DrainAck when the
// acknowledgement should wait no longer.
type Core struct {
	host   Host
	mem    Memory
	shared SharedQueue
	num    uint32
	typ    verbs.QPType
	class  wire.Class
	state  verbs.QPState

	signalAll    bool
	noCredits    bool
	confirmSends bool
	attr         verbs.QPAttr
	cap          verbs.QPCap
	path         wire.Path // of the peer (RC, UC)
	mtu          uint32    // of the path
	portMTU      uint32
	pkey         uint16

	requester
	responder

	rdma *rdma // UD: with peers that have agreed on it; nil: none

	counters Counters
	recorder Recorder
}

// requester is the sending half of a Core.
type requester struct {
	sq              sendQueue
	cur             uint32   // request that sends next, between sq.head and sq.tail
	next            wire.PSN // next PSN to send; behind top while packets are sent again
	una             wire.PSN // oldest PSN not acknowledged
	top             wire.PSN // one past the highest PSN sent
	endPos          uint64   // window coordinate one past the last started request
	burst           uint32   // packets laid out in a row
	softrnicPeer    bool     // the peer is an adapter like ours, see inPieces and unawaited
	sinceAckReq     uint32   // packets since one asked for an acknowledgement
	forceAckReq     bool     // ask with the next packet: it is a probe
	peerDelaysAcks  bool     // the peer acknowledges what does not ask, after AckDelay
	cautious        int      // messages that ask, see carefulFor
	lastAckReq      wire.PSN // the last packet that asked ...
	ackReqInFlight  bool     // ... if any has
	probing         bool     // send one packet only, and go on at resume
	stalled         bool     // counted a credit stall for the request at cur
	drained         bool     // SQ_DRAINED raised
	resume          wire.PSN // where sending goes on after a probe
	probeUnanswered bool     // a probe of a SEND or WRITE has not been answered ...
	probePSN        wire.PSN // ... and this is its PSN

	rdOut     uint32 // reads (parts of them) and atomics outstanding
	rdBytes   uint32 // bytes of reads outstanding
	readPart  uint32 // a longer read is asked for in parts of this many bytes
	readLimit uint32 // bytes of reads outstanding at most, what reads may grow to

	lastRefusal *verbs.RefusedError // RC: last refused packet since an answer, or nil
	unsent      []unsentPacket      // UC, UD: refused packets of requests not confirmed

	window     reliability.Window
	readWindow reliability.Window // of what comes back, as window is of what leaves
	retry      reliability.Retry
	rtt        reliability.RTT
	credits    reliability.Credits
}

// responder is the receiving half of a Core.
type responder struct {
	rq      recvQueue
	recv    reliability.Receiver
	acks    reliability.Acks
	res     reliability.Resources
	msg     inboundMessage
	cnpDue  bool
	cnpLast Time

	peerSeen    bool // a packet has come
	zeroCredits bool // the last acknowledgement advertised no credit
	established bool // COMM_EST raised
}

// New returns a queue pair in StateReset.
func New(cfg Config) *Core {
	c := &Core{
		host: cfg.Host, mem: cfg.Memory, shared: cfg.Shared, num: cfg.Num, typ: cfg.Type,
		signalAll: cfg.SignalAll, noCredits: cfg.NoCredits, confirmSends: cfg.ConfirmSends && cfg.Type != verbs.RC, cap: cfg.Cap, pkey: wire.DefaultPKey,
	}
	switch cfg.Type {
	case verbs.RC:
		c.class = wire.ClassRC
	case verbs.UC:
		c.class = wire.ClassUC
	default:
		c.class = wire.ClassUD
	}
	c.sq.limit, c.sq.maxSGE, c.sq.maxInline = uint32(cfg.Cap.MaxSendWR), max(1, cfg.Cap.MaxSendSGE), cfg.Cap.MaxInlineData
	c.rq.limit, c.rq.maxSGE = uint32(cfg.Cap.MaxRecvWR), max(1, cfg.Cap.MaxRecvSGE)
	c.readLimit = readLimit(cfg.LocalBuffer)
	if cfg.MaxRDMA > 0 && cfg.Type == verbs.UD {
		c.rdma = newRDMA(cfg.MaxRDMA)
	}
	c.portMTU = MaxMTU
	if cfg.PortMTU > 0 {
		c.portMTU = uint32(cfg.PortMTU)
	}
	c.resetAll()
	return c
}

// readLimit bounds outstanding read data by the buffer it arrives in, which
// holds twice what it is said to (see reliability.Window).
func readLimit(buffer int) uint32 {
	if buffer <= 0 {
		return reliability.DefaultWindow
	}
	return uint32(min(max(2*buffer, 16<<10), reliability.MaxWindow))
}

// Num is the queue pair number.
func (c *Core) Num() uint32 { return c.num }

// Type is the transport service.
func (c *Core) Type() verbs.QPType { return c.typ }

// State is the current state.
func (c *Core) State() verbs.QPState { return c.state }

// HasRDMA reports whether the queue pair, one of UD, has RDMA with peers.
func (c *Core) HasRDMA() bool { return c.rdma != nil }

// Counters returns what the queue pair has counted so far.
func (c *Core) Counters() Counters { return c.counters }

// InFlight is what is laid out and not acknowledged, in bytes of the window: a
// packet counts with its payload and PacketCost.
func (c *Core) InFlight() int {
	if c.typ != verbs.RC {
		return 0
	}
	return c.inFlight()
}

// PeerPath is where a connected queue pair sends to.
func (c *Core) PeerPath() wire.Path { return c.path }

// DestQPN is the peer's queue pair.
func (c *Core) DestQPN() uint32 { return c.attr.DestQPN }

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

// CanComplete reports whether send requests are outstanding and whether a receive is posted or taken
// by a message that is arriving: without either nothing completes before the next post. Receives of
// a shared queue are the queue's.
func (c *Core) CanComplete() (send, recv bool) {
	return c.sq.len() > 0 || c.rdma != nil && c.rdma.ops > 0, c.rq.len() > 0 || c.msg.held
}

// resetAll forgets all work and every attribute.
func (c *Core) resetAll() {
	c.ReleaseSharedRecv()
	c.resetRDMA()
	c.state = sReset
	c.attr = verbs.QPAttr{}
	c.path = wire.Path{}
	c.mtu = c.portMTU // what it stays for datagrams
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
	c.acks = reliability.Acks{}
	c.recv.Reset(0)
	c.res.Reset(0)
	c.msg = inboundMessage{wqe: RecvWQE{SGList: c.msg.wqe.SGList[:0]}}
	c.cnpDue, c.cnpLast, c.zeroCredits, c.established = false, 0, false, false
	c.recorder.addState(0, sReset)
}

// String names the queue pair for errors.
func (c *Core) String() string { return fmt.Sprintf("%v QP 0x%x", c.typ, c.num) }

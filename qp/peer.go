package qp

import (
	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// RDMA over UD without a connection. A Peer is the state that an RC queue pair
// keeps for its peer, except for ordering. PSNs start with 0 at both ends.
// docs/ud-rdma.md specifies the protocol.

// rdma is the RDMA-over-UD state of a Core.
type rdma struct {
	peers    map[uint32]*Peer // by local token
	lastPeer *Peer            // sender of the last packet

	ops    int // outstanding operations
	maxOps int
	free   []*rdmaOp // free list

	busy        []*Peer           // peers with outstanding operations
	active      fifo.Queue[*Peer] // peers that may have requests to send
	replies     fifo.Queue[rdmaReply]
	ackPeers    []*Peer // peers with a pending acknowledgement
	delayedAcks fifo.Queue[delayedAck]
	readBytes   int     // outstanding read data in bytes
	readWaiters []*Peer // peers blocked by readBytes
	deadline    reliability.Time
	freeFlights []*[reliability.ReplayWindow]slot // free list
}

// A Peer is a remote queue pair of a UD queue pair with RDMA.
type Peer struct {
	core        *Core
	path        wire.Path
	qpn         uint32
	mtu         uint32
	access      verbs.AccessFlags
	localToken  uint32 // token that the peer's packets must carry
	remoteToken uint32 // token that packets to the peer carry
	giveUp      int64  // nanoseconds

	connected, closed bool

	// Requester.
	waiting         fifo.Queue[*rdmaOp] // operations that are not completely sent
	outstanding     int                 // operations
	next, una       wire.PSN
	flight          *[reliability.ReplayWindow]slot // by PSN; nil if no packet is in flight
	inFlight        int                             // bytes in flight, see windowCost
	lostSlots       int                             // number of slots to retransmit
	txNum           uint32                          // transmission number of the next packet
	window          reliability.Window
	rtt             reliability.RTT
	timeouts        uint8 // consecutive timeouts
	lastProgress    reliability.Time
	deadline        reliability.Time
	ackReqsInFlight int    // packets in flight that request an acknowledgement
	sinceAckReq     uint8  // packets since the last requested acknowledgement
	cautious        uint16 // remaining packets of cautiousMessages
	active          bool
	waitsForReads   bool
	busyIndex       int // index in rdma.busy plus one; 0 if absent

	// Responder.
	replay         reliability.Replay
	atomicResults  *[reliability.ReplayWindow]uint64 // original values of atomics by PSN; nil if there were none
	pendingReplies int                               // number of queued replies
	ackPending     bool
	delayedAckAt   reliability.Time // deadline of the delayed acknowledgement; 0 if none

	lastRefusal    *verbs.RefusedError // last refused packet since the last response, or nil
	refusals       uint8               // refused attempts since then
	attemptRefused bool                // the current attempt was refused
}

// A PeerConfig describes the remote queue pair for AddPeer.
type PeerConfig struct {
	Path   wire.Path
	QPN    uint32
	Token  uint32 // token that the peer's packets must carry, unique in the queue pair
	MTU    int    // bytes; 0 means the MTU of the port
	Access verbs.AccessFlags
	Buffer int   // size of the peer's receive buffer in bytes; 0 if unknown
	GiveUp int64 // nanoseconds without a response until its requests fail; 0 means 10 s
}

// AddPeer adds a peer. It returns nil if the token is in use or RDMA over UD is
// disabled.
func (c *Core) AddPeer(cfg PeerConfig) *Peer {
	if c.rdma == nil || c.rdma.peers[cfg.Token] != nil {
		return nil
	}
	p := &Peer{core: c, path: cfg.Path, qpn: cfg.QPN, localToken: cfg.Token, mtu: c.portMTU, access: cfg.Access, giveUp: cfg.GiveUp}
	if cfg.MTU > 0 {
		p.mtu = min(p.mtu, uint32(cfg.MTU))
	}
	if p.giveUp <= 0 {
		p.giveUp = 10_000 * reliability.Millisecond
	}
	p.window.Reset(int(p.mtu), cfg.Buffer)
	if len(c.rdma.peers) == 0 {
		c.readWindow.ResetReads(int(c.portMTU), int(c.readLimit), true)
	}
	c.rdma.peers[cfg.Token] = p
	return p
}

// Connect sets the token of packets to the peer. Before the call, requests are
// not sent and requests of the peer are dropped.
func (p *Peer) Connect(token uint32) { p.remoteToken, p.connected = token, true }

// Remove removes the peer and completes its outstanding operations with
// WCWRFlushErr.
func (p *Peer) Remove() {
	if p.closed {
		return
	}
	p.closed = true
	delete(p.core.rdma.peers, p.localToken)
	if p.core.rdma.lastPeer == p {
		p.core.rdma.lastPeer = nil
	}
	p.failAll(verbs.WCWRFlushErr, flushed)
}

// MaxRDMA is the upper bound of Config.MaxRDMA.
const MaxRDMA = 1 << 16

func newRDMA(most int) *rdma { return &rdma{peers: map[uint32]*Peer{}, maxOps: most} }

// HasRDMA reports whether RDMA over UD is enabled.
func (c *Core) HasRDMA() bool { return c.rdma != nil }

// A slot is a request packet in flight.
type slot struct {
	op            *rdmaOp // nil if the request was answered
	off, n        uint32  // range of the operation's bytes
	received      uint32  // reads: bitmap of received response packets
	txNum         uint32
	sentAt        reliability.Time // time of the last transmission
	lost          bool
	ackReq        bool // the packet requests an acknowledgement
	retransmitted bool // sent more than once
}

// slotFor returns the slot of a PSN.
func (p *Peer) slotFor(psn wire.PSN) *slot { return &p.flight[psn%reliability.ReplayWindow] }

// findInFlight returns the slot of a PSN in flight, or nil.
func (p *Peer) findInFlight(psn wire.PSN) *slot {
	if p.flight == nil || psn.Less(p.una) || !psn.Less(p.next) {
		return nil
	}
	if s := p.slotFor(psn); s.op != nil {
		return s
	}
	return nil
}

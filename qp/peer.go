package qp

import (
	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// RDMA without a connection: what a UD queue pair knows of those with whom it has
// agreed on that. A Peer is the state that a pair of RC queue pairs would have, less
// what keeps order. Both ends have their PSNs begin with 0. The rules are in
// docs/ud-rdma.md.

// rdma is that half of a Core.
type rdma struct {
	peers    map[uint32]*Peer // by our token
	lastPeer *Peer            // whose packet came last

	ops    int // under way
	maxOps int
	free   []*rdmaOp // to be used again

	busy        []*Peer           // have requests under way
	active      fifo.Queue[*Peer] // may have requests to send
	replies     fifo.Queue[rdmaReply]
	ackPeers    []*Peer // have to be told what has been carried out
	delayedAcks fifo.Queue[delayedAck]
	readBytes   int     // bytes that reads have asked for
	readWaiters []*Peer // wait until that is less
	deadline    Time
	freeFlights []*[reliability.ReplayWindow]slot // to be used again
}

// Peer is one peer of a UD queue pair.
type Peer struct {
	core        *Core
	path        wire.Path
	qpn         uint32
	mtu         uint32
	access      verbs.AccessFlags
	localToken  uint32 // what it has to show
	remoteToken uint32 // what we have to show
	giveUp      int64  // nanoseconds

	connected, closed bool

	// Requests of ours.
	waiting         fifo.Queue[*rdmaOp] // not, or not all, sent
	outstanding     int                 // operations
	next, una       wire.PSN
	flight          *[reliability.ReplayWindow]slot // by PSN; nil: none is under way
	inFlight        int                             // bytes, as the window has them
	lostSlots       int                             // slots that are to leave again
	txNum           uint32                          // of what leaves next
	window          reliability.Window
	rtt             reliability.RTT
	timeouts        uint8 // timeouts since an answer
	lastProgress    Time
	deadline        Time
	ackReqsInFlight int    // packets under way that want an answer at once
	sinceAckReq     uint8  // packets since one did
	cautious        uint16 // packets that have to
	active          bool
	waitsForReads   bool
	busyIndex       int // place in rdma.busy and one; 0: not there

	// Its requests.
	replay         reliability.Replay
	atomicResults  *[reliability.ReplayWindow]uint64 // what atomics found, by PSN; nil: there were none
	pendingReplies int                               // that wait to leave
	ackPending     bool
	delayedAckAt   Time // 0: nothing waits to be owed

	lastRefusal    *verbs.RefusedError // last refused packet since an answer, or nil
	refusals       uint8               // attempts that were refused since then
	attemptRefused bool                // the current one was
}

// PeerConfig says who a peer is.
type PeerConfig struct {
	Path   wire.Path
	QPN    uint32
	Token  uint32 // that it has to show: no two peers of a queue pair have the same
	MTU    int    // bytes; 0: the port's
	Access verbs.AccessFlags
	Buffer int   // bytes its socket holds, 0: unknown
	GiveUp int64 // nanoseconds without any answer until its requests fail; 0: 10 s
}

// AddPeer lets a peer in. It returns nil if another has the token, or the queue pair
// has no RDMA.
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

// Connect says what to show to the peer. Before it, nothing leaves for it, and what
// it asks for is dropped.
func (p *Peer) Connect(token uint32) { p.remoteToken, p.connected = token, true }

// Remove lets the peer in no more, and completes what is under way with
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

// MaxRDMA is how many operations a UD queue pair may have under way at most.
const MaxRDMA = 1 << 16

func newRDMA(most int) *rdma { return &rdma{peers: map[uint32]*Peer{}, maxOps: most} }

// resetRDMA forgets all peers and, without completions, all requests.
func (c *Core) resetRDMA() {
	if c.rdma == nil {
		return
	}
	for _, p := range c.rdma.peers {
		p.closed = true
	}
	c.rdma = newRDMA(c.rdma.maxOps)
}

// flushRDMA completes all requests with WCWRFlushErr.
func (c *Core) flushRDMA() {
	if c.rdma == nil {
		return
	}
	for len(c.rdma.busy) > 0 {
		c.rdma.busy[0].failAll(verbs.WCWRFlushErr, flushed)
	}
}

// slot is a request packet that is under way.
type slot struct {
	op            *rdmaOp // nil: it has been answered
	off, n        uint32  // of the operation
	received      uint32  // reads: pieces that have come
	txNum         uint32
	sentAt        Time // when it left
	lost          bool
	ackReq        bool // it wants an answer at once
	retransmitted bool // it has left more than once
}

// slotFor is the slot of a PSN.
func (p *Peer) slotFor(psn wire.PSN) *slot { return &p.flight[psn%reliability.ReplayWindow] }

// findInFlight returns the slot of a PSN that is under way, nil if there is none.
func (p *Peer) findInFlight(psn wire.PSN) *slot {
	if p.flight == nil || psn.Less(p.una) || !psn.Less(p.next) {
		return nil
	}
	if s := p.slotFor(psn); s.op != nil {
		return s
	}
	return nil
}

package protocol

import (
	"github.com/softrnic/softrnic/internal/sparse"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// A Core is the point-to-point protocol state of one rank.
type Core struct {
	net         Net
	rank        int
	peers       sparse.Table[peer] // ranks that a packet, a request or a failure concerned
	failedPeers []int              // ranks, in the order of failure
	failCause   error              // set by FailAll: the error of all later requests

	posted     match.Queue[*Request] // posted receive queue
	unexpected match.Queue[*Message] // unexpected message queue
	requests   requestTable

	// Handler receives Active packets. The header and the payload are valid until it
	// returns. It may call the Core. A non-nil error is a protocol violation.
	Handler func(from int, h *envelope.Header, payload []byte) error

	// OnNotify receives the notifications of RDMA writes to local memory
	// (HandleNotify). A non-nil error is a protocol violation.
	OnNotify func(from int, notice uint32) error

	// OnSignature is called with a signed message of another rank that is unexpected (r
	// is nil), or whose receive r expects another signature. The message is received in
	// either case.
	OnSignature func(from int, e match.Envelope, sign uint64, r *Request)

	// RankName, if set, returns the host and process of a rank for errors.
	// LostError.Error calls it in any goroutine.
	RankName func(rank int) string

	// OnPeerFailed is called when a rank has failed, after the requests that waited for
	// it are complete.
	OnPeerFailed func(rank int)

	// Stats counts the operations of the Core.
	Stats Stats

	depth    int            // nesting of enter
	deferred []deferredCall // calls of the net during a call of the Core

	header envelope.Header // of the packet being sent
	key    [envelope.KeySize]byte
	free   []*Message // free list

	throttleWatermark, maxUnexpectedBytes int // constants of message.go, except in tests
}

// Stats counts the operations of a Core.
type Stats struct {
	Eager, Rendezvous uint64 // messages sent to other ranks, by protocol
	Self              uint64 // messages to the own rank
	Expected          uint64 // messages that matched a posted receive
	Unexpected        uint64
	Early             uint64 // packets that arrived out of order
	Stalled           uint64 // packets queued because the net was full
	Throttled         uint64 // times that a rank was throttled
	Repacked          uint64 // messages that fell back to RendezvousCopy
	Dropped           uint64 // packets of failed ranks, or without a handler
}

// New returns the core of a rank in a job of size ranks. Until Attach only messages to
// the own rank are possible.
func New(rank, size int) *Core {
	return &Core{rank: rank, peers: sparse.Make[peer](size), throttleWatermark: throttleWatermark, maxUnexpectedBytes: maxUnexpectedBytes}
}

// Attach sets the net. It is called once, before any call about another rank.
func (c *Core) Attach(net Net) { c.net = net }

// Pending returns the number of posted receives, of unexpected messages, and of
// requests that a peer refers to by number.
func (c *Core) Pending() (receives, messages, inFlight int) {
	return c.posted.Len(), c.unexpected.Len(), c.requests.used
}

// Backlog returns the number of operations queued for a rank. A sender of an unbounded
// number of Active packets should check it for backpressure.
func (c *Core) Backlog(rank int) int { return c.peerState(rank).queue.Len() }

// ActiveBacklog returns the number of Active packets in the backlog of a rank.
func (c *Core) ActiveBacklog(rank int) int { return c.peerState(rank).queuedActives }

// Exchanged reports whether ordered packets were sent or queued to a rank, and whether one was
// received from it.
func (c *Core) Exchanged(rank int) (sent, received bool) {
	p := c.peerState(rank)
	return p.sendSeq != 0 || p.queue.Len() > 0, p.recvSeq != 0
}

// A deferredCall is a call of the net that arrived during a call of the Core.
type deferredCall struct {
	f          func(*Core, deferredCall)
	rank       int
	transferID uint64
	err        error
	r          *Request
}

// enter and exit bracket each call that may call the net. The calls that the net makes
// in between are deferred and run by the outermost exit, when no state is half changed.
func (c *Core) enter() { c.depth++ }

func (c *Core) exit() {
	if c.depth == 1 && len(c.deferred) > 0 {
		for i := 0; i < len(c.deferred); i++ { // the list may grow
			c.deferred[i].f(c, c.deferred[i])
		}
		clear(c.deferred)
		c.deferred = c.deferred[:0]
	}
	c.depth--
}

// deferIfBusy queues l if a call of the Core is in progress, and reports whether it
// did.
func (c *Core) deferIfBusy(l deferredCall) bool {
	if c.depth > 0 {
		c.deferred = append(c.deferred, l)
	}
	return c.depth > 0
}

// newHeader initializes and returns the header of the packet being sent.
func (c *Core) newHeader(kind envelope.Kind, id uint64) *envelope.Header {
	c.header = envelope.Header{Kind: kind, ID: id, Source: uint32(c.rank)}
	return &c.header
}

// complete finishes a request and returns it to the program.
func (c *Core) complete(r *Request, err error) {
	c.requests.remove(r)
	if r.exposed != nil {
		c.net.DeregisterMemory(r.exposed)
		r.exposed = nil
	}
	r.state, r.Done = stateIdle, true
	switch {
	case err != nil:
		r.Err, r.Bytes = err, 0
	case r.length > uint64(len(r.Buf)):
		r.Err = r.truncatedError()
	}
	if r.OnDone != nil {
		c.deferred = append(c.deferred, deferredCall{f: func(_ *Core, l deferredCall) { l.r.OnDone(l.r) }, r: r})
	}
}

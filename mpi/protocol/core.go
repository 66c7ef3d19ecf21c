package protocol

import (
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/match"
)

// Core is the point-to-point protocol of one rank.
type Core struct {
	net   Net
	rank  int
	peers []peer
	lost  []int // ranks
	ended error // why nothing begins or waits any more: End

	posted     match.Queue[*Request] // receives that wait for a message
	unexpected match.Queue[*Message] // messages that wait for a receive
	requests   table

	// Handler is given Active packets. Header and payload are its own until it
	// returns. It may call the Core. An error is a breach of the protocol.
	Handler func(from int, h *envelope.Header, payload []byte) error

	// Noticed is told of writes to memory here, by Notified. An error is a breach of
	// the protocol.
	Noticed func(from int, notice uint32) error

	// Strange is called with a message of another rank that has a signature and no
	// receive yet (r is nil), or one that expects another signature: such a message is
	// received all the same.
	Strange func(from int, e match.Envelope, sign uint64, r *Request)

	// Name, if it is set, says where and which process a rank is, for errors. It is called
	// by LostError.Error, in any goroutine.
	Name func(rank int) string

	// Gone is told that a rank is lost, when all that waited for it has ended.
	Gone func(rank int)

	// Stats counts what the Core does.
	Stats Stats

	depth int    // of calls of the Core
	late  []late // what the net told meanwhile

	header envelope.Header // of the packet that leaves
	key    [envelope.KeySize]byte
	free   []*Message // to be used again

	maxHeld, maxFlood int // those of message.go, but in tests
}

// Stats counts what a Core has done.
type Stats struct {
	Eager, Rendezvous uint64 // messages sent to other ranks: at once, and announced
	Self              uint64 // to ourselves
	Expected          uint64 // messages that found their receive waiting
	Unexpected        uint64
	Early             uint64 // packets that came before one that was sent earlier
	Stalled           uint64 // packets that had to wait for room
	Throttled         uint64 // times that a rank was asked to announce its messages
	Repacked          uint64 // messages that went in packets because their memory could not be moved
	Dropped           uint64 // packets of lost ranks, and without a handler
}

// New returns the core of a rank in a job of size ranks. Until Attach it can
// do nothing but talk to itself.
func New(rank, size int) *Core {
	return &Core{rank: rank, peers: make([]peer, size), maxHeld: maxHeld, maxFlood: maxFlood}
}

// Attach gives the core its net.
func (c *Core) Attach(net Net) { c.net = net }

// Pending is how many receives, messages without a receive, and requests that
// others know of there are.
func (c *Core) Pending() (receives, messages, underway int) {
	return c.posted.Len(), c.unexpected.Len(), c.requests.used
}

// Backlog is how many packets wait for room on the way to a rank. Who sends
// Active packets without end should look at it.
func (c *Core) Backlog(rank int) int { return c.peers[rank].queue.Len() }

// ActiveBacklog is how many of them are Active.
func (c *Core) ActiveBacklog(rank int) int { return c.peers[rank].actives }

// Exchanged reports whether ordered packets were sent or queued to a rank, and whether one was
// received from it.
func (c *Core) Exchanged(rank int) (sent, received bool) {
	p := &c.peers[rank]
	return p.seq != 0 || p.queue.Len() > 0, p.next != 0
}

// late is what the net told while the Core was about something else.
type late struct {
	f    func(*Core, late)
	rank int
	move uint64
	err  error
	r    *Request
}

// enter and leave are around all that may call the net. What the net tells in
// between is heeded at the end, when nobody is in the middle of anything.
func (c *Core) enter() { c.depth++ }

func (c *Core) leave() {
	if c.depth == 1 && len(c.late) > 0 {
		for i := 0; i < len(c.late); i++ { // which may grow
			c.late[i].f(c, c.late[i])
		}
		clear(c.late)
		c.late = c.late[:0]
	}
	c.depth--
}

// postpone reports whether a call of the net's has to wait, and keeps it if so.
func (c *Core) postpone(l late) bool {
	if c.depth > 0 {
		c.late = append(c.late, l)
	}
	return c.depth > 0
}

// begin begins the header of a packet.
func (c *Core) begin(kind envelope.Kind, id uint64) *envelope.Header {
	c.header = envelope.Header{Kind: kind, ID: id, Source: uint32(c.rank)}
	return &c.header
}

// done is the end of a request: from now on it is the program's.
func (c *Core) done(r *Request, err error) {
	c.requests.remove(r)
	if r.exposed != nil {
		c.net.Hide(r.exposed)
		r.exposed = nil
	}
	r.state, r.Done = idle, true
	switch {
	case err != nil:
		r.Err, r.Bytes = err, 0
	case r.length > uint64(len(r.Buf)):
		r.Err = r.truncated()
	}
	if r.Then != nil {
		c.late = append(c.late, late{f: func(_ *Core, l late) { l.r.Then(l.r) }, r: r})
	}
}

package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// Core is one end of a connection. It has no lock.
type Core struct {
	cfg     Config
	peer    Peer
	started bool

	credits  flow.Credits
	sender   flow.Sender
	receiver flow.Receiver
	slots    slots

	out        []verbs.SendWR // to be posted, in this order
	sges       []verbs.SGE    // of out
	in         []verbs.RecvWR // to be posted
	controls   controls
	advertised advertisedReceives

	received uint32 // sequence number of the last message that came
	carrying uint32 // messages with data that came and were kept (NonDiscards)
	carried  uint32 // messages with data that were sent
	position uint64 // bytes that Read has returned

	closing               bool   // CloseWrite was called
	closingWithoutDisConn bool   // Leave was called
	flushed               bool   // and all that was written has arrived at the peer's adapter
	disConnSeq            uint64 // number of our DisConn among the controls, when it is posted
	disConnDelivered      bool   // and it has arrived at the peer's adapter
	abortSeq              uint64 // number of our AbortConn among the controls, until it has arrived there; 0 for none
	peerClosed            bool   // the peer's DisConn has come
	err                   error
	holdData              bool

	peerSource   peerSource // the peer's memory with data for us
	sourceRead   sourceRead // what is read of it
	offer        offer      // our memory with data for the peer
	sink         sink       // our memory that waits for data
	peerSink     peerSink   // the peer's memory that waits for data
	mode         modes
	oob          urgentData
	bufSize      bufferResize
	ring         ringChange
	probing      bool // a keepalive is under way
	receiveQuery receiveQuery
	stats        Stats
}

// New makes the end of a connection that begins: its receives are there to be
// posted. [Core.Start] must follow before anything else.
func New(cfg Config) *Core {
	c := &Core{cfg: cfg}
	c.controls.depth = ControlQueue
	c.slots.init(&cfg)
	c.prepareReceives(cfg.initialReceives())
	return c
}

// Start begins the exchange with what the negotiation has found out.
func (c *Core) Start(p Peer) {
	c.peer, c.started = p, true
	c.credits.Start(p.Bufs)
	c.mode = newModes(p.FlowControl)
	cfg := &c.cfg
	c.ring.size, c.ring.maxSize = len(cfg.Ring.Bytes)-cfg.RingSlack(), cfg.ringCapacity()
	switch p.FlowControl {
	case flow.Credit:
		c.slots.dropSmall()
		c.bufSize.start(cfg, &p)
		c.sender = flow.NewCreditSender(cfg.Send.Bytes, cfg.slotBytes(), bsdh.HeaderBytes, c.PeerBufferBytes(), cfg.Queue, &c.credits)
		c.receiver = flow.NewCreditReceiver(cfg.largeReceives())
	case flow.RDMA:
		c.sender = flow.NewRDMASender(cfg.Send.Bytes[:cfg.ringCapacity()], cfg.initialRing(), int(p.Ring), cfg.Queue, &c.credits)
		c.receiver = flow.NewRDMAReceiver(cfg.Ring.Bytes, cfg.Receives)
	case flow.NIC:
		c.sender = flow.NewNICSender(cfg.Send.Bytes[:cfg.ringCapacity()], cfg.initialRing(), int(p.Ring), int(p.Window), cfg.Queue)
		c.receiver = flow.NewNICReceiver(cfg.Ring.Bytes, cfg.Window, cfg.Receives)
	}
	c.advertised.count = c.slots.posted // by Hello or HelloAck
	c.refillReceives()
	c.scheduleCreditUpdate()
	c.buildRequests()
}

// Err is why the connection failed, nil while it has not.
func (c *Core) Err() error { return c.err }

// Fail ends the connection. The first cause counts.
func (c *Core) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// PeerDisconnected ends the connection because the peer has, below SDP. That is as it should
// be when both halves have ended.
func (c *Core) PeerDisconnected(why error) {
	if !c.BothClosed() {
		c.Fail(fmt.Errorf("%w: %w", ErrReset, why))
	}
}

// ErrProtocol is in the error of a connection whose peer does not keep to the
// protocol.
var ErrProtocol = errors.New("the peer does not keep to SDP")

// violation ends the connection because of what the peer did.
func (c *Core) violation(format string, args ...any) {
	c.Fail(fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...)))
}

// Write takes as much of p as the flow control does, and returns how much that
// was: 0 if the caller has to wait for a completion. While memory is offered it
// is 0, too: what follows must stay behind that.
func (c *Core) Write(p []byte) int { return c.write(p, false) }

// write is Write, or SendUrgent.
func (c *Core) write(p []byte, urgent bool) (n int) {
	if c.err != nil || c.closing || c.offer.live {
		return 0
	}
	for n < len(p) {
		k := c.sender.Write(p[n:])
		if k == 0 {
			break
		}
		n += k
		c.peerSink.live = false // the data voids it, here and there
		c.receiveQuery.wantLend = false
		if urgent && n == len(p) {
			c.oob.setMark(c.sender.EndMessage())
		}
		c.buildRequests()
	}
	c.stats.addWritten(n)
	return n
}

// Read copies out what has come. With nothing there it returns 0; the end of
// the stream is [Core.Finished].
func (c *Core) Read(p []byte) (n int) {
	n = c.receiver.Read(p)
	if n > 0 {
		c.position += uint64(n)
		c.stats.addRead(n)
		c.postPending()
	}
	return n
}

// postPending posts and says what there is to post and say.
func (c *Core) postPending() {
	if c.err == nil {
		c.refillReceives()
		c.scheduleCreditUpdate()
		c.buildRequests()
	}
}

// Buffered is how many bytes wait to be read.
func (c *Core) Buffered() int { return c.receiver.Buffered() }

// RingHalfFull reports whether more than half of our ring waits to be read. Credit has none.
func (c *Core) RingHalfFull() bool {
	r, ok := c.receiver.(flow.RingReceiver)
	return ok && r.HalfFull()
}

// Finished reports whether the peer has sent its last byte and all is read.
func (c *Core) Finished() bool { return c.peerClosed && c.receiver.Buffered() == 0 }

// Writable reports whether Write would take something.
func (c *Core) Writable() bool { return c.sender.Free() > 0 && !c.offer.live }

// HeldBytes is how many bytes wait here for the software to post them.
func (c *Core) HeldBytes() int { return c.sender.Unposted() }

// HoldData keeps what is held back where it is, while it is on: what arrives is
// handled and answered, and no data leaves. So it is outside of calls with the
// RDMA design, which makes progress in calls only (section 4.2).
func (c *Core) HoldData(on bool) { c.holdData = on }

// ReleaseHeld lets go what Calm has kept and may leave by now.
func (c *Core) ReleaseHeld() { c.buildRequests() }

// Flush lets what waits for company go without, as far as it may leave by now.
func (c *Core) Flush() {
	if s, ok := c.sender.(*flow.NICSender); ok {
		s.Flush()
	}
	c.buildRequests()
}

// Sends returns the requests to post, in order. They are the caller's until it
// calls the core again; after Posted, the memory they name still is the core's
// until they complete.
func (c *Core) Sends() []verbs.SendWR { return c.out }

// Receives returns the receives to post. They go first: what Sends says may
// promise them.
func (c *Core) Receives() []verbs.RecvWR { return c.in }

// ClearPosted empties what Sends and Receives return: all of it has been posted.
func (c *Core) ClearPosted() { c.out, c.sges, c.in = c.out[:0], c.sges[:0], c.in[:0] }

// buildRequests turns what may go out into requests: data in its order, and in their
// places among it the messages that have one.
func (c *Core) buildRequests() {
	if !c.started || c.err != nil {
		return
	}
	c.postUnordered()
	if c.postOrdered() && !c.holdData && !c.owesSourceReply() {
		for m, ok := c.sender.Next(); ok; m, ok = c.sender.Next() {
			c.postData(m)
		}
		c.postOrdered()
	}
	c.sendReceiveQuery()
	c.postCreditUpdate()
	c.requestFinalAck()
}

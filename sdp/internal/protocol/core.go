package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// A Core is the SDP state machine of one side of a connection. It is not safe for concurrent use.
type Core struct {
	cfg     Config
	peer    Peer
	started bool

	credits  flow.Credits
	sender   flow.Sender
	receiver flow.Receiver
	slots    slots

	out        []verbs.SendWR // to be posted, in this order
	sges       []verbs.SGE    // storage of the lists in out
	in         []verbs.RecvWR // to be posted
	controls   controls
	advertised advertisedReceives

	received uint32 // sequence number of the last received message
	carrying uint32 // data messages received and kept (NonDiscards)
	carried  uint32 // data messages sent
	position uint64 // bytes returned by Read

	closing               bool   // CloseWrite was called
	closingWithoutDisConn bool   // CloseWithoutDisConn was called
	flushed               bool   // then the peer's adapter has acknowledged all data
	disConnSeq            uint64 // control number of the local DisConn once posted
	disConnDelivered      bool   // the peer's adapter has acknowledged the DisConn
	abortSeq              uint64 // control number of the local AbortConn until it is acknowledged; 0 for none
	peerClosed            bool   // the peer's DisConn has arrived
	err                   error
	holdData              bool

	peerSource   peerSource // the peer's memory, readable by the local side
	sourceRead   sourceRead // outstanding RDMA READ of peerSource
	offer        offer      // local memory, readable by the peer
	sink         sink       // local memory, writable by the peer
	peerSink     peerSink   // the peer's memory, writable by the local side
	mode         modes
	oob          urgentData
	bufSize      bufferResize
	ring         ringChange
	probing      bool // a keepalive is outstanding
	receiveQuery receiveQuery
	stats        Stats
}

// New returns a Core with its initial receives in Receives. Call [Core.Start] before any other
// method but Receives and ClearPosted.
func New(cfg Config) *Core {
	c := &Core{cfg: cfg}
	c.controls.depth = ControlQueue
	c.slots.init(&cfg)
	c.prepareReceives(cfg.initialReceives())
	return c
}

// Start begins the data transfer with the negotiated parameters.
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
	c.advertised.count = c.slots.posted // advertised by Hello or HelloAck
	c.refillReceives()
	c.scheduleCreditUpdate()
	c.buildRequests()
}

// Err returns the cause of the connection's failure, or nil.
func (c *Core) Err() error { return c.err }

// Fail fails the connection with err. Only the first call has an effect.
func (c *Core) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// PeerDisconnected reports that the peer has disconnected below SDP, which is an error unless
// both halves of the stream are closed.
func (c *Core) PeerDisconnected(cause error) {
	if !c.BothClosed() {
		c.Fail(fmt.Errorf("%w: %w", ErrReset, cause))
	}
}

// ErrProtocol reports a protocol violation by the peer.
var ErrProtocol = errors.New("sdp: protocol violation by peer")

// violation fails the connection because of a protocol violation by the peer.
func (c *Core) violation(format string, args ...any) {
	c.Fail(fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...)))
}

// postPending refills the receives and builds all requests that are due.
func (c *Core) postPending() {
	if c.err == nil {
		c.refillReceives()
		c.scheduleCreditUpdate()
		c.buildRequests()
	}
}

// ClearPosted empties Sends and Receives after the caller has posted both.
func (c *Core) ClearPosted() { c.out, c.sges, c.in = c.out[:0], c.sges[:0], c.in[:0] }

// Stats are the counters of a connection.
type Stats struct {
	BytesWritten, BytesRead uint64 // by the application
	MessagesSent, Controls  uint64 // sent, with and without data
	MessagesReceived        uint64 // received, with data
	BytesReceived           uint64
	CreditUpdates           uint64 // messages that advertised local receives
	ZeroCopySent            uint64 // bytes that the peer has read from, or the local side has written from, application memory
	ZeroCopyReceived        uint64
	Offers, OffersRefused   uint64 // SrcAvail sent; of these, refused or cancelled
	Sinks, SinksCrossed     uint64 // SinkAvail sent; of these, crossed with data
}

func (s *Stats) addWritten(n int)  { s.BytesWritten += uint64(n) }
func (s *Stats) addRead(n int)     { s.BytesRead += uint64(n) }
func (s *Stats) addReceived(n int) { s.MessagesReceived++; s.BytesReceived += uint64(n) }

// Stats returns a snapshot of the counters.
func (c *Core) Stats() Stats { return c.stats }

// Levels are the current fill levels of a connection's buffers, in bytes, and its receives.
type Levels struct {
	Send     int // send buffer: written and not known to be acknowledged
	Held     int // of Send: not posted yet
	PeerUsed int // peer's receive buffer: sent and not known to be read; 0 with NIC, where only its adapter knows
	Receive  int // receive buffer: arrived and unread
	Size     int // of either buffer, N x S
	Credits  int // data messages for which the peer has receives, as last advertised; 0 with NIC, where only its adapter knows
	Receives int // posted
}

// Levels returns the current fill levels. Arrived data counts from the handling of its
// completion.
func (c *Core) Levels() Levels {
	l := Levels{Size: c.cfg.ringCapacity(), Receives: c.slots.posted}
	if !c.started {
		return l
	}
	l.Send, l.Held, l.Receive = c.sender.Unsent(), c.sender.Unposted(), c.receiver.Buffered()
	if s, ok := c.sender.(interface{ PeerUsed() int }); ok {
		l.PeerUsed = s.PeerUsed()
	}
	if c.peer.FlowControl != flow.NIC {
		l.Credits = max(0, c.credits.Available()-flow.ReservedCredits)
	}
	return l
}

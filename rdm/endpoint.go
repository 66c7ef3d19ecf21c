package rdm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Endpoint talks to any number of peers by one UD queue pair. Its methods may be
// called from any goroutine.
//
// One lock guards all of it. Who waits for something serves the network: the first
// one sleeps in the adapter, without the lock, the others until he wakes them.
type Endpoint struct {
	o    Options
	addr Addr
	mtu  int

	mu   sync.Mutex
	port *datagram.Port
	core *nack.Core
	err  error // why it is of no further use

	peers         []*Peer // by number; nil: free
	free          []int   // numbers
	byIncarnation map[incarnation]*Peer
	byID          map[identity]*Peer
	lastPeer      *Peer   // whose datagram came last
	connecting    []*Peer // wait for an answer to our greeting

	inbox       recvQueue
	currentPeer *Peer // whose packet is handled
	deliver     func(message []byte)
	wcs         [64]verbs.WC
	timer       *time.Timer
	timerAt     nack.Time // when it rings, 0 if it does not
	dispatching bool      // a look at what has come; what that sends leaves at its end

	leading    bool               // somebody sleeps in the adapter for all
	leaderCtx  context.Context    // ends his sleep
	wakeLeader context.CancelFunc // of kick
	waiters    []chan struct{}    // of those who wait for him
	changed    bool               // something that somebody may wait for

	memory      regionTable
	ops         opTable
	native      nativeAdapter
	served      chan struct{} // closed when the service has ended; nil if there is none
	serviceCtx  context.Context
	stopService context.CancelFunc // of over: nothing more is to be served
	head        [headSize]byte
	stats       Stats
}

// incarnation tells peers apart by where their datagrams come from.
type incarnation struct {
	addr netip.Addr
	qpn  uint32
}

// identity is what the lives of a peer have in common.
type identity struct {
	at netip.AddrPort
	id uint64
}

// pollInterval is how often somebody looks what has come, if nobody else does: so that
// others are answered, and do not take us for lost.
const pollInterval = 20 * time.Millisecond

// Open makes an endpoint on a device, which it does not close. Without a device it is a
// verbs.ErrInvalid.
func Open(dev verbs.Device, o Options) (*Endpoint, error) {
	if err := verbs.CheckDevice(dev); err != nil {
		return nil, fmt.Errorf("rdm: open: %w", err)
	}
	o.setDefaults()
	e := &Endpoint{o: o, byIncarnation: map[incarnation]*Peer{}, byID: map[identity]*Peer{}}
	e.deliver = e.handleMessage
	// Epochs are sixteenths of a second: a later life has a later one, for 4 years.
	epoch := max(1, uint32(time.Now().UnixMilli()*16/1000))
	p, err := datagram.Open(dev, datagram.Options{Self: uint32(o.ID), Epoch: epoch, Receives: o.Receives, Packets: o.Packets, GiveUp: o.GiveUp,
		QueuePair: e.requestNative, OnDatagram: e.handleDatagram, OnCompletion: e.handleNativeCompletion, OnFailure: e.fail,
		OnRefused: e.onSendRefused, Wake: func() { e.timer.Reset(0) }})
	if err != nil {
		return nil, err
	}
	e.port, e.core = p, p.Core
	e.addr = Addr{Address: p.Address(), ID: o.ID}
	e.mtu = e.addr.MTU
	e.leaderCtx, e.wakeLeader = context.WithCancel(context.Background())
	e.serviceCtx, e.stopService = context.WithCancel(context.Background())
	e.ops.init(o.Ops)
	if err := e.initNative(); err != nil {
		_ = p.Close()
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.timer, e.timerAt = time.AfterFunc(pollInterval, e.onTimer), p.Now()+nack.Time(pollInterval)
	return e, nil
}

// Addr is where the endpoint is.
func (e *Endpoint) Addr() Addr { return e.addr }

// MaxMessage is the length of the longest message in bytes: 32 datagrams. To a peer
// with a smaller MTU it is less.
func (e *Endpoint) MaxMessage() int {
	return datagram.MaxMessageSize(e.mtu, datagram.MaxDatagrams) - tagSize
}

// Stats counts what an endpoint has done. Of the core it has the packets.
type Stats struct {
	nack.Stats
	Peers          int    // that are there now
	UnknownSenders uint64 // datagrams of nobody whom we know
	Forged         uint64 // greetings that say another address than theirs
	Refused        uint64 // peers that may not talk to us
	BacklogDrops   uint64 // packets that came while Options.Backlog was used up
	Malformed      uint64 // messages and answers that make no sense; their peer is cut off
	Served         uint64 // operations of peers, and of these
	Denied         uint64 // were not permitted
}

// Stats returns what has been counted.
func (e *Endpoint) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Stats = e.core.Stats
	for _, p := range e.byIncarnation {
		if p.state == open {
			s.Peers++
		}
	}
	return s
}

// fail ends the endpoint: its queue pair is of no further use.
func (e *Endpoint) fail(err error) {
	if e.err != nil || err == nil {
		return
	}
	e.err = err
	for _, p := range e.peers {
		if p != nil {
			e.failPeer(p, err)
		}
	}
	e.changed = true
}

// Close ends the endpoint: what is under way fails with ErrClosed. What has been
// sent and not acknowledged may be lost. Regions are deregistered. Closing twice is
// safe.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	if e.err == ErrClosed {
		e.mu.Unlock()
		return nil
	}
	e.poll() // and what is owed leaves
	e.err = nil
	e.fail(ErrClosed)
	e.timer.Stop()
	e.stopService()
	e.wakeLeader()
	e.wakeAll()
	for e.leading { // nobody may be in the adapter any more
		e.waitAsFollower(context.Background())
	}
	served := e.served
	e.mu.Unlock()
	if served != nil {
		<-served
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.memory.closeAll()
	err := e.closeNative()
	err = errors.Join(err, e.port.Close())
	for _, op := range e.ops.slots { // the adapter has touched their memory until now
		if op != nil {
			e.completeOp(op, ErrClosed)
		}
	}
	return err
}

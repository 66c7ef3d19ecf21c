package rdm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/verbs"
)

// An Endpoint communicates with any number of peers over one UD queue pair. Its
// methods may be called from any goroutine.
//
// One mutex guards all state. Waiting goroutines follow the leader/follower
// pattern: the leader blocks in the adapter without the mutex, the followers
// block until the leader wakes them.
type Endpoint struct {
	o    Options
	addr Addr
	mtu  int

	mu   sync.Mutex
	port *datagram.Port
	core *nack.Core
	err  error // permanent failure, or ErrClosed

	peers         []*Peer // by number; nil if free
	free          []int   // free peer numbers
	byIncarnation map[incarnation]*Peer
	byID          map[identity]*Peer
	lastPeer      *Peer                // sender of the last datagram
	connecting    []*Peer              // peers with a handshake in progress
	pendingAllow  map[incarnation]bool // senders of hellos that wait for Options.Allow

	inbox       recvQueue
	sender      *Peer // sender of the packet being handled
	deliver     func(message []byte)
	completions progress.Completions
	timer       *time.Timer
	timerAt     nack.Time // expiry of timer, 0 if stopped
	dispatching bool      // completions or events are being handled; flush is deferred to the end

	progress *progress.Engine
	changed  bool // state changed that a waiter may wait for

	memory      regionTable
	ops         opTable
	native      nativeAdapter
	served      chan struct{} // closed when the service goroutine ends; nil if there is none
	serviceCtx  context.Context
	stopService context.CancelFunc // cancels serviceCtx
	head        [headSize]byte
	stats       Stats
}

// An incarnation identifies the current instance of a peer by the source of its
// datagrams.
type incarnation struct {
	addr netip.Addr
	qpn  uint32
}

// An identity identifies a peer across restarts.
type identity struct {
	at netip.AddrPort
	id uint64
}

// pollInterval is the interval of polling when no goroutine waits, so that
// peers get responses and do not consider the endpoint failed.
const pollInterval = 20 * time.Millisecond

// Open creates an endpoint on a device. Closing the endpoint does not close the
// device. A nil device is a verbs.ErrInvalid.
func Open(dev verbs.Device, o Options) (*Endpoint, error) {
	if err := adapter.CheckDevice(dev); err != nil {
		return nil, fmt.Errorf("rdm: open: %w", err)
	}
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("rdm: open: %w", err)
	}
	e := &Endpoint{o: o, byIncarnation: map[incarnation]*Peer{}, byID: map[identity]*Peer{}, pendingAllow: map[incarnation]bool{}}
	e.deliver = e.handleMessage
	// Epochs count sixteenths of a second, so that they increase with each restart.
	// They wrap after 2^31 units, about 4 years.
	epoch := max(1, uint32(time.Now().UnixMilli()*16/1000))
	p, err := datagram.Open(dev, datagram.Options{Self: uint32(o.ID), Epoch: epoch, Receives: o.Receives, Packets: o.Packets, GiveUp: o.GiveUp,
		QueuePair: e.requestNative, OnDatagram: e.handleDatagram, OnCompletion: e.handleNativeCompletion, OnFailure: e.fail,
		OnRefused: e.onSendRefused, Wake: func() { e.timer.Reset(0) }})
	if err != nil {
		return nil, err
	}
	e.port, e.core, e.completions.CQ = p, p.Core, p.CQ
	e.addr = newAddr(p.Address(), o.ID)
	e.mtu = e.addr.MTU
	e.progress = progress.New(&e.mu, (*source)(e))
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

// Addr returns the address of the endpoint.
func (e *Endpoint) Addr() Addr { return e.addr }

// MaxMessage returns the maximum message length in bytes: 32 datagrams. It is
// less for a peer with a smaller MTU.
func (e *Endpoint) MaxMessage() int {
	return datagram.MaxMessageSize(e.mtu, datagram.MaxDatagrams) - tagSize
}

// fail fails the endpoint and all peers. Later calls have no effect.
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

// Close closes the endpoint. Outstanding operations fail with ErrClosed,
// unacknowledged messages may be lost, and regions are deregistered. Closing
// twice is safe.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	if e.err == ErrClosed {
		e.mu.Unlock()
		return nil
	}
	e.progress.Poll() // sends pending acknowledgements
	e.err = nil
	e.fail(ErrClosed)
	e.timer.Stop()
	e.stopService()
	e.progress.Notify()
	_ = e.progress.Wait(context.Background(), (*noLeader)(e)) // the leader has left the adapter
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
	for _, op := range e.ops.slots { // the adapter no longer accesses their memory
		if op != nil {
			e.completeOp(op, ErrClosed)
		}
	}
	return err
}

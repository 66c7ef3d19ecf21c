package ud

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/internal/sparse"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A Fabric carries packets by datagrams of one UD queue pair.
type Fabric struct {
	dev        verbs.Device
	host       fabric.Host
	book       fabric.Book
	o          Options
	pollShared func() // of the fabric that this one is a part of, or nil
	rank       int

	port *datagram.Port
	core *nack.Core // the port's

	ranks int
	links sparse.Table[link] // by rank

	// Send side.
	unsent         int  // messages to be sent together
	sentSinceFlush bool // a packet was sent since the last Flush
	dispatching    bool // completions are being handled; packets are sent at the end
	frame          [envelope.Size]byte

	// Receive side.
	completions progress.Completions
	from        int // rank of the packet being handled
	deliver     func(message []byte)

	timer *vtime.Timer
	armed nack.Time // deadline of the timer; 0 if it is not set

	ctx    context.Context
	cancel context.CancelFunc
	work   vtime.Group
	closed bool
	stats  struct{ unknownSenders, malformed uint64 }
}

// New returns the fabric of a rank on a device, which it does not close. The other
// ranks can look it up once all ranks have called Book.Fence.
func New(dev verbs.Device, host fabric.Host, book fabric.Book, o Options) (*Fabric, error) {
	return NewPart(dev, host, book, nil, o)
}

// NewPart returns the fabric of a rank that is a part of another fabric, which polls the
// completion queue of both: pollShared does, with the engine's lock held and no leader. Poll
// and Block are not called then.
func NewPart(dev verbs.Device, host fabric.Host, book fabric.Book, pollShared func(), o Options) (*Fabric, error) {
	attr, err := dev.QueryPort(1)
	if err != nil {
		return nil, err
	}
	o.setDefaults(attr.ActiveMTU.Bytes())
	f := &Fabric{dev: dev, host: host, book: book, o: o, pollShared: pollShared, rank: book.Rank(), ranks: book.Size(), links: sparse.Make[link](book.Size())}
	f.deliver = f.handleMessage
	f.port, err = datagram.Open(dev, datagram.Options{Self: uint32(f.rank), Peers: book.Size(), Epoch: max(1, uint32(vtime.Now().Unix())),
		MaxMessage: envelope.Size + o.Eager, Receives: o.Receives, FirstReceives: max(minReceives, o.Receives/16), Packets: o.Packets, GiveUp: o.GiveUp,
		OnDatagram: f.handleDatagram, OnFailure: f.failAll, Wake: func() { f.timer.Reset(0) }})
	if err != nil {
		return nil, err
	}
	f.core, f.completions.CQ = f.port.Core, f.port.CQ
	if err := book.Put(addressKey(f.rank), f.port.Address().String()); err != nil {
		return nil, errors.Join(err, f.port.Close())
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.timer, f.armed = vtime.AfterFunc(pollInterval, f.onTimer), f.clock()+nack.Time(pollInterval)
	if pollShared == nil {
		f.work.Go(f.srqLimitLoop)
	}
	return f, nil
}

// srqLimitLoop adds receive buffers when the receive queue reaches its limit. The event
// arrives while the program computes, too.
func (f *Fabric) srqLimitLoop() {
	for {
		ev, err := f.dev.AsyncEvent(f.ctx)
		if err != nil {
			return
		}
		if ev.Type == verbs.EventSRQLimitReached {
			f.host.Do(func(*protocol.Core) { f.GrowReceives(ev.SRQ) })
		}
	}
}

// GrowReceives adds receive buffers if q, which has reached its limit, is the receive
// queue of this fabric. It is called with the engine's lock held.
func (f *Fabric) GrowReceives(q verbs.SRQ) {
	if !f.closed && f.port.OwnsSRQ(q) {
		f.port.GrowReceives()
	}
}

// clock returns the time of the core's clock, which is never 0.
func (f *Fabric) clock() nack.Time { return f.port.Now() }

// Limits implements protocol.Net.
func (f *Fabric) Limits(rank int) protocol.Limits {
	eager := f.o.Eager
	if l := f.links.Get(rank); l.state == stateOpen {
		eager = l.eager
	}
	return protocol.Limits{Eager: eager, Rendezvous: protocol.RendezvousCopy}
}

// Send implements protocol.Net. Of consecutive messages all except the first are
// coalesced.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	switch f.links.Get(rank).state {
	case stateUnknown, stateLookup:
		f.startLookup(rank)
		return false
	case stateFailed:
		return true // the core is notified, if not before
	}
	h.MarshalTo(f.frame[:])
	now := f.clock()
	switch err := f.core.Send(now, rank, f.frame[:], payload); {
	case err == nack.ErrWouldBlock:
		return false // a Writable event follows
	case err != nil:
		f.failRank(rank, err)
		return true
	}
	f.unsent++
	if f.dispatching {
		return true
	}
	if !f.sentSinceFlush || f.unsent >= datagram.Burst {
		f.sentSinceFlush = true
		f.sendPending(now)
	} else {
		f.armTimer(now)
	}
	return true
}

// RegisterMemory, DeregisterMemory, RDMARead and RDMAWrite implement protocol.Net. They
// are not called, because Limits announces no RDMA.
func (*Fabric) RegisterMemory(int, []byte, bool) (envelope.Key, protocol.Registration, error) {
	return envelope.Key{}, nil, errors.ErrUnsupported
}
func (*Fabric) DeregisterMemory(protocol.Registration)            {}
func (*Fabric) RDMARead(int, []byte, envelope.Key, uint64) error  { return errors.ErrUnsupported }
func (*Fabric) RDMAWrite(int, []byte, envelope.Key, uint64) error { return errors.ErrUnsupported }

// failRank disconnects a rank that has failed.
func (f *Fabric) failRank(rank int, cause error) {
	l := f.links.Get(rank)
	if l.state == stateFailed {
		return
	}
	l.state = stateFailed
	f.core.ClosePeer(rank)
	f.host.Core().FailPeer(rank, cause)
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, cause error) { f.failRank(rank, cause) }

// Queue returns the completion queue and the queue pair number of this fabric, for
// pollShared of NewPart.
func (f *Fabric) Queue() (cq verbs.CQ, qpn uint32) { return f.port.CQ, f.port.QP.Num() }

// Fail fails all ranks, because Queue delivers no completions any more.
func (f *Fabric) Fail(cause error) { f.failAll(cause) }

// failAll fails all ranks.
func (f *Fabric) failAll(cause error) {
	for rank := range f.ranks {
		if rank != f.rank {
			f.failRank(rank, cause)
		}
	}
}

// Stats implements fabric.Fabric.
func (f *Fabric) Stats() fabric.Stats {
	s := &f.core.Stats
	d := fabric.DatagramStats{
		Datagrams: s.Packets, Retransmitted: s.Retransmitted, Probes: s.Probes, Acks: s.Acks, Nacks: s.Nacks, NacksReceived: s.NacksReceived,
		OutOfOrder: s.OutOfOrder, DatagramsSent: s.Sent, DatagramsReceived: s.Delivered, AddressHandles: uint64(f.port.AddressHandleCount()),
		UnknownSenders: f.stats.unknownSenders, Malformed: f.stats.malformed, Drops: map[string]uint64{},
	}
	for _, reason := range nack.Drops() {
		d.Drops[reason.String()] = s.Dropped[reason]
	}
	return fabric.Stats{ReceiveBuffers: uint64(f.port.ReceiveCount()), DatagramStats: d}
}

// Close implements fabric.Fabric. No rank waits for a packet of this one any more.
func (f *Fabric) Close(context.Context) error {
	f.host.Do(func(*protocol.Core) { f.closed = true })
	f.timer.Stop()
	f.cancel()
	f.work.Wait()
	return f.port.Close()
}

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() {
	f.sentSinceFlush = false
	if f.unsent > 0 {
		f.sendPending(f.clock())
	}
}

// sendPending sends the packets of the NACK core, as far as the send queue has room.
func (f *Fabric) sendPending(now nack.Time) {
	f.unsent = 0
	f.port.SendPending(now)
	f.armTimer(now)
}

package ud

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Fabric carries packets by datagrams of one UD queue pair.
type Fabric struct {
	host fabric.Host
	book fabric.Book
	o    Options
	rank int

	port *datagram.Port
	core *nack.Core // the port's

	links []link // by rank

	// What leaves.
	unsent         int  // messages that wait to leave together
	sentSinceFlush bool // something has been sent since the last Flush
	dispatching    bool // a look at what has come; what that sends leaves at its end
	frame          [envelope.Size]byte

	// What comes.
	wcs     [64]verbs.WC
	ready   int // completions of wcs that Block has found
	blocked atomic.Bool
	from    int // rank of the packet that is handled
	deliver func(message []byte)

	timer    *time.Timer
	armed    nack.Time    // when it rings, 0 if it does not
	timerWCs [64]verbs.WC // the timer's

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	closed bool
	stats  struct{ strangers, refused uint64 }
}

// New makes the fabric of a rank on a device, which it does not close. The
// addresses are in the book once all ranks have called Book.Fence.
func New(dev verbs.Device, host fabric.Host, book fabric.Book, o Options) (_ *Fabric, err error) {
	attr, err := dev.QueryPort(1)
	if err != nil {
		return nil, err
	}
	o.setDefaults(attr.ActiveMTU.Bytes())
	f := &Fabric{host: host, book: book, o: o, rank: book.Rank(), links: make([]link, book.Size())}
	f.deliver = f.handleMessage
	f.port, err = datagram.Open(dev, datagram.Options{Self: uint32(f.rank), Peers: book.Size(), Epoch: max(1, uint32(time.Now().Unix())),
		MaxMessage: envelope.Size + o.Eager, Receives: o.Receives, Packets: o.Packets, GiveUp: o.GiveUp,
		OnDatagram: f.handleDatagram, OnFailure: f.failAll, Wake: func() { f.timer.Reset(0) }})
	if err != nil {
		return nil, err
	}
	f.core = f.port.Core
	if err := book.Put(addressKey(f.rank), f.port.Address().String()); err != nil {
		return nil, errors.Join(err, f.port.Close())
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.timer, f.armed = time.AfterFunc(pollInterval, f.onTimer), f.clock()+nack.Time(pollInterval)
	return f, nil
}

// clock is the time of the core's clock, which is never 0.
func (f *Fabric) clock() nack.Time { return f.port.Now() }

// Limits implements protocol.Net.
func (f *Fabric) Limits(rank int) protocol.Limits {
	eager := f.o.Eager
	if l := &f.links[rank]; l.state == stateOpen {
		eager = l.eager
	}
	return protocol.Limits{Eager: eager, Rendezvous: protocol.RendezvousCopy}
}

// Send implements protocol.Net. Of messages in a row all but the first leave
// together.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	switch f.links[rank].state {
	case stateUnknown, stateLookup:
		f.startLookup(rank)
		return false
	case stateFailed:
		return true // the core hears of it, if it has not
	}
	h.MarshalTo(f.frame[:])
	now := f.clock()
	switch err := f.core.Send(now, rank, f.frame[:], payload); {
	case err == nack.ErrWouldBlock:
		return false // an event follows
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
		f.transmit(now)
	} else {
		f.armTimer(now)
	}
	return true
}

// RegisterMemory, Hide, Fetch and Store implement protocol.Net: there is no RDMA here,
// and Limits says so.
func (*Fabric) RegisterMemory(int, []byte, bool) (envelope.Key, protocol.Registration, error) {
	return envelope.Key{}, nil, errors.ErrUnsupported
}
func (*Fabric) DeregisterMemory(protocol.Registration)            {}
func (*Fabric) RDMARead(int, []byte, envelope.Key, uint64) error  { return errors.ErrUnsupported }
func (*Fabric) RDMAWrite(int, []byte, envelope.Key, uint64) error { return errors.ErrUnsupported }

// failRank cuts a rank off.
func (f *Fabric) failRank(rank int, why error) {
	l := &f.links[rank]
	if l.state == stateFailed {
		return
	}
	l.state = stateFailed
	f.core.ClosePeer(rank)
	f.host.Core().FailPeer(rank, why)
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, why error) { f.failRank(rank, why) }

// Queue is where its completions are, and QPN what it has in them: see Options.PollShared.
func (f *Fabric) Queue() (cq verbs.CQ, qpn uint32) { return f.port.CQ, f.port.QP.Num() }

// Fail cuts all ranks off: nothing comes out of Queue any more.
func (f *Fabric) Fail(why error) { f.failAll(why) }

// failAll cuts all ranks off.
func (f *Fabric) failAll(why error) {
	for rank := range f.links {
		if rank != f.rank {
			f.failRank(rank, why)
		}
	}
}

// Stats implements fabric.Fabric.
func (f *Fabric) Stats() map[string]uint64 {
	s := &f.core.Stats
	m := map[string]uint64{"packets": s.Packets, "resent": s.Retransmitted, "asks": s.Probes, "acks": s.Acks, "nacks": s.Nacks, "nacks_heard": s.NacksReceived,
		"early": s.OutOfOrder, "messages_sent": s.Sent, "messages_received": s.Delivered, "address_handles": uint64(f.port.AddressHandleCount()),
		"strangers": f.stats.strangers, "refused": f.stats.refused}
	for _, d := range nack.Drops() {
		m["dropped_"+d.String()] = s.Dropped[d]
	}
	return m
}

// Close implements fabric.Fabric. Nothing that anybody waits for is under way.
func (f *Fabric) Close(context.Context) error {
	f.host.Do(func(*protocol.Core) { f.closed = true })
	f.timer.Stop()
	f.cancel()
	f.work.Wait()
	return f.port.Close()
}

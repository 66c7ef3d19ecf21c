// Package tcp carries the packets of ranks over TCP, as a baseline for RDMA ("MPI over
// TCP" of the iWARP paper) and for networks without RDMA.
//
//	f, err := tcp.New(host, book, tcp.Options{}) // a fabric.Fabric
//
// A connection to each rank is made on first use, by the higher rank of the two.
// Packets are sent in the calling goroutine as far as the socket buffer permits; a
// writer goroutine sends the rest. Another goroutine reads. Messages longer than
// Options.Eager use a rendezvous, and are sent in packets of that size.
//
// RDMA is emulated by frames between the packets. The reader goroutine executes them at
// the target, as an adapter would, so that the target program can compute meanwhile.
package tcp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Options are the parameters of the fabric, which mpi.TCPOptions documents. The zero value is
// usable.
type Options struct {
	Eager  int    // 0 is 64 KiB
	Queue  int    // 0 is 1 MiB
	Listen string // "" is the first of Addrs, or loopback
	Addrs  string
	GiveUp time.Duration // 0 is 10 s
}

// A Fabric carries packets over TCP.
type Fabric struct {
	host  fabric.Host
	book  fabric.Book
	o     Options
	rank  int
	links []*link // by rank

	registered map[uint32]*registration // by key

	helloSlots chan struct{} // semaphore of unidentified connections

	listener net.Listener
	zone     string // zone of a link-local address of this rank
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
	closed   bool
	packets  uint64
}

var (
	_ fabric.Fabric    = (*Fabric)(nil)
	_ protocol.Atomics = (*Fabric)(nil)
)

// New returns the fabric of a rank. The other ranks can connect once all ranks have
// called Book.Fence.
func New(host fabric.Host, book fabric.Book, o Options) (*Fabric, error) {
	if o.Eager <= 0 {
		o.Eager = 64 << 10
	}
	if o.Queue <= 0 {
		o.Queue = 1 << 20
	}
	if o.GiveUp <= 0 {
		o.GiveUp = 10 * time.Second
	}
	f := &Fabric{host: host, book: book, o: o, rank: book.Rank(), links: make([]*link, book.Size()), registered: map[uint32]*registration{}, helloSlots: make(chan struct{}, maxPendingHellos)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	var err error
	if f.listener, f.zone, err = f.o.openListener(); err != nil {
		return nil, err
	}
	if err := book.Put(addressKey(f.rank), f.advertisedAddress()); err != nil {
		return nil, errors.Join(err, f.listener.Close())
	}
	f.work.Go(f.acceptLoop)
	f.work.Go(f.livenessLoop)
	return f, nil
}

// Limits implements protocol.Net.
func (f *Fabric) Limits(int) protocol.Limits {
	return protocol.Limits{Eager: f.o.Eager, Rendezvous: protocol.RendezvousCopy}
}

// Send implements protocol.Net.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	l, err := f.writableLink(rank)
	if err != nil {
		return false
	}
	f.packets++
	l.sendPacket(h, payload)
	return true
}

// Poll implements fabric.Fabric. The reader goroutines have handled all events.
func (f *Fabric) Poll() bool { return false }

// Flush implements fabric.Fabric. No packet is delayed.
func (*Fabric) Flush() {}

// Block implements fabric.Fabric. The reader goroutines wake the engine.
func (f *Fabric) Block(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// ConnectAll implements fabric.Fabric.
func (f *Fabric) ConnectAll(context.Context) error {
	f.host.Do(func(*protocol.Core) {
		for rank := f.rank - 1; rank >= 0; rank-- {
			f.startConnect(rank)
		}
	})
	return nil
}

// Stats implements fabric.Fabric.
func (f *Fabric) Stats() fabric.Stats {
	connected := uint64(0)
	for _, l := range f.links {
		if l != nil && l.conn != nil {
			connected++
		}
	}
	return fabric.Stats{Packets: f.packets, Connections: connected}
}

// failLink ends a connection that has failed.
func (f *Fabric) failLink(l *link, cause error) {
	if f.closed || l.failed {
		return
	}
	l.failed = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
	c := f.host.Core()
	c.FailPeer(l.rank, cause)
	for id := range l.transfers {
		c.TransferDone(id, cause)
	}
	l.transfers, l.pendingReads, l.currentWrite = nil, nil, nil
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, cause error) {
	if f.links[rank] == nil {
		f.links[rank] = newLink(f, rank)
	}
	f.failLink(f.links[rank], cause)
}

// Close implements fabric.Fabric. Queued data may be lost; the other ranks have
// received all data that they waited for.
func (f *Fabric) Close(ctx context.Context) error {
	var conns []*link
	f.host.Do(func(*protocol.Core) {
		f.closed = true
		for _, l := range f.links {
			if l != nil && l.conn != nil {
				conns = append(conns, l)
			}
		}
	})
	f.cancel()
	err := f.listener.Close()
	for _, l := range conns {
		if e := l.conn.Close(); !errors.Is(e, net.ErrClosed) { // closed by the peer before
			err = errors.Join(err, e)
		}
	}
	f.work.Wait()
	return err
}

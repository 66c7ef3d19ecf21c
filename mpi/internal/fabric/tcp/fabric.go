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

// Options say how ranks talk. The zero value is good for most.
type Options struct {
	Eager  int    // payload of the longest packet in bytes; 64 KiB unless given
	Queue  int    // bytes that may wait for the system to take them, for each rank; 1 MiB unless given
	Listen string // address to listen at, with port 0; the first of Addrs, or loopback, unless given

	// Addrs is a list of addresses in the form of SOFTRNIC_ADDR, of which the first
	// that this host has is listened at if Listen is empty: at a free port of its
	// range, or one of the system's choice if it has none.
	Addrs string

	// GiveUp is the time without an answer of the process of a rank until the rank is
	// lost; 10 s unless given. What it takes in is an answer, too.
	GiveUp time.Duration
}

// Fabric carries packets over TCP.
type Fabric struct {
	host  fabric.Host
	book  fabric.Book
	o     Options
	rank  int
	links []*link // by rank

	registered map[uint32]*registration // by key

	helloSlots chan struct{} // of those who have not said who they are

	listener net.Listener
	zone     string // of a link-local address of this rank
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

// New makes the fabric of a rank. The addresses are in the book once all ranks
// have called Book.Fence.
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

// Poll implements fabric.Fabric: the goroutines that read have handled what
// there is.
func (f *Fabric) Poll() bool { return false }

// Flush implements fabric.Fabric: nothing is kept back.
func (*Fabric) Flush() {}

// Block implements fabric.Fabric. Who waits is told by those goroutines.
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
func (f *Fabric) Stats() map[string]uint64 {
	connected := uint64(0)
	for _, l := range f.links {
		if l != nil && l.conn != nil {
			connected++
		}
	}
	return map[string]uint64{"packets": f.packets, "connections": connected}
}

// failLink ends a connection that has failed.
func (f *Fabric) failLink(l *link, why error) {
	if f.closed || l.failed {
		return
	}
	l.failed = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
	c := f.host.Core()
	c.FailPeer(l.rank, why)
	for id := range l.transfers {
		c.TransferDone(id, why)
	}
	l.transfers, l.pendingReads, l.currentWrite = nil, nil, nil
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, why error) {
	if f.links[rank] == nil {
		f.links[rank] = newLink(f, rank)
	}
	f.failLink(f.links[rank], why)
}

// Close implements fabric.Fabric. What is queued leaves before: the other ranks
// have had all they waited for, so little is.
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
		if e := l.conn.Close(); !errors.Is(e, net.ErrClosed) { // by the other end, before
			err = errors.Join(err, e)
		}
	}
	f.work.Wait()
	return err
}

// Package tcp carries the packets of ranks over TCP, as a baseline for RDMA ("MPI over
// TCP" of the iWARP paper) and for networks without RDMA.
//
//	f, err := tcp.New(host, book, tcp.Options{}) // a fabric.Fabric
//
// A connection to each rank is made on first use, by the higher rank of the two.
// Packets are written in the calling goroutine, consecutive short ones together. The
// goroutine that waits for a message polls the sockets, and then sleeps in one system
// call for all of them (poller, Fabric.Block); so it handles packets without a
// switch to another goroutine. Where that is not possible, and with SOFTRNIC_LINK=portable,
// each socket has goroutines that read and write. Messages longer than Options.Eager use
// a rendezvous, and are sent in packets of that size.
//
// RDMA is emulated by frames between the packets. The target executes them while its
// program waits or polls, and in a goroutine while it computes.
//
//	socket.go      the sockets of connections, and the poller that owns them
//	block.go       Poll and Block: spin, yield, sleep
//	link.go        from a packet to the socket, and from the socket to packets
//	transfer.go    RDMA at the initiator
//	memory.go      RDMA at the target
package tcp

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

	poller   poller     // nil without one
	blocking sync.Mutex // held by Block
	receiver            // of the leader, or of Poll while no goroutine leads

	flushes   uint64      // number of calls of Flush
	batched   []*link     // with a batch
	timer     *time.Timer // flushes batches while the program computes
	header    envelope.Header
	inFrame   frame
	packets   uint64
	coalesced uint64

	listener net.Listener
	zone     string // zone of a link-local address of this rank
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
	closed   atomic.Bool // set with the lock held
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
	f := &Fabric{host: host, book: book, o: o, rank: book.Rank(), links: make([]*link, book.Size()), flushes: 1, registered: map[uint32]*registration{}, helloSlots: make(chan struct{}, maxPendingHellos)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	start := time.Now()
	f.spinner.Init(spinTime, func() int64 { return int64(time.Since(start)) })
	f.timer = time.AfterFunc(time.Hour, f.onTimer)
	f.timer.Stop()
	var err error
	if f.listener, f.zone, err = f.o.openListener(); err != nil {
		return nil, err
	}
	if err := book.Put(addressKey(f.rank), f.advertisedAddress()); err != nil {
		return nil, errors.Join(err, f.listener.Close())
	}
	if !slices.Contains(strings.Split(os.Getenv("SOFTRNIC_LINK"), ","), "portable") {
		if f.poller, err = newPoller(); err != nil {
			return nil, errors.Join(err, f.listener.Close())
		}
	}
	f.work.Go(f.acceptLoop)
	f.work.Go(f.livenessLoop)
	if f.poller != nil {
		f.work.Go(func() { f.host.PollWhenIdle(f.ctx, idleInterval) })
	}
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

// addBatch makes Flush write the queue of a link.
func (f *Fabric) addBatch(l *link) {
	if f.batched = append(f.batched, l); len(f.batched) == 1 {
		f.timer.Reset(batchTime)
	}
}

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() {
	f.flushes++
	for _, l := range f.batched {
		if !l.blocked && !l.failed {
			l.writeNow(nil, nil)
		}
	}
	f.batched = f.batched[:0]
}

// onTimer flushes while the program computes.
func (f *Fabric) onTimer() { f.host.Do(func(*protocol.Core) { f.Flush() }) }

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
		if l != nil && l.socket != nil {
			connected++
		}
	}
	return fabric.Stats{Packets: f.packets, Coalesced: f.coalesced, Connections: connected}
}

// failLink ends a connection that has failed.
func (f *Fabric) failLink(l *link, cause error) {
	if f.closed.Load() || l.failed {
		return
	}
	l.failed = true
	l.queue, l.blocked = sendQueue{}, false
	if l.socket != nil {
		l.socket.endConn()
	}
	c := f.host.Core()
	c.FailPeer(l.rank, cause)
	for id := range l.transfers {
		c.TransferDone(id, cause)
	}
	l.transfers, l.pendingReads, l.currentWrite = nil, nil, nil
}

// failLater fails a link from another call, because the core is in one to this fabric.
func (f *Fabric) failLater(l *link, cause error) {
	if !f.closed.Load() {
		f.work.Go(func() { f.host.Do(func(*protocol.Core) { f.failLink(l, cause) }) })
	}
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, cause error) {
	if f.links[rank] == nil {
		f.links[rank] = newLink(f, rank)
	}
	f.failLink(f.links[rank], cause)
}

// awaitBlock waits until no Block is in progress. Those that begin later return at once if the
// fabric is closed.
func (f *Fabric) awaitBlock() {
	f.blocking.Lock()
	defer f.blocking.Unlock()
}

// Close implements fabric.Fabric. Queued data may be lost; the other ranks have
// received all data that they waited for.
func (f *Fabric) Close(ctx context.Context) error {
	f.host.Do(func(*protocol.Core) {
		f.Flush()
		f.closed.Store(true)
	})
	f.timer.Stop()
	f.cancel()
	err := f.listener.Close()
	if f.poller != nil {
		f.poller.wakeWaiter()
		f.awaitBlock()
	}
	f.host.Do(func(*protocol.Core) {
		for _, l := range f.links {
			if l != nil && l.socket != nil {
				l.failed = true
				if e := l.socket.closeFD(); !errors.Is(e, net.ErrClosed) { // ended before
					err = errors.Join(err, e)
				}
			}
		}
	})
	f.work.Wait()
	if f.poller != nil {
		f.poller.closeSet()
	}
	return err
}

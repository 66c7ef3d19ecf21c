package rdma

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/internal/rankwire"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// inlineMax is the maximum length in bytes of a packet that is sent inline in its work
// request.
const inlineMax = 256

// sendQueue is the depth of a connection's send queue.
const sendQueue = 128

// A Fabric carries packets by SEND over reliable connections with a shared receive
// queue (SR of the iWARP paper, section 3), and messages by RDMA.
type Fabric struct {
	host   fabric.Host
	book   fabric.Book
	o      Options
	shared *fabric.SharedCQ // of the fabric that this one is a part of, or nil
	rank   int

	dev  verbs.Device
	pd   verbs.PD
	cq   verbs.CQ
	srq  verbs.SRQ
	wire *rankwire.Wire

	links       []*link          // by rank
	byQP        map[uint32]*link // by queue pair number
	rails       map[uint32]*rail // by queue pair number
	recvBuffers *recvSlabs       // of srq
	sendBuffers sendPool
	transfers   transferTable
	cache       regCache

	queues []*Queue

	recentLinks  []*link      // links sent to since the last Flush
	batchedLinks []*link      // links with a batch
	timer        *vtime.Timer // flushes batches and post lists

	probeTimer *vtime.Timer // runs probeRanks
	probing    bool         // the timer runs

	rings atomic.Pointer[[]*packetRing] // fast path

	servedLinks []*link // links with completions, for serveLinks
	heldLinks   []*link // links whose stream has bytes that are not posted
	spareLinks  []*link // for reuse as heldLinks
	wrapped     []byte  // a packet that is not contiguous in its ring

	completions   progress.Completions
	memoryPolls   int     // consecutive calls of Poll that polled memory only
	stripeRails   []*rail // rails of the current message
	frame         [inlineMax]byte
	header        envelope.Header // of the packet being handled
	wr            [1]verbs.SendWR
	sge           [1]verbs.SGE
	bufferWaiters []int // ranks that wait for a send buffer

	ctx    context.Context
	cancel context.CancelFunc
	work   vtime.Group
	closed bool
	stats  stats
}

var (
	_ fabric.Fabric     = (*Fabric)(nil)
	_ protocol.Notifier = (*Fabric)(nil)
	_ protocol.Atomics  = (*Fabric)(nil)
)

// New returns the fabric of a rank on a device, which it does not close. The other
// ranks can connect once all ranks have called Book.Fence.
func New(dev verbs.Device, host fabric.Host, book fabric.Book, o Options) (*Fabric, error) {
	return newFabric(dev, host, book, nil, o)
}

// NewPart returns the fabric of a rank that is a part of another fabric, which owns the
// completion queue and passes completions to Complete. Options.Fast is ignored.
func NewPart(dev verbs.Device, host fabric.Host, book fabric.Book, shared *fabric.SharedCQ, o Options) (*Fabric, error) {
	o.Fast = false
	return newFabric(dev, host, book, shared, o)
}

func newFabric(dev verbs.Device, host fabric.Host, book fabric.Book, shared *fabric.SharedCQ, o Options) (_ *Fabric, err error) {
	if o.Fast && !dev.QueryDevice().OrderedWrites {
		return nil, fmt.Errorf("rdma: fast path: %w: device does not promise the order of writes", verbs.ErrUnsupported)
	}
	if o.Fast && o.Flow != FlowShared {
		return nil, fmt.Errorf("rdma: fast path with flow control %v: %w", o.Flow, verbs.ErrInvalid)
	}
	o.setDefaults()
	f := &Fabric{host: host, book: book, o: o, shared: shared, rank: book.Rank(), dev: dev,
		links: make([]*link, book.Size()), byQP: map[uint32]*link{}, rails: map[uint32]*rail{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.timer = vtime.AfterFunc(time.Hour, f.onTimer)
	f.timer.Stop()
	defer func() {
		if err != nil {
			f.cancel()
		}
	}()
	if f.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if shared != nil {
		f.cq = shared.CQ
		err = f.cq.Resize(f.cqDepth(o.Receives))
	} else {
		f.cq, err = dev.CreateCQ(f.cqDepth(o.Receives))
	}
	f.completions.CQ = f.cq
	if err != nil {
		return nil, err
	}
	if f.srq, err = f.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: maxReceives, MaxSGE: 1}); err != nil {
		return nil, err
	}
	size := envelope.Size + o.Eager
	f.recvBuffers = newRecvSlabs(f.pd, f.srq, size)
	if o.Flow == FlowShared {
		if err := f.recvBuffers.addBuffers(o.Receives); err != nil {
			return nil, err
		}
		if err := f.armSRQLimit(); err != nil {
			return nil, err
		}
	}
	if err := f.sendBuffers.registerBuffers(f.pd, o.Sends, size); err != nil {
		return nil, err
	}
	f.cache.pd = f.pd
	if err := f.startListeners(); err != nil {
		return nil, err
	}
	f.work.Go(f.srqLimitLoop)
	return f, nil
}

// srqLimitLoop adds receive buffers when the shared receive queue reaches its limit.
// The event arrives while the program computes, too.
func (f *Fabric) srqLimitLoop() {
	for {
		ev, err := f.dev.AsyncEvent(f.ctx)
		if err != nil {
			return
		}
		if ev.Type != verbs.EventSRQLimitReached {
			continue
		}
		f.host.Do(func(*protocol.Core) {
			if ev.SRQ != f.srq {
				if f.shared != nil {
					f.shared.GrowReceives(ev.SRQ)
				}
			} else if err := f.growReceives(); err != nil {
				f.failAll(err)
			}
		})
	}
}

// growReceives adds Options.Receives buffers, unless there is one for every packet in
// flight.
func (f *Fabric) growReceives() error {
	if f.closed || f.recvBuffers.count >= len(f.byQP)*f.o.Credits || f.recvBuffers.count >= maxReceives {
		return nil
	}
	if err := f.cq.Resize(f.cqDepth(f.o.Receives)); err != nil {
		return err
	}
	if err := f.recvBuffers.addBuffers(f.o.Receives); err != nil {
		return err
	}
	return f.armSRQLimit()
}

// armSRQLimit arms the limit event of the shared receive queue.
func (f *Fabric) armSRQLimit() error {
	return f.srq.Modify(verbs.SRQAttr{Limit: f.o.Receives / 4}, verbs.SRQLimit)
}

// cqDepth returns the maximum number of completions with more additional receives.
func (f *Fabric) cqDepth(more int) int {
	others := 64
	if f.shared != nil {
		others += f.shared.OtherCompletions
	}
	for _, q := range f.queues {
		others += (len(q.qps) + 1) * queueDepth
	}
	receives := more
	if f.recvBuffers != nil {
		receives += f.recvBuffers.count
	}
	return others + receives + (len(f.byQP)+1)*(sendQueue+f.linkReceives()) + len(f.rails)*railQueue
}

// Limits implements protocol.Net.
func (f *Fabric) Limits(int) protocol.Limits {
	return protocol.Limits{Eager: f.o.Eager, Rendezvous: f.o.Rendezvous}
}

// RegisterMemory implements protocol.Net.
func (f *Fabric) RegisterMemory(_ int, b []byte, _ bool) (envelope.Key, protocol.Registration, error) {
	mr, err := f.cache.acquire(b)
	if err != nil {
		return envelope.Key{}, nil, err
	}
	return envelope.Key{Addr: mr.sge(b).Addr, RKey: mr.mr.RKey()}, mr, nil
}

// DeregisterMemory implements protocol.Net.
func (f *Fabric) DeregisterMemory(e protocol.Registration) { f.cache.release(e.(*region)) }

// Stats implements fabric.Fabric.
func (f *Fabric) Stats() fabric.Stats {
	connected, buffers, memory := uint64(0), f.recvBuffers.count, f.recvBuffers.bytes()
	for _, l := range f.links {
		if l == nil || !l.up {
			continue
		}
		connected++
		if l.buffers != nil {
			buffers += l.buffers.count
			memory += l.buffers.bytes()
		}
		if l.stream != nil {
			memory += l.stream.in.Len() + l.stream.out.Len()
		}
	}
	return fabric.Stats{
		Connections: connected, Packets: f.stats.packets, Coalesced: f.stats.coalesced, CreditPackets: f.stats.creditPackets,
		Registrations: f.cache.registered, RegistrationHits: f.cache.hits, ReceiveBuffers: uint64(buffers), PacketMemory: uint64(memory),
		Rails: uint64(len(f.rails)), Stripes: f.stats.stripes, Queues: uint64(len(f.queues)),
	}
}

type stats struct{ packets, coalesced, creditPackets, stripes uint64 }

// failLink ends a connection that has failed.
func (f *Fabric) failLink(l *link, cause error) {
	if l.failed {
		return
	}
	l.failed, l.up, l.cause = true, false, cause
	_ = l.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // ends remote access
	l.failRails()
	f.removeRing(l)
	f.host.Core().FailPeer(l.rank, cause)
	f.flushPostList(l)
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, cause error) {
	if l := f.links[rank]; l != nil && l.qp != nil {
		f.failLink(l, cause)
		return
	}
	f.links[rank] = &link{rank: rank, failed: true, cause: cause} // a dial in progress gives up
	f.host.Core().FailPeer(rank, cause)
}

// Fail fails all connections, because the shared queue delivers no completions any more.
func (f *Fabric) Fail(cause error) { f.failAll(cause) }

// failAll fails all connections.
func (f *Fabric) failAll(cause error) {
	for rank, l := range f.links {
		switch {
		case rank == f.rank:
		case l != nil && l.qp != nil:
			f.failLink(l, cause)
		default:
			f.host.Core().FailPeer(rank, cause)
		}
	}
	for i, m := range f.transfers.list { // completions may be lost; the adapter accesses no memory any more
		if m.live {
			f.finishTransfer(i, cause)
		}
	}
}

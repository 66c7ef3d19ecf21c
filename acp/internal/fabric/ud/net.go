// Package ud implements package fabric by datagrams of one queue pair, with the RDMA over UD of package rdm.
// Memory does not grow with connections.
//
//	net, err := ud.New(dev, host, kvs, ud.Options{}) // a fabric.Net
//
// Operations of package rdm are unordered. So a rank has one operation in flight to each other rank, and
// starts the next one when it completes. A signal is a message of 8 bytes, sent when the data before it has
// been delivered. If adapters do not support RDMA over UD, the service of package rdm at the target executes
// the operations.
package ud

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

// Options configure the endpoint. The zero value suits most programs.
type Options struct {
	// RDM configures the endpoint. GiveUp, the time without a response after which a rank is lost, is 10 s
	// unless set.
	RDM rdm.Options
}

// Net is a fabric.Net over datagrams.
type Net struct {
	host      fabric.Host
	kvs       fabric.KVS
	rank      int
	e         *rdm.Endpoint
	inlineMem *rdm.Region // slots for Inline data

	links       []*link                  // by rank
	freeInline  []int                    // free slots of inlineMem
	waiting     []*link                  // links that wait for a slot
	oldest      atomic.Pointer[rdm.Op]   // an operation in flight, or nil
	writable    atomic.Pointer[rdm.Peer] // a peer for which a signal waits to be sent, or nil
	outstanding []*link                  // links with an operation in flight, or with a signal that waits to be sent
	stats       stats

	got     [signalSize]byte // a signal that Block has received
	gotSize int
	gotFrom *rdm.Peer

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	closed bool
}

var _ fabric.Net = (*Net)(nil)

type stats struct{ ops, signals, stray uint64 }

// inlineSlots is the maximum number of inline puts in flight.
const inlineSlots = 256

// New creates the transport of a rank on dev. Close does not close dev.
func New(dev verbs.Device, host fabric.Host, kvs fabric.KVS, o Options) (*Net, error) {
	if o.RDM.GiveUp == 0 {
		o.RDM.GiveUp = 10 * time.Second
	}
	if o.RDM.Ops == 0 {
		o.RDM.Ops = 1 << 12 // one for each rank accessed at a time
	}
	e, err := rdm.Open(dev, o.RDM)
	if err != nil {
		return nil, err
	}
	n := &Net{host: host, kvs: kvs, rank: kvs.Rank(), e: e, links: make([]*link, kvs.Size())}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	for i := range inlineSlots {
		n.freeInline = append(n.freeInline, i)
	}
	if n.inlineMem, err = e.Register(make([]byte, inlineSlots*fabric.InlineMax), verbs.AccessLocalWrite); err != nil {
		n.cancel()
		return nil, errors.Join(err, e.Close())
	}
	return n, nil
}

// memory is a region with the methods of fabric.Memory.
type memory struct{ *rdm.Region }

func (m memory) Addr() uint64              { return m.Remote(0).Addr }
func (m memory) RKey() uint32              { return m.Remote(0).RKey }
func (m memory) Len() int                  { return len(m.Bytes()) }
func (m memory) LoadUint32(off int) uint32 { return halfWord(m.LoadUint64(off&^7), off) }

// halfWord returns the 4 bytes of a word at an offset.
func halfWord(w uint64, off int) uint32 {
	return binary.NativeEndian.Uint32(binary.NativeEndian.AppendUint64(nil, w)[off&4:])
}

// Register implements fabric.Net.
func (n *Net) Register(buf []byte, shared bool) (fabric.Memory, error) {
	access := verbs.AccessLocalWrite
	if shared {
		access |= verbs.AccessRemote
	}
	r, err := n.e.Register(buf, access)
	return memory{r}, err
}

// kvsKey returns the key under which a rank publishes its address and card.
func kvsKey(rank int) string { return "acp-ud-" + strconv.Itoa(rank) }

// Start implements fabric.Net: it publishes the endpoint's address and the card.
func (n *Net) Start(card []byte) error {
	return n.kvs.Put(kvsKey(n.rank), n.e.Addr().String()+" "+base64.RawURLEncoding.EncodeToString(card))
}

// Connect implements fabric.Net.
func (n *Net) Connect(rank int) { n.linkTo(rank) }

// linkTo returns the link to a rank, and starts connecting on first use.
func (n *Net) linkTo(rank int) *link {
	l := n.links[rank]
	if l != nil {
		return l
	}
	l = &link{rank: rank, inlineSlot: -1}
	n.links[rank] = l
	if n.closed {
		return l
	}
	n.work.Go(func() {
		peer, card, err := n.dialRank(n.ctx, rank)
		n.host.DoLocked(func() {
			if n.closed {
				return
			}
			if err != nil {
				n.failLink(l, fmt.Errorf("connect: %w", err))
				return
			}
			l.peer = peer
			n.host.PeerFound(rank, card)
			n.startNext(l)
		})
	})
	return l
}

// dialRank connects to a rank.
func (n *Net) dialRank(ctx context.Context, rank int) (*rdm.Peer, []byte, error) {
	s, err := n.kvs.Get(ctx, kvsKey(rank))
	if err != nil {
		return nil, nil, err
	}
	first, second, _ := strings.Cut(s, " ")
	at, err := rdm.ParseAddr(first)
	if err != nil {
		return nil, nil, err
	}
	card, err := base64.RawURLEncoding.DecodeString(second)
	if err != nil {
		return nil, nil, err
	}
	peer, err := n.e.Dial(ctx, at)
	return peer, card, err
}

// ReserveSignals implements fabric.Net. Messages need no receives posted here.
func (n *Net) ReserveSignals(int) error { return nil }

// ReleaseSignals implements fabric.Net.
func (n *Net) ReleaseSignals(int) {}

// Flush implements fabric.Net. Operations are not held back.
func (n *Net) Flush() {}

// Poll implements fabric.Net.
func (n *Net) Poll() (some bool) {
	some = n.e.Progress()
	if n.gotSize > 0 {
		some = true
		n.deliverSignal(n.gotFrom, n.got[:n.gotSize])
		n.gotSize = 0
	}
	for {
		size, from, err := n.e.Recv(canceledCtx, n.got[:])
		if errors.Is(err, io.ErrShortBuffer) { // not a signal: drop it, or it would block those behind it
			n.stats.stray++
			if _, _, err = n.e.Recv(canceledCtx, make([]byte, size)); err == nil {
				some = true
				continue
			}
		}
		if err != nil {
			break // no more messages
		}
		some = true
		n.deliverSignal(from, n.got[:size])
	}
	list := n.outstanding
	n.outstanding = nil
	for _, l := range list {
		if !l.op.Done() || !n.advanceLink(l) {
			n.outstanding = append(n.outstanding, l)
		} else {
			some = true
		}
	}
	n.oldest.Store(nil)
	n.writable.Store(nil)
	for _, l := range n.outstanding {
		n.setBlockTarget(l)
	}
	return some
}

// watchLink makes Poll check a link.
func (n *Net) watchLink(l *link) {
	n.outstanding = append(n.outstanding, l)
	n.setBlockTarget(l)
}

// setBlockTarget makes Block wait for a link, unless it waits for another one of the same kind. A completed
// step counts as well, because Poll has not seen it.
func (n *Net) setBlockTarget(l *link) {
	if l.step == stepTransfer {
		n.oldest.CompareAndSwap(nil, &l.op)
	} else {
		n.writable.CompareAndSwap(nil, l.peer)
	}
}

// canceledCtx is a canceled context, for calls that must not block.
var canceledCtx = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Block implements fabric.Net. It waits for an operation in flight, else for space to send a signal, else for
// a message.
func (n *Net) Block(ctx context.Context, _ func() bool) error {
	if op := n.oldest.Load(); op != nil {
		_ = op.Wait(ctx)
		return ctx.Err()
	}
	if peer := n.writable.Load(); peer != nil {
		_ = peer.WaitWritable(ctx)
		return ctx.Err()
	}
	size, from, err := n.e.Recv(ctx, n.got[:])
	switch {
	case err == nil:
		n.gotSize, n.gotFrom = size, from
	case errors.Is(err, io.ErrShortBuffer):
		return nil // Poll drops the message
	}
	return err
}

// WatchesMemory implements fabric.Net. The service of the endpoint executes the operations of peers.
func (n *Net) WatchesMemory() bool { return false }

// HasUnposted implements fabric.Net. Operations queue, but the progress goroutine of a rank over UD starts
// them.
func (n *Net) HasUnposted(int) bool { return false }

// Stats implements fabric.Net.
func (n *Net) Stats() fabric.Stats {
	connected := uint64(0)
	for _, l := range n.links {
		if l != nil && l.peer != nil {
			connected++
		}
	}
	return fabric.Stats{Operations: n.stats.ops, Signals: n.stats.signals, StraySignals: n.stats.stray, Connections: connected}
}

// Close implements fabric.Net.
func (n *Net) Close(context.Context) error {
	n.host.DoLocked(func() { n.closed = true })
	n.cancel()
	err := n.e.Close()
	n.work.Wait()
	return err
}

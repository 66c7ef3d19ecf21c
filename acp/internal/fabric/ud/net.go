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

// Options say how ranks talk. The zero value is good for most.
type Options struct {
	// RDM is how the endpoint works. GiveUp, how long a rank may answer nothing, is 10 s unless
	// given.
	RDM rdm.Options
}

// Net is a fabric.Net of datagrams.
type Net struct {
	host      fabric.Host
	kvs       fabric.KVS
	rank      int
	e         *rdm.Endpoint
	inlineMem *rdm.Region // of Inline, a piece for each link that needs one

	links       []*link                  // by rank
	freeInline  []int                    // pieces of words
	waiting     []*link                  // that wait for one
	oldest      atomic.Pointer[rdm.Op]   // one that is under way, or nil
	writable    atomic.Pointer[rdm.Peer] // one that a signal has to leave to, or nil
	outstanding []*link                  // with an operation under way, or a signal that waits for room
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

// inlineSlots is how many short puts are under way at most.
const inlineSlots = 256

// New makes the net of a rank on a device, which it does not close.
func New(dev verbs.Device, host fabric.Host, book fabric.KVS, o Options) (*Net, error) {
	if o.RDM.GiveUp == 0 {
		o.RDM.GiveUp = 10 * time.Second
	}
	if o.RDM.Ops == 0 {
		o.RDM.Ops = 1 << 12 // one for each rank, of those that are talked to at a time
	}
	e, err := rdm.Open(dev, o.RDM)
	if err != nil {
		return nil, err
	}
	n := &Net{host: host, kvs: book, rank: book.Rank(), e: e, links: make([]*link, book.Size())}
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

// memory is a region as package fabric has it.
type memory struct{ *rdm.Region }

func (m memory) Addr() uint64              { return m.Remote(0).Addr }
func (m memory) RKey() uint32              { return m.Remote(0).RKey }
func (m memory) Len() int                  { return len(m.Bytes()) }
func (m memory) LoadUint32(off int) uint32 { return halfWord(m.LoadUint64(off&^7), off) }
func (m memory) Dereg() error              { return m.Close() }

// halfWord is 4 bytes of a word.
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

func kvsKey(rank int) string { return "acp-ud-" + strconv.Itoa(rank) }

// Start implements fabric.Net: the book has the address of the endpoint and the card.
func (n *Net) Start(card []byte) error {
	return n.kvs.Put(kvsKey(n.rank), n.e.Addr().String()+" "+base64.RawURLEncoding.EncodeToString(card))
}

// Connect implements fabric.Net.
func (n *Net) Connect(rank int) { n.linkTo(rank) }

// linkTo is the way to a rank, which is found when it is first wanted.
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
				n.failLink(l, fmt.Errorf("finding it: %w", err))
				return
			}
			l.peer = peer
			n.host.PeerFound(rank, card)
			n.startNext(l)
		})
	})
	return l
}

// dialRank makes contact with a rank.
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

// ReserveSignals implements fabric.Net: messages need no receives of ours.
func (n *Net) ReserveSignals(int) error { return nil }

// ReleaseSignals implements fabric.Net.
func (n *Net) ReleaseSignals(int) {}

// Flush implements fabric.Net: nothing is kept.
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
		if errors.Is(err, io.ErrShortBuffer) { // no signal: it must not stay before those that are
			n.stats.stray++
			if _, _, err = n.e.Recv(canceledCtx, make([]byte, size)); err == nil {
				some = true
				continue
			}
		}
		if err != nil {
			break // nothing has come
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

// watchLink has Poll look at a link.
func (n *Net) watchLink(l *link) {
	n.outstanding = append(n.outstanding, l)
	n.setBlockTarget(l)
}

// setBlockTarget has Block wait for a link, unless it waits for one like it. What is done by now is waited for as well, for
// Poll has not seen that.
func (n *Net) setBlockTarget(l *link) {
	if l.step == stepTransfer {
		n.oldest.CompareAndSwap(nil, &l.op)
	} else {
		n.writable.CompareAndSwap(nil, l.peer)
	}
}

// canceledCtx is a context that has ended: a call with it does not wait.
var canceledCtx = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Block implements fabric.Net. With an operation under way it waits for that, with a signal that has to leave for room, and
// else for a signal.
func (n *Net) Block(ctx context.Context) error {
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
		return nil // it is for Poll, which drops it
	}
	return err
}

// Stats implements fabric.Net.
func (n *Net) Stats() map[string]uint64 {
	met := uint64(0)
	for _, l := range n.links {
		if l != nil && l.peer != nil {
			met++
		}
	}
	return map[string]uint64{"operations": n.stats.ops, "signals": n.stats.signals, "stray_signals": n.stats.stray, "peers": met}
}

// Close implements fabric.Net.
func (n *Net) Close(context.Context) error {
	n.host.DoLocked(func() { n.closed = true })
	n.cancel()
	err := n.e.Close()
	n.work.Wait()
	return err
}

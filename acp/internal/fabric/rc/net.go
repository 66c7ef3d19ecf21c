package rc

import (
	"context"
	"sync"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/internal/rankwire"
	"github.com/softrnic/softrnic/verbs"
)

// sendQueue is the depth of a connection's send queue.
const sendQueue = 128

// Options configure the connections. The zero value suits most programs.
type Options struct {
	// Connect contains the attributes of the connections.
	Connect verbs.ConnectOptions

	// CM configures the connection manager. Receives is 512 unless set.
	CM cm.Options
}

// Net is a fabric.Net over reliable connections.
type Net struct {
	host fabric.Host
	kvs  fabric.KVS
	card []byte
	o    Options
	rank int

	dev  verbs.Device
	pd   verbs.PD
	cq   verbs.CQ
	srq  verbs.SRQ
	wire *rankwire.Wire

	links    []*link          // by rank: the table that grows with the job
	byQP     map[uint32]*link // by queue pair number
	incoming incoming
	results  atomicResults

	dirty   []*link // links with pending operations, for Flush
	waiting []*link // links that wait for a result slot
	recvs   receives

	completions progress.Completions
	wrs         [postMax]verbs.SendWR
	sges        [postMax][1]verbs.SGE

	ctx        context.Context
	cancel     context.CancelFunc
	goroutines sync.WaitGroup
	closed     bool
	stats      stats
}

var _ fabric.Net = (*Net)(nil)

type stats struct{ ops, signals, stray, connects, repaired uint64 }

// New creates the transport of a rank on dev. Close does not close dev.
func New(dev verbs.Device, host fabric.Host, kvs fabric.KVS, o Options) (_ *Net, err error) {
	if o.CM.Receives == 0 {
		o.CM.Receives = 512
	}
	n := &Net{host: host, kvs: kvs, o: o, rank: kvs.Rank(), dev: dev,
		links: make([]*link, kvs.Size()), byQP: map[uint32]*link{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			n.cancel()
		}
	}()
	if n.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if n.cq, err = dev.CreateCQ(n.cqDepth()); err != nil {
		return nil, err
	}
	n.completions.CQ = n.cq
	if n.srq, err = n.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: maxReceives, MaxSGE: 1}); err != nil {
		return nil, err
	}
	return n, n.results.init(n.pd)
}

// Register implements fabric.Net.
func (n *Net) Register(buf []byte, shared bool) (fabric.Memory, error) {
	access := verbs.AccessLocalWrite
	if shared {
		access |= verbs.AccessRemote
	}
	return n.pd.RegMR(buf, access)
}

// Start implements fabric.Net.
func (n *Net) Start(card []byte) error {
	n.card = card
	return n.startListener()
}

// cqDepth returns the maximum number of completions outstanding.
func (n *Net) cqDepth() int { return 64 + n.recvs.posted + (len(n.byQP)+1)*sendQueue }

// Connect implements fabric.Net.
func (n *Net) Connect(rank int) { n.linkTo(rank) }

// linkTo returns the link to a rank, and starts connecting on first use.
func (n *Net) linkTo(rank int) *link {
	l := n.links[rank]
	if l == nil {
		l = &link{rank: rank}
		n.links[rank] = l
		n.startDial(l)
	}
	return l
}

// Post implements fabric.Net.
func (n *Net) Post(rank int, op *fabric.Op) {
	l := n.linkTo(rank)
	if l.state == down || n.closed {
		op.Owner.OpDone(op, l.lostError())
		return
	}
	n.stats.ops++
	l.pending.Push(op)
	n.markDirty(l)
}

// markDirty queues a link for Flush.
func (n *Net) markDirty(l *link) {
	if !l.dirty {
		l.dirty = true
		n.dirty = append(n.dirty, l)
	}
}

// Flush implements fabric.Net.
func (n *Net) Flush() {
	for i := 0; i < len(n.dirty); i++ {
		l := n.dirty[i]
		l.dirty = false
		n.postPending(l)
	}
	n.dirty = n.dirty[:0]
}

// HasUnposted implements fabric.Net.
func (n *Net) HasUnposted(rank int) bool {
	l := n.links[rank]
	return l != nil && l.pending.Len() > 0
}

// Poll implements fabric.Net.
func (n *Net) Poll() bool {
	retired, drained := n.incoming.retiredCount(), !n.completions.Pending()
	handled, err := n.completions.Poll(n.handleCompletions)
	if err != nil {
		n.failAll(err)
	}
	if drained { // since retired was counted
		n.incoming.destroyRetired(retired)
	}
	n.recvs.repostUsed(n)
	n.Flush()
	return handled
}

// Block implements fabric.Net.
func (n *Net) Block(ctx context.Context, changed func() bool) error {
	if changed == nil {
		return n.completions.Block(ctx)
	}
	return n.completions.BlockUntil(ctx, changed)
}

// WatchesMemory implements fabric.Net.
func (n *Net) WatchesMemory() bool { return true }

func (n *Net) handleCompletions(wcs []verbs.WC) {
	for i := range wcs {
		n.handleCompletion(&wcs[i])
	}
}

func (n *Net) handleCompletion(wc *verbs.WC) {
	if wc.WRID == recvID {
		n.recvs.used++
		if wc.Status == verbs.WCSuccess && wc.Flags&verbs.WCWithImm != 0 {
			n.deliverSignal(wc)
		}
		return
	}
	l := n.byQP[wc.QPN]
	if l == nil {
		return // the connection was replaced
	}
	if wc.Status != verbs.WCSuccess {
		n.handleFailure(l, uint32(wc.WRID), wc)
		return
	}
	n.completeBefore(l, uint32(wc.WRID)+1)
}

// deliverSignal delivers immediate data to the host.
func (n *Net) deliverSignal(wc *verbs.WC) {
	rank, ok := n.incoming.rankOf(wc.QPN)
	if !ok {
		n.stats.stray++
		return
	}
	n.stats.signals++
	n.host.HandleSignal(rank, wc.Imm)
}

// failAll fails all links, after the CQ has failed.
func (n *Net) failAll(cause error) {
	for rank := range n.links {
		if rank != n.rank {
			n.failLink(n.linkTo(rank), cause)
		}
	}
}

// Stats implements fabric.Net.
func (n *Net) Stats() fabric.Stats {
	return fabric.Stats{
		Operations: n.stats.ops, Signals: n.stats.signals, StraySignals: n.stats.stray,
		Connections: uint64(len(n.byQP)), Connects: n.stats.connects, Repaired: n.stats.repaired, Receives: uint64(n.recvs.posted),
	}
}

package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/internal/rankaddr"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/verbs"
)

// Process is a rank of a job. All methods may be called concurrently.
type Process struct {
	manager    pmi.Manager
	o          Options
	rank, size int
	dev        verbs.Device
	net        fabric.Net

	mu             sync.Mutex
	closed         bool
	progress       *progress.Engine
	polling        pollState
	changes        uint64 // number of events of the network, operations and channels
	notified       uint64 // changes when the waiters were notified last
	background     sync.WaitGroup
	stopBackground context.CancelFunc // nil without a background goroutine

	memory       memory
	peers        []*peer // by rank: the table that grows with the job
	handles      handles
	relays       relays
	modifyQueues map[protocol.GA][]*atomicOp // atomics done by a compare-and-swap loop, by word: the first one runs
	barrier      barrier
	channels     channelTable
	localOps     accessList // pending accesses to memory of this rank
	freeAccesses *access    // free list
}

// startTimeout bounds Init, and the barriers of Finalize.
const startTimeout = 5 * time.Minute

// Init joins the job in which the process was started (acp_init), by softrnic mpirun or another process
// manager that package pmi supports. A program started without one is a job of one rank. Init opens the
// adapter by open, for example func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, and
// Finalize or Close closes it. Init waits for the other ranks for at most 5 minutes.
func Init(open func() (verbs.Device, error), o Options) (*Process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if o.Manager == nil {
		var err error
		if o.Manager, err = pmi.Open(ctx); err == nil {
			err = rankaddr.Choose(ctx, o.Manager)
		}
		if err != nil {
			return nil, &Error{Rank: -1, Op: "init", Err: err}
		}
	}
	p := &Process{manager: o.Manager, o: o, rank: o.Manager.Rank(), size: o.Manager.Size()}
	p.progress = progress.New(&p.mu, (*source)(p))
	if err := p.joinJob(ctx, open); err != nil {
		return nil, p.newError("init", fmt.Sprintf("job of %d ranks", p.size), errors.Join(err, p.releaseAll(ctx)))
	}
	return p, nil
}

// joinJob opens the device and the transport, and waits for the other ranks.
func (p *Process) joinJob(ctx context.Context, open func() (verbs.Device, error)) (err error) {
	if err = p.o.applyDefaults(); err != nil {
		return err
	}
	if p.size > protocol.MaxRanks {
		return fmt.Errorf("%w: want at most %d ranks", ErrRank, protocol.MaxRanks)
	}
	if open == nil {
		return fmt.Errorf("%w: open function is nil", ErrOptions)
	}
	dev, err := open()
	if err == nil {
		err = adapter.CheckDevice(dev)
	}
	if err != nil { // dev may be a typed nil, as returned by rnic.Open
		return err
	}
	p.dev = dev
	switch attr := p.dev.QueryDevice(); {
	case attr.AtomicCap != verbs.AtomicGlob:
		return fmt.Errorf("%w: device atomics are not atomic with processor atomics (AtomicGlob)", verbs.ErrUnsupported)
	case !attr.OrderedWrites: // a mirrored tail is polled, and its data must be there
		return fmt.Errorf("%w: device does not promise the order of writes (OrderedWrites)", verbs.ErrUnsupported)
	}
	p.handles.initHandles()
	p.channels.initTables()
	p.peers = make([]*peer, p.size)
	p.modifyQueues = map[protocol.GA][]*atomicOp{}
	if p.net, err = p.o.openNet(p.dev, (*fabricHost)(p), p.manager); err != nil {
		return err
	}
	if err = p.memory.init(p); err != nil {
		return err
	}
	if err = p.net.Start(p.memory.encodeCard()); err != nil {
		return err
	}
	if err = p.manager.Fence(ctx); err != nil {
		return err
	}
	if p.o.Progress || p.o.Net == UD { // over UD, an operation queued behind another one is started by a poll
		ctx, stop := context.WithCancel(context.Background())
		p.stopBackground = stop
		p.background.Go(func() { p.progress.RunIdle(ctx, backgroundInterval) })
	}
	return nil
}

// Rank returns this process's rank, from 0 (acp_rank), or -1 for a null handle.
func (p *Process) Rank() int {
	if p.isNull() {
		return -1
	}
	return p.rank
}

// Size returns the number of ranks of the job (acp_procs).
func (p *Process) Size() int {
	if p == nil {
		return 0
	}
	return p.size
}

// Finalize leaves the job (acp_finalize). It is collective: all ranks call it, and it returns when all have,
// when ctx ends, or after 5 minutes; then the other ranks lose this one. Incomplete operations and channels
// fail. After Finalize or Close it returns ErrClosed.
func (p *Process) Finalize(ctx context.Context) error {
	if p.isNull() {
		return p.newError("finalize", "", ErrNull)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := p.Sync(ctx)
	fencePending := false
	if err == nil {
		err = p.manager.Fence(ctx) // until the last puts of Sync are delivered everywhere
		fencePending = err != nil && ctx.Err() != nil
	}
	err = errors.Join(err, p.releaseAll(context.WithoutCancel(ctx)))
	if fencePending { // the process manager may not reply before the fence completes
		return err
	}
	return errors.Join(err, p.manager.Finalize())
}

// Close leaves the job without waiting for the other ranks, for use after an error. Operations of other ranks
// on this rank's memory fail with ErrLost. It is idempotent.
func (p *Process) Close() error {
	if p.isNull() {
		return p.newError("close", "", ErrNull)
	}
	return p.releaseAll(context.Background())
}

// Abort terminates all processes of the job (acp_abort).
func (p *Process) Abort(code int, cause string) error {
	if p.isNull() {
		return p.newError("abort", "", ErrNull)
	}
	return p.manager.Abort(code, cause)
}

// releaseAll fails all channels, stops the background goroutine, and closes the transport and the device. It
// is idempotent.
func (p *Process) releaseAll(ctx context.Context) (err error) {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.channels.failAll()
	p.changes++
	p.unlockAndNotify()
	if closed {
		return nil
	}
	if p.stopBackground != nil {
		p.stopBackground()
		p.background.Wait()
	}
	if p.net != nil {
		err = p.net.Close(ctx)
	}
	if p.dev != nil {
		err = errors.Join(err, p.dev.Close())
	}
	return err
}

// fabricHost is a Process as the host of its transport. It keeps the transport's callbacks out
// of the exported type.
type fabricHost Process

var _ fabric.Host = (*fabricHost)(nil)

// DoLocked implements fabric.Host.
func (h *fabricHost) DoLocked(f func()) {
	p := (*Process)(h)
	p.mu.Lock()
	defer p.unlockAndNotify()
	f()
	p.changes++
}

// PeerFound implements fabric.Host.
func (h *fabricHost) PeerFound(rank int, card []byte) { (*Process)(h).onPeerFound(rank, card) }

// PeerLost implements fabric.Host.
func (h *fabricHost) PeerLost(rank int, cause error) { (*Process)(h).onPeerLost(rank, cause) }

// HandleSignal implements fabric.Host.
func (h *fabricHost) HandleSignal(rank int, imm uint32) { (*Process)(h).handleSignal(rank, imm) }

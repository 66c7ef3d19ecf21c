package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/internal/rankaddr"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/verbs"
)

// GA is a global address: see package protocol. It is 8 bytes that may be sent to anyone.
type GA = protocol.GA

// Null is no address.
const Null = protocol.Null

// Process is a rank of a job. All methods may be called from any goroutine.
type Process struct {
	manager    pmi.Manager
	o          Options
	rank, size int
	dev        verbs.Device
	net        fabric.Net

	mu     sync.Mutex
	engine progressEngine
	closed bool

	memory       memory
	peers        []*peer // by rank: the table that grows with the job
	handles      handles
	relays       relays
	modifyQueues map[GA][]*atomicOp // atomics that are loops, by word: the first has its turn
	barrier      barrier
	channels     channels
	localOps     accessList // accesses to memory of this rank
	freeAccesses *access    // to be used again
}

// Open opens the adapter of a rank: for example
//
//	func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
type Open func() (verbs.Device, error)

// startTimeout is how long the ranks of a job may take to find one another.
const startTimeout = 5 * time.Minute

// Init joins the job that the process was started in (acp_init): by softrnic mpirun or
// another process manager, see package pmi. A program that was started alone is a job of one
// rank. The adapter is closed by Finalize.
func Init(open Open, o Options) (*Process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if o.Manager == nil {
		var err error
		if o.Manager, err = pmi.Open(ctx); err == nil {
			err = rankaddr.Choose(ctx, o.Manager)
		}
		if err != nil {
			return nil, fmt.Errorf("acp: init: %w", err)
		}
	}
	p := &Process{manager: o.Manager, o: o, rank: o.Manager.Rank(), size: o.Manager.Size()}
	p.engine.init(&p.mu)
	if err := p.joinJob(ctx, open); err != nil {
		return nil, fmt.Errorf("acp: init at rank %d of %d: %w", p.rank, p.size, errors.Join(err, p.releaseAll(ctx)))
	}
	return p, nil
}

func (p *Process) joinJob(ctx context.Context, open Open) (err error) {
	if err = p.o.applyDefaults(); err != nil {
		return err
	}
	if p.size > protocol.MaxRanks {
		return fmt.Errorf("%w: global addresses have room for %d ranks", ErrRank, protocol.MaxRanks)
	}
	if open == nil {
		return fmt.Errorf("%w: open is nil", ErrOptions)
	}
	dev, err := open()
	if err == nil {
		err = verbs.CheckDevice(dev)
	}
	if err != nil { // and dev a nil that is of a type, as that of rnic.Open
		return err
	}
	p.dev = dev
	if p.dev.QueryDevice().AtomicCap != verbs.AtomicGlob {
		return fmt.Errorf("%w: the adapter's atomics are not atomic with the processor's, as the owner of memory needs it", verbs.ErrUnsupported)
	}
	p.handles.init()
	p.channels.init()
	p.peers = make([]*peer, p.size)
	p.modifyQueues = map[GA][]*atomicOp{}
	if p.net, err = p.o.openNet(p.dev, p, p.manager); err != nil {
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
	if p.o.Progress || p.o.Net == UD { // over datagrams, what is queued behind an operation needs somebody to begin it
		p.engine.backgroundDone = make(chan struct{})
		go p.runBackground()
	}
	return nil
}

// Rank is who this is, from 0 (acp_rank).
// It is -1 of the null handle.
func (p *Process) Rank() int {
	if p.isNull() {
		return -1
	}
	return p.rank
}

// Size is how many ranks the job has (acp_procs).
func (p *Process) Size() int {
	if p == nil {
		return 0
	}
	return p.size
}

// Finalize ends the membership (acp_finalize): all ranks call it, and it returns when all
// have. Operations and channels that are not done are lost.
func (p *Process) Finalize() error {
	if p.isNull() {
		return p.newError("finalize", "", ErrNull)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err := p.Sync(ctx)
	if err == nil {
		err = p.manager.Fence(ctx) // the last puts of Sync have come everywhere
	}
	err = errors.Join(err, p.releaseAll(ctx))
	return errors.Join(err, p.manager.Finalize())
}

// Close ends the membership without waiting for the others: after an error, when they may not come any more.
// Those that want something of this rank lose it.
func (p *Process) Close() error {
	if p.isNull() {
		return p.newError("close", "", ErrNull)
	}
	return p.releaseAll(context.Background())
}

// Abort ends all processes of the job (acp_abort).
func (p *Process) Abort(code int, why string) error {
	if p.isNull() {
		return p.newError("abort", "", ErrNull)
	}
	return p.manager.Abort(code, why)
}

// releaseAll gives everything back.
func (p *Process) releaseAll(ctx context.Context) (err error) {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.channels.failAll()
	p.engine.events++
	p.unlockAndNotify()
	if closed {
		return nil
	}
	if p.engine.backgroundDone != nil {
		<-p.engine.backgroundDone
	}
	if p.net != nil {
		err = p.net.Close(ctx)
	}
	if p.dev != nil {
		err = errors.Join(err, p.dev.Close())
	}
	return err
}

// DoLocked implements fabric.Host.
func (p *Process) DoLocked(f func()) {
	if p.isNull() || f == nil {
		return
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	f()
	p.engine.events++
}

// Stats are figures of this rank's communication, by name: those of what carries it, and how many messages it
// has put to where a receive waited for them (placed).
func (p *Process) Stats() map[string]uint64 {
	if p.isNull() {
		return map[string]uint64{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.net.Stats()
	s["placed"] = p.channels.directMessages
	return s
}

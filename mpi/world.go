package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/rankaddr"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/hybrid"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/verbs"
)

// World is the membership of a rank in a job, and the communicator of all ranks
// (MPI_COMM_WORLD). It is a handle, passed by value. The zero World is MPI's null handle: its
// calls return ErrComm.
type World struct {
	*Comm
	Self *Comm // the communicator of this rank alone (MPI_COMM_SELF)
}

// job is the state of a rank's membership in a job. Every communicator refers to it.
type job struct {
	comm, self *Comm

	eng     *engine.Engine
	manager pmi.Manager
	dev     verbs.Device
	o       Options
	cpus    processors

	contexts *contextIDs
	comms    commTable
	windows  windowTable
	detector *deadlockDetector
	channels rdmaChannels

	finalized atomic.Bool

	mu       sync.Mutex
	detached []*Request // sends of Bsend that are not done
}

// Open opens the adapter of a rank, for example
//
//	func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
type Open func() (verbs.Device, error)

// Init joins the job that started the process (MPI_Init), by softrnic mpirun or another process
// manager of package pmi. A program started alone is a job of one rank. Init opens the adapter
// if the job has more than one rank; Finalize closes it. Init waits up to 5 minutes for the
// other ranks.
func Init(open Open, o Options) (World, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if o.Manager == nil {
		var err error
		if o.Manager, err = pmi.Open(ctx); err == nil {
			err = rankaddr.Choose(ctx, o.Manager)
		}
		if err != nil {
			return World{}, fmt.Errorf("mpi: init: %w", err)
		}
	}
	w, err := joinJob(ctx, open, o)
	if err != nil {
		return World{}, fmt.Errorf("mpi: init at rank %d of %d: %w", o.Manager.Rank(), o.Manager.Size(), err)
	}
	return World{w.comm, w.self}, nil
}

// startTimeout is the time in which the ranks of a job must find one another.
const startTimeout = 5 * time.Minute

// joinJob creates the job: the engine, the fabric, the deadlock detector and the predefined
// communicators.
func joinJob(ctx context.Context, open Open, o Options) (*job, error) {
	if err := o.fillFromEnv(); err != nil {
		return nil, err
	}
	w := &job{manager: o.Manager, o: o, contexts: newContextIDs(maxContexts)}
	rank, size := o.Manager.Rank(), o.Manager.Size()
	var err error
	w.eng, err = engine.New(rank, size, func(h fabric.Host) (fabric.Fabric, error) {
		if o.Net == TCP {
			return tcp.New(h, o.Manager, o.tcpOptions())
		}
		if open == nil {
			return nil, fmt.Errorf("open is nil in a job of several ranks: %w", verbs.ErrInvalid)
		}
		dev, err := open()
		if err == nil {
			err = verbs.CheckDevice(dev)
		}
		if err != nil { // dev may be a typed nil, such as that of rnic.Open
			return nil, err
		}
		w.dev = dev
		switch o.transports(size) {
		case coll.ReliableConnections:
			return rdma.New(w.dev, h, o.Manager, o.rdmaOptions())
		case coll.UnreliableDatagrams:
			return ud.New(w.dev, h, o.Manager, o.udOptions())
		}
		return hybrid.New(w.dev, h, o.Manager, hybrid.Options{Limit: o.RCLimit, RDMA: o.rdmaOptions(), UD: o.udOptions()})
	})
	if err == nil && size > 1 {
		where := &rankLocations{manager: o.Manager}
		w.eng.Do(func(core *protocol.Core) { core.OnNotify, core.RankName = w.channels.handleNotify, where.lookup })
		err = w.exchangeProcessInfo(ctx)
	}
	if err != nil {
		w.releaseResources(ctx)
		return nil, err
	}
	w.detector = newDeadlockDetector(w)
	w.comm = w.newComm("world", worldID, nil, rank, size)
	w.self = w.newComm("self", selfID, []int{rank}, 0, 1)
	w.eng.Do(func(core *protocol.Core) {
		core.Handler, core.OnPeerFailed, core.OnSignature = w.handleActive, w.onRankLost, w.compareMessage
	})
	w.detector.start()
	if o.ConnectAll && size > 1 {
		if err := w.eng.Fabric().ConnectAll(ctx); err != nil {
			return nil, err
		}
		if err := w.comm.Barrier(); err != nil { // ends the connect phase (iWARP paper, section 3.1)
			return nil, err
		}
	}
	return w, nil
}

// exchangeProcessInfo publishes the processors and the location of this rank, passes the first
// fence and reads the processors of the other nodes.
func (w *job) exchangeProcessInfo(ctx context.Context) (err error) {
	if err := cmp.Or(publishProcessors(w.manager, &w.o), publishLocation(w.manager)); err != nil {
		return err
	}
	if err := w.manager.Fence(ctx); err != nil {
		return err
	}
	w.cpus, err = readProcessors(ctx, w.manager, &w.o)
	return err
}

// Finalize ends the membership (MPI_Finalize). All ranks call it; it returns after all have
// called it. It frees the attributes of Self first. Requests that are not done, and all later
// calls, end with ErrFinalized. If the ranks disagreed about an earlier collective call and no
// later call returned that, Finalize returns an ErrMismatch (docs/mpi.md).
//
// When Finalize is deferred and the rank panics, it aborts the job and continues to panic.
// It waits without a limit for a rank that computes; see FinalizeContext.
func (w World) Finalize() error {
	if reason := recover(); reason != nil {
		_ = w.Abort(panicExitCode, fmt.Sprintf("rank %d panics: %v", w.Rank(), reason))
		panic(reason)
	}
	if w.isNull() {
		return w.fail("finalize", "", errNullComm)
	}
	return w.world.finalize(context.Background())
}

// FinalizeContext is Finalize that ends when ctx ends; a nil ctx never ends. It then returns
// ctx's error, and the rank leaves the job without waiting for the others: they lose it. Unlike
// a deferred Finalize, it does not abort the job at a panic.
func (w World) FinalizeContext(ctx context.Context) error {
	if w.isNull() {
		return w.fail("finalize", "", errNullComm)
	}
	if w.world.finalized.Load() {
		return w.fail("finalize", "", ErrFinalized)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	return w.world.finalize(ctx)
}

// finalize is World.Finalize.
func (w *job) finalize(ctx context.Context) error {
	w.self.freeAttrs()
	stop := context.AfterFunc(ctx, w.eng.FailAll)
	defer stop()
	w.mu.Lock()
	detached := w.detached
	w.mu.Unlock()
	_, err := WaitAll(detached...)
	last := barrierOp()
	last.calledAs, last.isFinalize = "finalize", true
	err = errors.Join(err, w.comm.runBlocking(last))
	w.detector.stop() // ranks that exit from now on are not failures
	w.eng.FailAll()
	stopped := false // a rank does not reach the last fence
	if err == nil {
		err = w.waitLastFence(ctx)
		stopped = errors.Is(err, ErrLost)
		w.eng.PollOnce()
	}
	if ended := context.Cause(ctx); ended != nil && err != nil {
		return errors.Join(w.comm.fail("finalize", "", ended), w.releaseResources(context.WithoutCancel(ctx)))
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, c := range w.comms.all() {
		if late := c.lateDisagreement(); late != nil {
			err = errors.Join(err, c.fail("finalize", "", late))
		}
	}
	err = errors.Join(err, w.releaseResources(ctx))
	if stopped { // the process manager may not reply before the fence completes
		return err
	}
	return errors.Join(err, w.manager.Finalize())
}

// waitLastFence waits until the packets of the last barrier have arrived at all ranks. It fails
// with ErrLost after Options.GiveUp: all ranks have made all their calls, so a missing rank is
// stopped. No liveness probes are sent at this stage.
func (w *job) waitLastFence(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.o.GiveUp)
	defer cancel()
	err := w.manager.Fence(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("mpi: finalize: fence: %w: a rank has not arrived %v after the last barrier", ErrLost, w.o.GiveUp)
	}
	return err
}

// panicExitCode is the exit status of a job after a panic, as of a Go program.
const panicExitCode = 2

// handleActive implements protocol.Core.Handler: it dispatches active messages to the deadlock
// detector and to the windows.
func (w *job) handleActive(from int, h *envelope.Header, payload []byte) error {
	if h.Context == worldID {
		return w.detector.handlePacket(from, h, payload)
	}
	return w.windows.handlePacket(from, h, payload)
}

// onRankLost implements protocol.Core.OnPeerFailed.
func (w *job) onRankLost(rank int) {
	w.detector.onRankLost(w.eng.Core(), rank)
	w.windows.onRankLost(rank)
}

// addDetached keeps a buffered send until it is done.
func (w *job) addDetached(r *Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.detached[:0]
	for _, d := range w.detached {
		if !d.comm.eng.Test((*requestWait)(d)) {
			kept = append(kept, d)
		}
	}
	w.detached = append(kept, r)
}

// releaseResources stops the goroutines and closes the fabric and the adapter.
func (w *job) releaseResources(ctx context.Context) (err error) {
	w.finalized.Store(true)
	if w.eng != nil {
		if w.detector != nil {
			w.detector.stop()
		}
		w.windows.stop(w)
		err = w.eng.Close(ctx)
	}
	for _, c := range w.comms.all() {
		c.sharedMemory.release()
	}
	if w.dev != nil {
		err = errors.Join(err, w.dev.Close())
	}
	return err
}

// Abort ends all processes of the job (MPI_Abort).
func (w World) Abort(code int, why string) error {
	if w.isNull() {
		return w.fail("abort", "", errNullComm)
	}
	return w.world.manager.Abort(code, why)
}

// Stats returns the counters of this rank's fabric by name.
func (w World) Stats() (stats map[string]uint64) {
	if w.isNull() {
		return map[string]uint64{}
	}
	f := w.eng.Fabric()
	if f == nil {
		return map[string]uint64{}
	}
	w.eng.Do(func(*protocol.Core) { stats = f.Stats() })
	return stats
}

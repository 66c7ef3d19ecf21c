package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/rankaddr"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/detector"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/hybrid"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
	"github.com/softrnic/softrnic/mpi/internal/placement"
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

	eng       *engine.Engine
	manager   pmi.Manager
	placement *placement.Placement
	dev       verbs.Device
	o         Options

	calls    *collective.Job
	windows  *onesided.Table
	detector *detector.Detector

	finalized atomic.Bool

	mu       sync.Mutex
	detached []*Request // sends of Bsend that are not done
}

// Init joins the job that started the process (MPI_Init), by softrnic mpirun or another process
// manager of package pmi. A program started alone is a job of one rank. If the job has more than
// one rank, Init opens the adapter by open, for example
// func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, and Finalize closes it. Init
// waits for the other ranks for at most 5 minutes. After an error the process cannot join the
// same job again.
func Init(open func() (verbs.Device, error), o Options) (World, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if o.Manager == nil {
		var err error
		if o.Manager, err = pmi.Open(ctx); err == nil {
			err = rankaddr.Choose(ctx, o.Manager)
		}
		if err != nil {
			return World{}, &Error{Op: "init", Rank: Undefined, Err: err}
		}
	}
	w, err := joinJob(ctx, open, o)
	if err != nil {
		return World{}, &Error{Op: "init", Comm: "world", Rank: o.Manager.Rank(), Args: fmt.Sprintf("job of %d ranks", o.Manager.Size()), Err: err}
	}
	return World{w.comm, w.self}, nil
}

// startTimeout is the time in which the ranks of a job must find one another.
const startTimeout = 5 * time.Minute

// joinJob creates the job: the engine, the fabric, the deadlock detector and the predefined
// communicators.
func joinJob(ctx context.Context, open func() (verbs.Device, error), o Options) (*job, error) {
	ranks := placement.New(o.Manager)
	if err := o.fillFromEnv(); err != nil {
		ranks.JoinAsFailed(err, startTimeout)
		return nil, err
	}
	w := &job{manager: o.Manager, placement: ranks, o: o}
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
			err = adapter.CheckDevice(dev)
		}
		if err != nil { // dev may be a typed nil, such as that of rnic.Open
			return nil, err
		}
		w.dev = dev
		switch o.transportsFor(size) {
		case coll.ReliableConnections:
			return rdma.New(w.dev, h, o.Manager, o.rdmaOptions())
		case coll.UnreliableDatagrams:
			return ud.New(w.dev, h, o.Manager, o.udOptions())
		}
		return hybrid.New(w.dev, h, o.Manager, hybrid.Options{Limit: o.RCLimit, RDMA: o.rdmaOptions(), UD: o.udOptions()})
	})
	if err == nil {
		w.windows = onesided.NewTable(onesided.Config{Engine: w.eng, Direct: o.OneSided == Direct})
		w.detector = detector.New(detector.Config{Engine: w.eng, Watchdog: o.Watchdog, GiveUp: o.GiveUp, Report: o.Report, Signal: o.reportSignal})
		calls := collective.Options{Check: o.Check, Choices: o.choices}
		if w.eng.Fabric() != nil {
			calls.Transports = o.transportsFor(size)
		}
		w.calls = collective.NewJob(w.eng, w.detector, calls)
		w.detector.AttachCalls(w.calls)
		w.eng.Do(func(core *protocol.Core) { // before the fence: packets of others may arrive right after it
			core.OnNotify, core.RankName = w.calls.HandleNotify, ranks.DescribeRank
			core.Handler, core.OnPeerFailed, core.OnSignature = w.handleActive, w.onRankLost, w.calls.CompareMessage
		})
		if size > 1 {
			err = ranks.Exchange(ctx, o.commonOptions())
		}
	} else {
		ranks.JoinAsFailed(err, startTimeout)
	}
	if err != nil {
		w.releaseResources(ctx)
		return nil, err
	}
	w.comm = w.newComm("world", comm.WorldID, nil, rank, size, nil)
	w.self = w.newComm("self", comm.SelfID, []int{rank}, 0, 1, nil)
	w.detector.Start()
	if o.ConnectAll && size > 1 {
		if err := w.connectAll(ctx); err != nil {
			w.detector.AnnounceDeparture(err, o.GiveUp)
			w.releaseResources(ctx)
			return nil, err
		}
	}
	return w, nil
}

// connectAll connects to all ranks, and returns when all have done so (iWARP paper,
// section 3.1).
func (j *job) connectAll(ctx context.Context) error {
	if err := j.eng.Fabric().ConnectAll(ctx); err != nil {
		return err
	}
	return j.comm.Barrier()
}

// handleActive implements protocol.Core.Handler: it dispatches active messages to the deadlock
// detector and to the windows.
func (j *job) handleActive(from int, h *envelope.Header, payload []byte) error {
	if h.Context == deadlock.PacketContext {
		return j.detector.HandlePacket(from, h, payload)
	}
	return j.windows.HandlePacket(from, h, payload)
}

// onRankLost implements protocol.Core.OnPeerFailed.
func (j *job) onRankLost(rank int) {
	j.detector.HandleRankLost(rank)
	j.windows.OnRankLost(rank)
}

// addDetached keeps a buffered send until it is done.
func (j *job) addDetached(r *Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := j.detached[:0]
	for _, d := range j.detached {
		if !d.comm.base.Engine.Test((*requestWait)(d)) {
			kept = append(kept, d)
		}
	}
	j.detached = append(kept, r)
}

// releaseResources stops the goroutines and closes the fabric and the adapter.
func (j *job) releaseResources(ctx context.Context) (err error) {
	j.finalized.Store(true)
	if j.eng != nil {
		if j.detector != nil {
			j.detector.Stop()
		}
		j.windows.Stop()
		err = j.eng.Close(ctx)
	}
	if j.calls != nil {
		j.calls.Close()
	}
	if j.dev != nil {
		err = errors.Join(err, j.dev.Close())
	}
	return err
}

// Report queries the state of all ranks and returns a report: the calls in which they wait and
// for which ranks, deadlocks, collective calls that do not match, and messages without a
// receive. It names ranks that do not reply within 3 s. The other ranks continue meanwhile.
// Report ends when ctx ends; a nil ctx never ends.
func (w World) Report(ctx context.Context) (string, error) {
	if w.isNull() {
		return "", w.fail("report", "", errNullComm)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	text, err := w.world.detector.Report(ctx)
	if err != nil {
		return "", w.fail("report", "", err)
	}
	return text, nil
}

// Abort ends all processes of the job (MPI_Abort).
func (w World) Abort(code int, cause string) error {
	if w.isNull() {
		return w.fail("abort", "", errNullComm)
	}
	return w.world.manager.Abort(code, cause)
}

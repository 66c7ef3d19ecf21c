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
	"github.com/softrnic/softrnic/mpi/coll"
	"github.com/softrnic/softrnic/mpi/engine"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/fabric"
	"github.com/softrnic/softrnic/mpi/fabric/hybrid"
	"github.com/softrnic/softrnic/mpi/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/fabric/ud"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/mpi/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// World is a rank's membership in a job, and the communicator of all its ranks
// (MPI_COMM_WORLD).
type World struct {
	*Comm
	Self *Comm // of this rank alone (MPI_COMM_SELF)

	eng     *engine.Engine
	manager pmi.Manager
	dev     verbs.Device
	o       Options
	cpus    processors

	contexts *contexts
	comms    comms
	windows  windows
	lookout  *lookout
	lanes    lanes

	finalized atomic.Bool

	mu       sync.Mutex
	detached []*Request // of Bsend
}

// Open opens the adapter of a rank: for example
//
//	func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
type Open func() (verbs.Device, error)

// Init joins the job that the process was started in (MPI_Init): by softrnic
// mpirun or another process manager, see package pmi. A program that was
// started alone is a job of one rank. The adapter is opened if the job has
// others, and closed by Finalize. After an error the process cannot join the same job again.
func Init(open Open, o Options) (*World, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	if o.Manager == nil {
		var err error
		if o.Manager, err = pmi.Open(ctx); err == nil {
			err = rankaddr.Choose(ctx, o.Manager)
		}
		if err != nil {
			return nil, fmt.Errorf("mpi: init: %w", err)
		}
	}
	w, err := join(ctx, open, o)
	if err != nil {
		return nil, fmt.Errorf("mpi: init at rank %d of %d: %w", o.Manager.Rank(), o.Manager.Size(), err)
	}
	return w, nil
}

// startTime is how long the ranks of a job may take to find one another.
const startTime = 5 * time.Minute

func join(ctx context.Context, open Open, o Options) (*World, error) {
	if err := o.fill(); err != nil {
		joinFirstFence(o.Manager, err)
		return nil, err
	}
	w := &World{manager: o.Manager, o: o, contexts: newContexts(maxContexts)}
	rank, size := o.Manager.Rank(), o.Manager.Size()
	var err error
	w.eng, err = engine.New(rank, size, func(h fabric.Host) (fabric.Fabric, error) {
		if o.Net == TCP {
			return tcp.New(h, o.Manager, o.TCP)
		}
		if open == nil {
			return nil, fmt.Errorf("open: nil, and the job has other ranks: %w", verbs.ErrInvalid)
		}
		dev, err := open()
		if err == nil {
			err = verbs.CheckDevice(dev)
		}
		if err != nil { // and dev a nil that is of a type, as that of rnic.Open
			return nil, err
		}
		w.dev = dev
		switch o.carried(size) {
		case coll.ByConnections:
			return rdma.New(w.dev, h, o.Manager, o.RDMA)
		case coll.ByDatagrams:
			return ud.New(w.dev, h, o.Manager, o.UD)
		}
		return hybrid.New(w.dev, h, o.Manager, hybrid.Options{Limit: o.RCLimit, RDMA: o.RDMA, UD: o.UD})
	})
	if err == nil {
		w.lookout = newLookout(w)
		where := &whereabouts{manager: o.Manager}
		w.eng.Do(func(core *protocol.Core) { // before the fence: packets of others may arrive right after it
			core.Noticed, core.Name = w.lanes.noticed, where.of
			core.Handler, core.Gone, core.Strange = w.handle, w.gone, w.strange
		})
		if size > 1 {
			err = w.meet(ctx)
		}
	} else {
		joinFirstFence(o.Manager, err)
	}
	if err != nil {
		w.release(ctx)
		return nil, err
	}
	w.Comm = w.comm("world", worldID, nil, rank, size)
	w.Self = w.comm("self", selfID, []int{rank}, 0, 1)
	w.lookout.start()
	if o.ConnectAll && size > 1 {
		if err := w.connectAll(ctx); err != nil {
			w.departEarly(err)
			w.release(ctx)
			return nil, err
		}
	}
	return w, nil
}

// connectAll connects to all ranks, and returns when all have done so (iWARP paper,
// section 3.1).
func (w *World) connectAll(ctx context.Context) error {
	if err := w.eng.Fabric().ConnectAll(ctx); err != nil {
		return err
	}
	return w.Barrier()
}

// meet is the first fence: what ranks have to know of one another is told before.
func (w *World) meet(ctx context.Context) (err error) {
	if err := cmp.Or(tellProcessors(w.manager, &w.o), tellWhereabouts(w.manager, nil)); err != nil {
		return err
	}
	if err := w.manager.Fence(ctx); err != nil {
		return err
	}
	w.cpus, err = hearProcessors(ctx, w.manager, &w.o)
	return err
}

// handle is protocol.Core.Handler: packets of windows, and of those who look out.
func (w *World) handle(from int, h *envelope.Header, payload []byte) error {
	if h.Context == worldID {
		return w.lookout.handle(from, h, payload)
	}
	return w.windows.handle(from, h, payload)
}

// gone is protocol.Core.Gone.
func (w *World) gone(rank int) {
	w.lookout.gone(w.eng.Core(), rank)
	w.windows.gone(rank)
}

// detach keeps a buffered send until it is done.
func (w *World) detach(r *Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.detached[:0]
	for _, d := range w.detached {
		if !d.comm.eng.Test(unseen{d}) {
			kept = append(kept, d)
		}
	}
	w.detached = append(kept, r)
}

func (w *World) release(ctx context.Context) (err error) {
	w.finalized.Store(true)
	if w.eng != nil {
		if w.lookout != nil {
			w.lookout.end()
		}
		w.windows.stop(w)
		err = w.eng.Close(ctx)
	}
	for _, c := range w.comms.all() {
		c.sharing.end()
	}
	if w.dev != nil {
		err = errors.Join(err, w.dev.Close())
	}
	return err
}

// Abort ends all processes of the job (MPI_Abort).
func (w *World) Abort(code int, why string) error {
	if w == nil || w.manager == nil {
		return (*Comm)(nil).fail("abort", "", errNullComm)
	}
	return w.manager.Abort(code, why)
}

// Stats are figures of this rank's communication, by name.
func (w *World) Stats() (stats map[string]uint64) {
	if w.asComm().isNull() {
		return map[string]uint64{}
	}
	f := w.eng.Fabric()
	if f == nil {
		return map[string]uint64{}
	}
	w.eng.Do(func(*protocol.Core) { stats = f.Stats() })
	return stats
}

package mpi

import (
	"context"
	"fmt"
	"io"

	"github.com/softrnic/softrnic/internal/rankaddr"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/detector"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/membership"
	"github.com/softrnic/softrnic/mpi/internal/pt2pt"
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
	*membership.Membership
	comm, self *Comm
	messages   *pt2pt.Job
	o          Options
}

// Init joins the job that started the process (MPI_Init), by softrnic mpirun or another process
// manager of package pmi. A program started alone is a job of one rank. If the job has more than
// one rank, Init opens the adapter by open, for example
// func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, and Finalize closes it. Init
// waits for the other ranks for at most 5 minutes. After an error the process cannot join the
// same job again.
func Init(open func() (verbs.Device, error), o Options) (World, error) {
	ctx, cancel := vtime.WithTimeout(context.Background(), membership.StartTimeout)
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

// joinJob joins the job and makes the predefined communicators.
func joinJob(ctx context.Context, open func() (verbs.Device, error), o Options) (*job, error) {
	if err := o.fillFromEnv(); err != nil {
		membership.JoinAsFailed(o.Manager, err)
		return nil, err
	}
	rank, size := o.Manager.Rank(), o.Manager.Size()
	calls := collective.Options{Check: o.Check, Choices: o.choices}
	if size > 1 {
		calls.Transports = o.transportsFor(size)
	}
	m, err := membership.Join(ctx, membership.Config{
		Manager:    o.Manager,
		OpenFabric: func(h fabric.Host) (fabric.Fabric, io.Closer, error) { return o.openFabric(h, open) },
		Common:     o.commonOptions(),
		Direct:     o.OneSided == Direct,
		Calls:      calls,
		Detector:   detector.Config{Watchdog: o.Watchdog, GiveUp: o.GiveUp, Report: o.Report, Signal: o.reportSignal},
	})
	if err != nil {
		return nil, err
	}
	w := &job{Membership: m, messages: pt2pt.NewJob(o.Check), o: o}
	w.comm = w.newComm("world", comm.WorldID, nil, rank, size, nil)
	w.self = w.newComm("self", comm.SelfID, []int{rank}, 0, 1, nil)
	m.Detector.Start()
	if o.ConnectAll && size > 1 {
		if err := w.connectAll(ctx); err != nil {
			m.Detector.AnnounceDeparture(err, o.GiveUp)
			_ = m.Close(ctx)
			return nil, err
		}
	}
	return w, nil
}

// connectAll connects to all ranks, and returns when all have done so (iWARP paper,
// section 3.1).
func (j *job) connectAll(ctx context.Context) error {
	if err := j.Engine.Fabric().ConnectAll(ctx); err != nil {
		return err
	}
	return j.comm.Barrier()
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
	text, err := w.world.Detector.Report(ctx)
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
	return w.world.Manager.Abort(code, cause)
}

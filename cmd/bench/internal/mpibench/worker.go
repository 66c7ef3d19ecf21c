package mpibench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/imb"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/cg"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/ep"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/is"
	"github.com/softrnic/softrnic/cmd/bench/internal/osu"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

const (
	worker   = "mpibench"
	roleRank = "rank"
)

// A request requests one round from all ranks. One of the fields is set.
type request struct {
	OSU    *osuRound `json:",omitempty"`
	IMB    *imbRound `json:",omitempty"`
	NAS    *nasRound `json:",omitempty"`
	Memory Traffic   `json:",omitempty"`

	Burst        *burstRound `json:",omitempty"`
	PacketMemory bool        `json:",omitempty"`
	Halo         *haloRound  `json:",omitempty"`

	Overlap *overlapRound `json:",omitempty"`
	Compute time.Duration `json:",omitempty"` // processor time of a computation of rank 0

	Calls *Calls `json:",omitempty"`

	Late time.Duration `json:",omitempty"` // a barrier that the last rank enters so late
}

type osuRound struct {
	Test    string
	Options osu.Options
}

type imbRound struct {
	Benchmark string
	Options   imb.Options
}

type nasRound struct {
	Kernel string
	Class  nas.Class
}

// A reply is the result of a round, at rank 0.
type reply struct {
	OSU *osu.Row    `json:",omitempty"`
	IMB *imb.Row    `json:",omitempty"`
	NAS *nas.Report `json:",omitempty"`

	Burst *measure.Latency `json:",omitempty"`
	Halo  *measure.Latency `json:",omitempty"`

	Overlap      overlap.Result `json:",omitzero"`
	Stolen       float64        `json:",omitempty"` // percent
	Calls        *CallTimes     `json:",omitempty"` // set at every rank
	Memory       *Memory        `json:",omitempty"` // set at every rank
	PacketMemory float64        `json:",omitempty"` // set at every rank
	HaloMemory   *HaloMemory    `json:",omitempty"` // set at every rank
	Usage        *measure.Usage `json:",omitempty"` // set at every rank but the last
}

var kernels = map[string]func(*mpi.Comm, nas.Class) (nas.Report, error){"is": is.Run, "cg": cg.Run, "ep": ep.Run}

func init() {
	proc.RegisterArgs(worker, roleRank, func(ctx context.Context, w *proc.Worker, c Config) error {
		o, ok := c.Transport.mpiOptions()
		if !ok {
			return fmt.Errorf("mpibench: unknown transport %q", c.Transport)
		}
		o.RCLimit = c.RCLimit
		if c.Alltoall != nil {
			c.Alltoall.applyTo(&o)
		}
		if c.Algorithms != nil {
			o.Algorithms = c.Algorithms
		}
		if c.Flow != nil {
			c.Flow.applyTo(&o)
		}
		if c.Rails > 0 {
			o.RDMA.Rails = c.Rails
		}
		if c.ICM != "" {
			if err := os.Setenv("SOFTRNIC_ICM", c.ICM); err != nil {
				return err
			}
		}
		before := heapBytes()
		world, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{Spin: c.Spin, Impair: c.Impair}) }, o)
		if err != nil {
			return err
		}
		return proc.Serve(ctx, w, rank{world, before}.serveRequest) // ends with the process, without Finalize
	})
}

// A rank is one of the processes.
type rank struct {
	mpi.World
	before float64 // heap bytes of the program without the library
}

func (w rank) serveRequest(_ context.Context, r request) (out reply, err error) {
	switch {
	case r.OSU != nil:
		out.OSU, err = w.runOSU(r.OSU)
	case r.IMB != nil:
		out.IMB, err = w.runIMB(r.IMB)
	case r.NAS != nil:
		out.NAS, err = w.runNAS(r.NAS)
	case r.Calls != nil:
		var t CallTimes
		t, err = r.Calls.Run(w.World)
		out.Calls = &t
	case r.Memory != "":
		out.Memory, err = w.measureMemory(r.Memory)
	case r.Burst != nil:
		out.Burst, err = w.runBursts(r.Burst)
	case r.PacketMemory:
		out.PacketMemory, err = w.measurePacketMemory()
	case r.Halo != nil:
		return w.runHalo(r.Halo)
	case r.Overlap != nil:
		out.Overlap, err = w.runOverlap(*r.Overlap)
	case r.Compute > 0:
		if w.Rank() == 0 {
			out.Stolen = overlap.Stolen(r.Compute)
		}
	case r.Late > 0:
		out.Usage, err = w.waitForLate(r.Late)
	default:
		err = errors.New("mpibench: empty request")
	}
	return out, err
}

func (w rank) runOSU(r *osuRound) (*osu.Row, error) {
	t, err := osu.Find(r.Test)
	if err != nil {
		return nil, err
	}
	rows, err := osu.Run(w.Comm, t, r.Options)
	if err != nil || w.Rank() > 0 {
		return nil, err
	}
	return &rows[len(rows)-1], nil
}

func (w rank) runIMB(r *imbRound) (*imb.Row, error) {
	list, err := imb.Find(r.Benchmark)
	if err != nil {
		return nil, err
	}
	rows, err := imb.Run(w.Comm, list, r.Options)
	if err != nil || w.Rank() > 0 {
		return nil, err
	}
	return &rows[len(rows)-1], nil
}

func (w rank) runNAS(r *nasRound) (*nas.Report, error) {
	run, ok := kernels[r.Kernel]
	if !ok {
		return nil, fmt.Errorf("mpibench: unknown kernel %q", r.Kernel)
	}
	report, err := run(w.Comm, r.Class)
	if err == nil && !report.Verified() {
		err = fmt.Errorf("wrong data:\n%v", report)
	}
	return &report, err
}

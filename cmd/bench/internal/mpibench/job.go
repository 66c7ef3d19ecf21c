package mpibench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/imb"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/cmd/bench/internal/osu"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/internal/cpus"
)

// Config describes a job.
type Config struct {
	Transport  Transport
	Ranks      int
	RCLimit    int               // of Hybrid: the maximum number of RC connections of a rank
	Alltoall   *Alltoall         // nil: selected by the table
	Flow       *Flow             // nil: the default of package mpi
	Loose      bool              // the processes may run on all CPUs
	Algorithms map[string]string // of mpi.Options
	Bind       cpus.Binding      // empty: a CPU for each if there are enough, else as mpirun does
	OneCPU     bool              // all processes run on the first CPU
	Spin       time.Duration     // of rnic.Options
	Rails      int               // of mpi.RDMAOptions; 0: the default
	Impair     string            // of rnic.Options
	ICM        string            // SOFTRNIC_ICM of the ranks: "32,1us", "off"; empty: that of this process
}

// roundTimeout is the maximum duration of a round.
const roundTimeout = 5 * time.Minute

// A Job is a set of rank processes that wait for requests. It is used by one goroutine only.
type Job struct {
	*proc.Group
	Config
}

// Open starts the processes and joins them to a job. Each has its own CPU if there are enough;
// otherwise they are bound like those of mpirun. The caller must close the job.
func Open(ctx context.Context, c Config) (*Job, error) {
	if _, ok := c.Transport.mpiOptions(); !ok {
		return nil, fmt.Errorf("mpibench: unknown transport %q; known transports: %v", c.Transport, allTransports())
	}
	specs := make([]proc.Spec, c.Ranks)
	for i := range specs {
		specs[i] = proc.Spec{Name: worker, Role: roleRank, Args: c}
	}
	o := proc.Options{Pin: !c.Loose && !c.OneCPU && c.Bind == "" && c.Ranks <= runtime.NumCPU(), Bind: cmp.Or(c.Bind, cpus.Auto), Timeout: roundTimeout, Ranks: true}
	if c.OneCPU {
		o.CPUs = cpus.CPUOrder()[:1]
	}
	g, err := proc.Start(ctx, o, specs...)
	if err != nil {
		return nil, err
	}
	return &Job{g, c}, nil
}

func (j *Job) callRanks(ctx context.Context, r request) (reply, error) {
	first, err := proc.CallFirst[request, reply](ctx, j.Group, r)
	if err != nil {
		err = fmt.Errorf("%s: %w", j.Transport, err)
	}
	return first, err
}

// OSU runs one OSU benchmark with one size.
func (j *Job) OSU(ctx context.Context, test string, size int, o osu.Options) (osu.Row, error) {
	o.Min, o.Max = size, size
	r, err := j.callRanks(ctx, request{OSU: &osuRound{test, o}})
	if err != nil {
		return osu.Row{}, err
	}
	if r.OSU == nil {
		return osu.Row{}, errors.New("mpibench: osu_" + test + ": no result")
	}
	return *r.OSU, nil
}

// IMB runs one Intel benchmark with one size on all ranks.
func (j *Job) IMB(ctx context.Context, benchmark string, size, repetitions int) (imb.Row, error) {
	o := imb.Defaults()
	o.MinRanks, o.Sizes, o.Repetitions = j.Ranks, []int{size}, repetitions
	r, err := j.callRanks(ctx, request{IMB: &imbRound{benchmark, o}})
	if err != nil {
		return imb.Row{}, err
	}
	if r.IMB == nil {
		return imb.Row{}, fmt.Errorf("mpibench: imb %s: no result", benchmark)
	}
	return *r.IMB, nil
}

// NAS runs one of the kernels is, cg and ep. A result that differs from the published one is an
// error.
func (j *Job) NAS(ctx context.Context, kernel string, class nas.Class) (nas.Report, error) {
	r, err := j.callRanks(ctx, request{NAS: &nasRound{kernel, class}})
	if err != nil {
		return nas.Report{}, err
	}
	return *r.NAS, nil
}

// The functions below return rounds for measure.Alternate. The first round of each also
// verifies data.

// Latency returns rounds of osu_latency, in microseconds.
func (j *Job) Latency(size, iters int) measure.Round {
	return j.osuRounds("latency", size, iters, func(r osu.Row) float64 { return r.Latency })
}

// Bandwidth returns rounds of osu_bw, in MB/s.
func (j *Job) Bandwidth(size, iters int) measure.Round {
	return j.osuRounds("bw", size, iters, func(r osu.Row) float64 { return r.Bandwidth })
}

// OneSidedLatency returns rounds of osu_put_latency or osu_get_latency, in microseconds. op is
// "put" or "get".
func (j *Job) OneSidedLatency(op string, size, iters int) measure.Round {
	return j.osuRounds(op+"_latency", size, iters, func(r osu.Row) float64 { return r.Latency })
}

// OneSidedBandwidth returns rounds of osu_put_bw or osu_get_bw, in MB/s.
func (j *Job) OneSidedBandwidth(op string, size, iters int) measure.Round {
	return j.osuRounds(op+"_bw", size, iters, func(r osu.Row) float64 { return r.Bandwidth })
}

func (j *Job) osuRounds(name string, size, iters int, figure func(osu.Row) float64) measure.Round {
	checked := false
	return func(ctx context.Context) (float64, error) {
		t, err := osu.Find(name)
		if err != nil {
			return 0, err
		}
		o := osu.Defaults(t)
		if !checked {
			if err := j.verifyOnce(ctx, t, size); err != nil {
				return 0, err
			}
			checked = true
		}
		o.Small = osu.Rounds{Iterations: iters, Warmup: max(1, iters/10)}
		o.Large = o.Small
		r, err := j.OSU(ctx, name, size, o)
		return figure(r), err
	}
}

// verifyOnce runs a few iterations of an OSU benchmark with data validation, with a small
// window.
func (j *Job) verifyOnce(ctx context.Context, t osu.Test, size int) error {
	o := osu.Defaults(t)
	o.Window = 4
	o.Validate, o.Small, o.Large = true, osu.Rounds{Iterations: 3}, osu.Rounds{Iterations: 3}
	_, err := j.OSU(ctx, t.Name, size, o)
	return err
}

// Collective returns rounds of an Intel benchmark of a collective, in microseconds: the average
// over ranks. The OSU benchmark of the same name verifies the data.
func (j *Job) Collective(benchmark string, size, repetitions int) measure.Round {
	checked := false
	return func(ctx context.Context) (float64, error) {
		if !checked {
			t, err := osu.Find(strings.ToLower(benchmark))
			if err == nil {
				err = j.verifyOnce(ctx, t, size)
			}
			if err != nil {
				return 0, err
			}
			checked = true
		}
		r, err := j.IMB(ctx, benchmark, size, repetitions)
		return r.Avg, err
	}
}

// Kernel returns rounds of one of the NAS kernels, in Mop/s.
func (j *Job) Kernel(kernel string, class nas.Class) measure.Round {
	return func(ctx context.Context) (float64, error) {
		r, err := j.NAS(ctx, kernel, class)
		if err != nil {
			return 0, err
		}
		return r.Mops(), nil
	}
}

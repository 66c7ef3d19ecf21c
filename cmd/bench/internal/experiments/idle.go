package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "idle-cost",
		Source: bench.Adapter,
		Layer:  bench.LayerAll,
		Claim: "What waits costs nearly nothing: a process with an idle device takes at most 0.5 % of a processor and wakes at most 20 times a second, " +
			"one with 1,000 idle connections, RC or SDP, at most 1 % and 20 times, and a rank that waits in a barrier for another one at most 1 % and 300 times.",
		Axes: []bench.Axis{{Name: "idle connections", Unit: idleConnections}, {Name: "ranks in a barrier, one of them late", Unit: ranksUnit}},
		Params: []bench.Param{
			{Name: "connections", Kind: bench.Int, Default: "1000", Min: 1, Max: 10000, Doc: "idle connections between two processes"},
			{Name: "ranks", Kind: bench.Int, Default: "8", Min: 2, Max: 64, Doc: "ranks in the barrier"},
			{Name: "time", Kind: bench.Duration, Default: "10s", Quick: "1s", Doc: "time of each measurement"},
			{Name: "late", Kind: bench.Duration, Default: "10s", Quick: "2s", Doc: "time that the last rank comes late"},
			overParam("rdma,shared"),
			besideOpenMPI(),
		},
		Run: evaluated(idleCost),
	})
}

const (
	idleConnections = "idle connections"

	// Limits: percent of a processor, and wake-ups per second.
	idleDeviceProcessor = 0.5
	idleConnsProcessor  = 1
	idleRankProcessor   = 1
	idleWakeups         = 20
	idleRankWakeups     = 300
)

// An idleSeries is processes that wait.
type idleSeries struct {
	name  string
	conns int
	limit float64 // processor time in percent; 0 for a baseline
	usage func(ctx context.Context, r *run) ([]measure.Usage, error)
}

func idleCost(ctx context.Context, r *run) error {
	n := r.Int("connections")
	list := []idleSeries{
		{"udp", 0, 0, idleSocket},
		{"device", 0, idleDeviceProcessor, func(ctx context.Context, r *run) ([]measure.Usage, error) { return idleQPs(ctx, r, 0) }},
		{"tcp", n, 0, idleSockets(sdpbench.TCP)},
		{"rc", n, idleConnsProcessor, func(ctx context.Context, r *run) ([]measure.Usage, error) { return idleQPs(ctx, r, n) }},
		{"sdp", n, idleConnsProcessor, idleSockets(sdpbench.NIC)},
	}
	r.Plan(len(list) + 1)
	for _, s := range list {
		r.Step("%s, %d connections", s.name, s.conns)
		usage, err := s.usage(ctx, r)
		if err != nil {
			return err
		}
		r.emitUsage(s.name, bench.Point{X: float64(s.conns), XUnit: idleConnections}, usage, s.limit, idleWakeups)
	}
	return lateBarriers(ctx, r)
}

// emitUsage emits the figures of the process that needs most, and compares them with limits
// unless limit is 0.
func (r *run) emitUsage(series string, at bench.Point, usage []measure.Usage, limit, wakeups float64) {
	most := measure.MaxUsage(usage)
	r.Emit(bench.Row{Series: series, X: at.X, XUnit: at.XUnit, Y: most.Processor, YUnit: measure.PercentOfProcessor})
	r.Emit(bench.Row{Series: series, X: at.X, XUnit: at.XUnit, Y: most.Wakeups, YUnit: measure.WakeupsPerSecond})
	if limit > 0 {
		where := fmt.Sprintf("%s with %.0f %s", series, at.X, at.XUnit)
		r.addCheck(most.Processor, limit, most.Processor <= limit, "%s %.3f %% of a processor (at most %.1f)", where, most.Processor, limit)
		r.addCheck(most.Wakeups, wakeups, most.Wakeups <= wakeups, "%.1f wake-ups/s (at most %.0f)", most.Wakeups, wakeups)
	}
}

func idleSocket(ctx context.Context, r *run) ([]measure.Usage, error) {
	idle, err := udpraw.OpenIdle(ctx)
	if err != nil {
		return nil, err
	}
	defer idle.Close()
	u, err := idle.Usage(ctx, r.Duration("time"))
	return []measure.Usage{u}, err
}

// idleQPs measures two devices with n queue pairs each that are connected.
func idleQPs(ctx context.Context, r *run, n int) ([]measure.Usage, error) {
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return nil, err
	}
	defer pair.Close()
	if n > 0 {
		if _, err := pair.OpenIdleConns(ctx, verbsbench.IdleConnsOptions{Transport: verbs.RC, Peers: n}); err != nil {
			return nil, err
		}
	}
	return pair.Usage(ctx, r.Duration("time"))
}

// idleSockets measures connections in each of which a goroutine of both ends reads.
func idleSockets(t sdpbench.Transport) func(context.Context, *run) ([]measure.Usage, error) {
	return func(ctx context.Context, r *run) ([]measure.Usage, error) {
		idle, err := sdpbench.OpenIdle(ctx, t, r.Int("connections"))
		if err != nil {
			return nil, err
		}
		defer idle.Close()
		return idle.Usage(ctx, r.Duration("time"))
	}
}

// lateBarriers measures the ranks that wait for a late one, with each transport and Open MPI.
func lateBarriers(ctx context.Context, r *run) error {
	ranks, late := r.Int("ranks"), r.Duration("late")
	at := bench.Point{X: float64(ranks), XUnit: ranksUnit}
	r.Step("barrier of %d ranks", ranks)
	other, err := openOpenMPI(ctx, r)
	if err != nil {
		return err
	}
	defer other.close()
	if other.program != nil {
		percent, err := other.program.Measure(ctx, ranks, "late-barrier", int(late.Milliseconds()), 1)
		if err != nil {
			return err
		}
		r.Emit(bench.Row{Series: overOpenMPI, X: at.X, XUnit: at.XUnit, Y: percent, YUnit: measure.PercentOfProcessor})
	}
	for _, word := range r.Words("over") {
		over := mpibench.Transport("mpi-" + word)
		usage, err := lateBarrier(ctx, mpibench.Config{Transport: over, Ranks: ranks}, r)
		if err != nil {
			return err
		}
		r.emitUsage(string(over), at, usage, idleRankProcessor, idleRankWakeups)
	}
	other.explainAbsence(&r.evaluation)
	return nil
}

func lateBarrier(ctx context.Context, c mpibench.Config, r *run) ([]measure.Usage, error) {
	job, err := mpibench.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	defer job.Close()
	return job.LateBarrier(ctx, r.Duration("late"))
}

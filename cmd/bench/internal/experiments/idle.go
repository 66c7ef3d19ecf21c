package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
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
		Claims: idleClaims(),
		Axes:   []bench.Axis{{Name: "idle connections", Unit: idleConnections}, {Name: "ranks in a barrier, one of them late", Unit: ranksUnit}},
		Params: []bench.Param{
			{Name: "connections", Kind: bench.Int, Default: "1000", Min: 1, Max: 10000, Doc: "idle connections between two processes"},
			{Name: "ranks", Kind: bench.Int, Default: "8", Min: 2, Max: 64, Doc: "ranks in the barrier"},
			{Name: "time", Kind: bench.Duration, Default: "10s", Quick: "1s", Doc: "time of each measurement"},
			{Name: "late", Kind: bench.Duration, Default: "10s", Quick: "2s", Doc: "time that the last rank comes late"},
			overParam("rdma,shared"),
			besideOpenMPI(),
		},
		Run: runFunc(idleCost),
	})
}

const idleConnections = "idle connections"

func idleClaims() (claims []bench.Statement) {
	for _, c := range []struct {
		name, series       string
		at                 bench.Points
		processor, wakeups float64
	}{
		{"A process with an idle device", "device", bench.At(0, idleConnections), 0.5, 20},
		{"A process with 1,000 idle RC connections", "rc", bench.At(1000, idleConnections), 1, 20},
		{"A process with 1,000 idle SDP connections", "sdp", bench.At(1000, idleConnections), 1, 20},
		{"A rank that waits in a barrier for another one, by messages,", string(mpibench.RDMA), bench.At(8, ranksUnit), 1, 300},
		{"A rank that waits in a barrier for another one, in shared memory,", string(mpibench.Shared), bench.At(8, ranksUnit), 1, 300},
	} {
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf("%s takes at most %g %% of a processor and wakes at most %g times a second.", c.name, c.processor, c.wakeups),
			Compare: bench.All{
				bench.Value{Of: []string{c.series}, Unit: measure.PercentOfProcessor, At: c.at, Limit: bench.AtMost(c.processor)},
				bench.Value{Of: []string{c.series}, Unit: measure.WakeupsPerSecond, At: c.at, Limit: bench.AtMost(c.wakeups)},
			},
		})
	}
	return claims
}

// An idleSeries is processes that wait.
type idleSeries struct {
	name  string
	conns int
	usage func(ctx context.Context, r *run) ([]measure.Usage, error)
}

func idleCost(ctx context.Context, r *run) error {
	n := r.Int("connections")
	list := []idleSeries{
		{"udp", 0, idleSocket},
		{"device", 0, func(ctx context.Context, r *run) ([]measure.Usage, error) { return idleQPs(ctx, r, 0) }},
		{"tcp", n, idleSockets(sdpbench.TCP)},
		{"rc", n, func(ctx context.Context, r *run) ([]measure.Usage, error) { return idleQPs(ctx, r, n) }},
		{"sdp", n, idleSockets(sdpbench.NIC)},
	}
	r.Plan(len(list) + 1)
	for _, s := range list {
		r.Step("%s, %d connections", s.name, s.conns)
		usage, err := s.usage(ctx, r)
		if err != nil {
			return err
		}
		r.emitUsage(s.name, bench.Point{X: float64(s.conns), XUnit: idleConnections}, usage)
	}
	return lateBarriers(ctx, r)
}

// emitUsage emits the figures of the process that needs most.
func (r *run) emitUsage(series string, at bench.Point, usage []measure.Usage) {
	most := measure.MaxUsage(usage)
	r.Emit(bench.Row{Series: series, X: at.X, XUnit: at.XUnit, Y: most.Processor, YUnit: measure.PercentOfProcessor})
	r.Emit(bench.Row{Series: series, X: at.X, XUnit: at.XUnit, Y: most.Wakeups, YUnit: measure.WakeupsPerSecond})
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
		percent, err := other.program.Measure(ctx, peers.OverTCP, ranks, "late-barrier", int(late.Milliseconds()), 1)
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
		r.emitUsage(string(over), at, usage)
	}
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

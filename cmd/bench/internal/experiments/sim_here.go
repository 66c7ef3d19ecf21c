package experiments

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/internal/cpus"
	simulated "github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	register(&bench.Experiment{
		Name:   "sim-here",
		Source: bench.Adapter,
		Layer:  bench.LayerMPI,
		Claims: simHereClaims(),
		Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "4,16,32", Quick: "4,16", Min: 2, Max: 64, Doc: "ranks, each a process, and each a simulated host; a multiple of the processors"},
			{Name: "size", Kind: bench.Int, Default: "64", Quick: "64", Min: 1, Max: 4 << 10, Doc: "bytes that a rank sends to each other rank"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "150ms", Quick: "50ms", Doc: "duration of a round"},
		},
		Run: runFunc(simHere),
	})
}

// Series of sim-here. The processor time is that of all ranks, divided by the number of processors:
// the time of a call if they are never idle and run nothing else.
const (
	simHereElapsed   = "processes"
	simHereProcessor = "processes-cpu"
	simHereTime      = "simulated"
)

// Units of the costs of sim-here, without the transport.
const (
	hereSource = "simulated over processes, rings" // of the program from which a cost follows
	hereValue  = "ns"
)

// hereNets are the transports of sim-here.
var hereNets = map[mpi.Net]string{mpi.RDMA: "RC", mpi.UD: "UD"}

// simHereCalls are the programs of sim-here and their units. Ranks spin before they sleep unless the
// unit says otherwise.
var simHereCalls = []struct {
	unit    string
	program hereProgram // without ranks and processors
}{
	{"us, barrier over RC", hereProgram{program: mpibench.Barriers}},
	{"us, barrier over UD", hereProgram{program: mpibench.Barriers, net: mpi.UD}},
	{"us, Bruck", hereProgram{program: mpibench.Alltoalls, algorithm: "bruck"}},
	{"us, pairwise over RC", hereProgram{program: mpibench.Alltoalls, algorithm: "pairwise"}},
	{"us, direct over RC", hereProgram{program: mpibench.Alltoalls, algorithm: "direct"}},
	{"us, direct over UD", hereProgram{program: mpibench.Alltoalls, algorithm: "ud", net: mpi.UD}},
	{"us, Bruck, without spinning", hereProgram{program: mpibench.Alltoalls, algorithm: "bruck", spin: -1}},
	{"us, direct over RC, without spinning", hereProgram{program: mpibench.Alltoalls, algorithm: "direct", spin: -1}},
	{"us, direct over UD, without spinning", hereProgram{program: mpibench.Alltoalls, algorithm: "ud", net: mpi.UD, spin: -1}},
}

// Reasons for simulated calls that are faster than those of processes.
const (
	hereOrder = "simulated ranks that wait for one another run in turn, so that each turn finds a packet; processes run in an order in which most find none"
	hereSleep = "processes sleep, and are woken for nearly each message; simulated ones do the work of a call in one turn"
)

func simHereClaims() (claims []bench.Statement) {
	for _, net := range []string{"RC", "UD"} {
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf("With the costs of this machine that follow from rings and streams of processes over %s, these take within 10 %% as long on simulated hosts.", net),
			Compare: bench.Value{Of: []string{"message", "call", "switch", "cold", "wake", "reacquire", "tick"}, Unit: hereSource + " over " + net,
				At: bench.Everywhere(ranksUnit), Limit: bench.Within(0.9, 1.1)},
			Because: "a cost below 0 would be needed, or the ranks go over from one way of waiting to another",
		})
	}
	for _, ranks := range []float64{4, 16, 32} {
		for _, c := range simHereCalls {
			because := hereOrder
			switch {
			case ranks <= 4: // where a message takes processes more time beside other ranks than in a ring
				because = ""
			case ranks > 16 || c.program.spin < 0 || strings.Contains(c.unit, "direct"):
				because = hereSleep
			}
			claims = append(claims, bench.Statement{
				Sentence: fmt.Sprintf("With these costs, and no other, simulated calls take within 25 %% of the processor time of processes on %v ranks: %s.", ranks, strings.TrimPrefix(c.unit, "us, ")),
				Compare:  bench.Alike{Series: []string{simHereProcessor, simHereTime}, Unit: c.unit, At: bench.At(ranks, ranksUnit), Limit: bench.AtMost(1.25)},
				Because:  because,
			})
		}
	}
	return claims
}

func simHere(ctx context.Context, r *run) error {
	r.Plan(2 + len(r.Ints("ranks"))*len(simHereCalls))
	costs := map[mpi.Net]simulated.Costs{}
	for _, net := range []mpi.Net{mpi.RDMA, mpi.UD} {
		r.Step("costs of rings")
		var err error
		if costs[net], err = measureCosts(ctx, r, net); err != nil {
			return err
		}
	}
	for _, ranks := range r.Ints("ranks") {
		for _, c := range simHereCalls {
			r.Step("%s on %d ranks", c.unit, ranks)
			p := c.program
			p.ranks, p.processors, p.size = ranks, runtime.NumCPU(), r.Int("size")
			t, err := p.measure(ctx, r)
			if err != nil {
				return fmt.Errorf("%s on %d ranks: %w", c.unit, ranks, err)
			}
			us, err := p.simulate(costs[p.net])
			if err != nil {
				return fmt.Errorf("%s on %d ranks: %w", c.unit, ranks, err)
			}
			for _, row := range []bench.Row{{Series: simHereElapsed, Y: t.elapsed}, {Series: simHereProcessor, Y: t.processor}, {Series: simHereTime, Y: us}} {
				row.X, row.XUnit, row.YUnit = float64(ranks), ranksUnit, c.unit
				r.Emit(row)
			}
		}
	}
	return nil
}

// A hereProgram is a program that runs on processes and on simulated hosts alike.
type hereProgram struct {
	program           mpibench.Program
	algorithm         string // of alltoalls
	net               mpi.Net
	ranks, processors int
	spin              time.Duration
	size              int
}

// algorithms returns the algorithms of collective calls.
func (p hereProgram) algorithms() map[string]string {
	m := map[string]string{"barrier": "dissemination"}
	if p.algorithm != "" {
		m["alltoall"] = p.algorithm
	}
	return m
}

// hereTimes are the least times of a call in microseconds.
type hereTimes struct{ elapsed, processor float64 }

// measure runs the program on processes.
func (p hereProgram) measure(ctx context.Context, r *run) (t hereTimes, err error) {
	job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: p.ranks, Alltoall: &mpibench.Alltoall{Net: p.net},
		Algorithms: p.algorithms(), Bind: cpus.Thread, OneCPU: p.processors == 1, Spin: p.spin})
	if err != nil {
		return t, err
	}
	defer job.Close()
	calls := mpibench.Calls{Program: p.program, Size: p.size, Calls: 10}
	first, err := job.CallTimes(ctx, calls)
	if err != nil {
		return t, err
	}
	calls.Calls = max(10, int(r.Duration("time")/max(1, first.Elapsed)))
	t = hereTimes{math.Inf(1), math.Inf(1)}
	for range r.Int("rounds") { // other programs of the machine only make a round longer

		c, err := job.CallTimes(ctx, calls)
		if err != nil {
			return t, err
		}
		t.elapsed = min(t.elapsed, float64(c.Elapsed)/1e3)
		t.processor = min(t.processor, float64(c.Processor)/1e3/float64(p.processors))
	}
	return t, nil
}

// simulate runs the program on simulated hosts and returns the time of a call in microseconds.
func (p hereProgram) simulate(costs simulated.Costs) (float64, error) {
	const calls = 20
	var took time.Duration
	c := simulated.New(simulated.Options{Seed: 1, Hosts: p.ranks, Costs: costs, Processors: p.processors, Spin: p.spin})
	err := c.Run(func(h *simulated.Host) error {
		o := mpi.Options{Net: p.net, Manager: h.Manager(), Algorithms: p.algorithms()}
		w, err := mpi.Init(h.OpenDevice, o)
		if err != nil {
			return err
		}
		t, err := mpibench.Calls{Program: p.program, Size: p.size, Calls: calls}.Run(w)
		took = max(took, t.Elapsed)
		return errors.Join(err, w.Finalize())
	})
	return float64(took) / calls / 1e3, err
}

// A hereCost is a cost that is solved for, so that a program of few ranks takes as long on simulated
// hosts as on processes.
type hereCost struct {
	name    string
	program hereProgram
	of      func(c *simulated.Costs) *time.Duration
}

// hereCosts are the costs by the programs from which they follow. None is a program that is compared.
func hereCosts(net mpi.Net, size int) []hereCost {
	ring := func(ranks, processors int, spin time.Duration) hereProgram {
		return hereProgram{program: mpibench.Ring, net: net, ranks: ranks, processors: processors, spin: spin, size: size}
	}
	stream := hereProgram{program: mpibench.Stream, net: net, ranks: 2, processors: 1, size: streamSize}
	return []hereCost{
		{"message", stream, func(c *simulated.Costs) *time.Duration { return &c.Match }},
		{"call", ring(2, 2, 0), func(c *simulated.Costs) *time.Duration { return &c.Call }},
		{"switch", ring(2, 1, 0), func(c *simulated.Costs) *time.Duration { return &c.Switch }},
		{"cold", ring(8, 1, 0), func(c *simulated.Costs) *time.Duration { return &c.Cold }},
		{"wake", ring(2, 1, -1), func(c *simulated.Costs) *time.Duration { return &c.Wake }},
		{"reacquire", ring(8, 1, -1), func(c *simulated.Costs) *time.Duration { return &c.Reacquire }},
		{"tick", ring(16, 1, -1), func(c *simulated.Costs) *time.Duration { return &c.MonitorTick }},
	}
}

// streamSize is the size of the messages of a stream in bytes. Package mpi coalesces messages up to
// 1 KiB.
const streamSize = 1100

// monitorPause is the time between two checks of the monitor of Go's runtime: a sleep of 20 us, and
// the 50 us by which Linux may prolong it.
const monitorPause = 70 * time.Microsecond

// measureCosts measures the costs of this machine by rings and streams of processes.
func measureCosts(ctx context.Context, r *run, net mpi.Net) (c simulated.Costs, err error) {
	over := " over " + hereNets[net]
	c = simulated.Costs{Latency: 1, Software: true, LongSleep: monitorPause}
	if c.Poll, err = idlePoll(); err != nil {
		return c, err
	}
	costs := hereCosts(net, r.Int("size"))
	took := make([]float64, len(costs))
	for i, k := range costs {
		t, err := k.program.measure(ctx, r)
		if err != nil {
			return c, fmt.Errorf("%s: %w", k.name, err)
		}
		took[i] = t.processor // the elapsed time, unless other processes prolong that
	}
	for range 8 {
		for i, k := range costs {
			if err := k.solve(&c, took[i]); err != nil {
				return c, fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	for i, k := range costs {
		us, err := k.program.simulate(c)
		if err != nil {
			return c, fmt.Errorf("%s: %w", k.name, err)
		}
		at := bench.Row{Series: k.name, X: float64(k.program.ranks), XUnit: ranksUnit, Y: us / took[i], YUnit: hereSource + over}
		r.Emit(at)
		at.Y, at.YUnit = float64(*k.of(&c)), hereValue+over
		r.Emit(at)
	}
	return c, nil
}

// solve changes the cost towards that with which the program takes the given time.
func (k hereCost) solve(c *simulated.Costs, us float64) error {
	const step = time.Microsecond
	before, err := k.program.simulate(*c)
	if err != nil {
		return err
	}
	more := *c
	*k.of(&more) += step
	after, err := k.program.simulate(more)
	if err != nil || after <= before {
		return err
	}
	*k.of(c) = max(0, *k.of(c)+time.Duration(float64(step)*(us-before)/(after-before)))
	return nil
}

// idlePoll returns the processor time of a poll of an idle device.
func idlePoll() (time.Duration, error) {
	const polls = 200_000
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	cq, err := dev.CreateCQ(16)
	if err != nil {
		return 0, err
	}
	var wc [1]verbs.WC
	used := measure.ProcessorTime()
	for range polls {
		if _, err := cq.Poll(wc[:]); err != nil {
			return 0, err
		}
	}
	return (measure.ProcessorTime() - used) / polls, nil
}

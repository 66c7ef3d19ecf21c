package experiments

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/mpi"
)

func init() {
	register(&bench.Experiment{
		Name:   "mpi-flow",
		Source: "SDP sec. 8", // future work: other programming models
		Layer:  bench.LayerMPI,
		Claims: mpiFlowClaims(),
		Axes: []bench.Axis{
			{Name: "message size", Unit: measure.Bytes}, {Name: "computation between bursts", Unit: computation}, {Name: "credits", Unit: creditsUnit},
		},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "64,128,256,512,1KiB,2KiB,4KiB", Quick: "256", Max: 8 << 10, Doc: "bytes of a message, for the rate of messages"},
			{Name: "credits", Kind: bench.Int, Default: "8", Min: 1, Max: 1 << 14, OfClaim: true, Doc: "packets of 8 KiB whose memory a peer has, for the rate of messages"},
			{Name: "compute", Kind: bench.Pauses, Default: "0,100us,250us,500us,1ms,2ms,4ms", Quick: "0,2ms", Doc: "computation after each burst, on both sides"},
			{Name: "messages", Kind: bench.Int, Default: "100", OfClaim: true, Doc: "messages of a burst"},
			{Name: "size", Kind: bench.Int, Default: "4KiB", Max: 8 << 10, OfClaim: true, Doc: "bytes of a message of a burst"},
			{Name: "burst-credits", Kind: bench.Int, Default: "64", Min: 1, Max: 1 << 14, OfClaim: true, Doc: "packets of 8 KiB whose memory a peer has, for bursts and for the memory of a peer"},
			{Name: "ranks", Kind: bench.Int, Default: "4", Min: 2, Max: 64, OfClaim: true, Doc: "ranks that send to each other, for the memory of a peer"},
			{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "5", Doc: "alternating rounds at each point"},
			{Name: "windows", Kind: bench.Int, Default: "300", Quick: "100", Doc: "windows of 64 messages in a round"},
			{Name: "iters", Kind: bench.Int, Default: "30", Quick: "10", Doc: "round trips of bursts in a round; more for little computation"},
		},
		Run: runFunc(mpiFlow),
	})
}

const (
	creditsUnit = "credits"
	peerMemory  = "KiB a peer"
)

// flowModes are the flow controls, the baseline first.
var flowModes = []mpi.Flow{mpi.FlowCredit, mpi.FlowRDMA, mpi.FlowNIC, mpi.FlowShared}

// flowSeries returns the series of a flow control.
func flowSeries(m mpi.Flow) string { return "flow-" + m.String() }

func mpiFlowClaims() []bench.Statement {
	credit, rdma, nic := []string{flowSeries(mpi.FlowCredit)}, []string{flowSeries(mpi.FlowRDMA)}, []string{flowSeries(mpi.FlowNIC)}
	rings := []string{rdma[0], nic[0]}
	rate := func(of, over []string, at bench.Points, least float64) bench.Comparison {
		return bench.Ratio{Of: of, Over: over, Unit: measure.MessagesPerSecond, At: at, Limit: bench.AtLeast(least)}
	}
	burst := func(of, over []string, at bench.Points, l bench.Limit) bench.Comparison {
		return bench.Ratio{Of: of, Over: over, Unit: measure.Microseconds, At: at, Limit: l}
	}
	return []bench.Statement{
		{
			Source:   bench.Adapter,
			Sentence: "With 8 credits, RDMA-based and NIC-assisted flow control carry at least 3 times as many messages of 256 bytes as credit-based.",
			Compare:  rate(rings, credit, bench.At(256, measure.Bytes), 3),
		},
		{
			Source:   bench.Adapter,
			Sentence: "From 64 bytes to 4 KiB they carry at least as many.",
			Compare:  rate(rings, credit, bench.Between(64, 4<<10, measure.Bytes), 1),
		},
		{
			Source:   bench.Adapter,
			Sentence: "NIC-assisted flow control carries at least as many messages of 256 bytes as the shared receive queue, which coalesces them too.",
			Compare:  rate(nic, []string{flowSeries(mpi.FlowShared)}, bench.At(256, measure.Bytes), 1),
		},
		{
			Source:   "SDP fig. 8",
			Sentence: "Under MPI, too, bursts with NIC-assisted flow control take at most 1.1 times as long as with the better of the two others, for any amount of computation.",
			Paper:    "scales well",
			Compare:  burst(nic, []string{rdma[0], credit[0]}, bench.Everywhere(computation), bench.AtMost(1.1)),
		},
		{
			Source:   "SDP fig. 8",
			Sentence: "RDMA-based flow control falls behind NIC-assisted with more computation, by at least 10 %.",
			Paper:    "deteriorates rapidly",
			Compare:  bench.Growth{Of: rdma, Over: nic[0], Unit: measure.Microseconds, At: bench.Everywhere(computation), Limit: bench.AtLeast(1.1)},
		},
		{
			Source:   "SDP fig. 8",
			Sentence: "Above 1 ms of computation RDMA-based flow control takes longer than credit-based.",
			Paper:    "outperformed by credit-based above 1000 us",
			Compare:  burst(rdma, credit, bench.From(1001, computation), bench.AtLeast(1)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "Both rings of a peer take at most 512 KiB, the memory of the 64 receives that it had before.",
			Compare:  bench.Value{Of: rings, Unit: peerMemory, At: bench.Everywhere(creditsUnit), Limit: bench.AtMost(512)}, Exact: true,
		},
	}
}

func mpiFlow(ctx context.Context, r *run) error {
	r.Plan(2 + len(r.Ints("sizes")) + len(r.Pauses("compute")))
	if err := flowRates(ctx, r); err != nil {
		return err
	}
	if err := flowBursts(ctx, r); err != nil {
		return err
	}
	return flowMemory(ctx, r)
}

// openFlows opens a job for each flow control. The caller must close them, also after an error.
func openFlows(ctx context.Context, ranks, credits int, loose bool) (all jobs, err error) {
	for _, m := range flowModes {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: ranks, Flow: &mpibench.Flow{Mode: m, Credits: credits}, Loose: loose})
		if err != nil {
			return all, fmt.Errorf("%d ranks with %v: %w", ranks, m, err)
		}
		all = append(all, job)
	}
	return all, nil
}

// flowRates measures the rate of messages.
func flowRates(ctx context.Context, r *run) error {
	r.Step("opening connections")
	all, err := openFlows(ctx, 2, r.Int("credits"), false)
	defer all.close()
	if err != nil {
		return err
	}
	for _, size := range r.Ints("sizes") {
		r.Step("messages of %d B", size)
		var set seriesSet
		for i, m := range flowModes {
			set.addSeries(flowSeries(m), all[i].Bandwidth(size, r.Int("windows")))
		}
		samples, err := set.runAlternating(ctx, r.Int("rounds"))
		if err != nil {
			return err
		}
		r.emitSamples(&set, atSize(size, measure.MessagesPerSecond), inMessages(samples, size))
	}
	return nil
}

// flowBursts measures bursts with computation between them. As in sdp-progress, processes are not
// pinned: our adapter has no processor of its own.
func flowBursts(ctx context.Context, r *run) error {
	all, err := openFlows(ctx, 2, r.Int("burst-credits"), true)
	defer all.close()
	if err != nil {
		return err
	}
	millisecond := sdpbench.CalibrateWork(time.Millisecond)
	for _, amount := range r.Pauses("compute") {
		r.Step("%v of computation", amount)
		burst := mpibench.Burst{
			Messages: r.Int("messages"), Size: r.Int("size"), Compute: millisecond * sdpbench.Work(amount) / sdpbench.Work(time.Millisecond),
		}
		iters := max(r.Int("iters"), int(shortestRound/(amount+burstAlone)))
		var set seriesSet
		for i, m := range flowModes {
			set.addEvents(flowSeries(m), func(into *measure.Latency) measure.Round { return all[i].BurstRounds(burst, iters, into) })
		}
		if _, err := r.measurePoint(ctx, &set, bench.Point{X: measure.Micros(amount), XUnit: computation, YUnit: measure.Microseconds}); err != nil {
			return err
		}
	}
	return nil
}

// flowMemory measures the memory of a peer.
func flowMemory(ctx context.Context, r *run) error {
	r.Step("memory of a peer")
	all, err := openFlows(ctx, r.Int("ranks"), r.Int("burst-credits"), false)
	defer all.close()
	if err != nil {
		return err
	}
	var samples []bench.Sample
	for i, m := range flowModes {
		n, err := all[i].PacketMemory(ctx)
		if err != nil {
			return err
		}
		samples = append(samples, bench.Sample{Series: flowSeries(m), Figures: []float64{n / 1024}})
	}
	r.EmitAgainst(bench.Point{X: float64(r.Int("burst-credits")), XUnit: creditsUnit, YUnit: peerMemory}, samples[0], samples[1:]...)
	return nil
}
